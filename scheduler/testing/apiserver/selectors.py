"""Label and field selectors in their query-string grammar, compiled to predicates over stored objects.

Why not `scheduler.model.selectors`: that one evaluates typed selectors inside objects; this one parses what clients put
into URLs, and refuses what the real server refuses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from scheduler.testing.apiserver.status import bad_request

__all__ = ["Predicate", "compile_selectors", "parse_field_selector", "parse_label_selector"]

Json = dict[str, Any]
Predicate = Callable[[Json], bool]
LabelRule = Callable[[Mapping[str, str]], bool]

_TOKEN = re.compile(r"\s*(==|=|!=|!|<|>|\(|\)|,|[^\s=!<>(),]+)")
_QUALIFIED_KEY = re.compile(r"(?:[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_OPERATORS = "in, notin, =, ==, !=, gt, lt"


class FieldTerm(NamedTuple):
    """`path` equals `value`, or differs from it."""

    path: str
    equal: bool
    value: str


def compile_selectors(plural: str, label_text: str, field_text: str, view: str = "") -> Predicate | None:
    """Return one predicate over stored objects, or None when both selectors are empty.

    Raises:
        ApiStatusError: 400, the grammar or a field is unknown.

    """
    rules = parse_label_selector(label_text)
    terms = parse_field_selector(plural, field_text, view)
    if not rules and not terms:
        return None

    def matches(obj: Json) -> bool:
        labels = obj["metadata"].get("labels") or {}
        return all(rule(labels) for rule in rules) and all((_field(obj, t.path) == t.value) is t.equal for t in terms)

    return matches


# --- labels ----------------------------------------------------------------------------------------------------------


def parse_label_selector(text: str) -> list[LabelRule]:
    """Parse `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1,m<2`; every rule must hold.

    Raises:
        ApiStatusError: 400 in the real server's words.

    """
    tokens = _tokens(text)
    rules: list[LabelRule] = []
    position = 0
    while position < len(tokens):
        rule, position = _requirement(tokens, position)
        rules.append(rule)
        if position < len(tokens):
            if tokens[position] != ",":
                raise bad_request(f"found '{tokens[position]}', expected: ',' or 'end of string'")
            position += 1
            if position == len(tokens):
                raise bad_request("found '', expected: identifier after ','")
    return rules


def _tokens(text: str) -> list[str]:
    tokens: list[str] = []
    position = 0
    end = len(text.rstrip())
    while position < end:
        found = _TOKEN.match(text, position)
        assert found is not None, "the last alternative takes any other character"
        tokens.append(found.group(1))
        position = found.end()
    return tokens


def _requirement(tokens: list[str], position: int) -> tuple[LabelRule, int]:
    if tokens[position] == "!":
        key = _key(tokens, position + 1)
        return (lambda labels: key not in labels), position + 2
    key = _key(tokens, position)
    position += 1
    if position == len(tokens) or tokens[position] == ",":
        return (lambda labels: key in labels), position
    operator = tokens[position]
    if operator in ("in", "notin"):
        values, position = _value_set(tokens, position + 1)
        if operator == "in":
            return (lambda labels: labels.get(key, _ABSENT) in values), position
        return (lambda labels: labels.get(key, _ABSENT) not in values), position
    if operator not in ("=", "==", "!=", ">", "<", "gt", "lt"):
        raise bad_request(f"unable to parse requirement: found '{operator}', expected: {_OPERATORS}")
    value, position = _single_value(tokens, position + 1)
    return _comparison(key, operator, value), position


_ABSENT = "\0absent"  # no label value can be this


def _comparison(key: str, operator: str, value: str) -> LabelRule:
    if operator in ("=", "=="):
        return lambda labels: labels.get(key) == value
    if operator == "!=":
        return lambda labels: labels.get(key) != value
    bound = _integer(value)
    if bound is None:
        raise bad_request(
            f"values[0][{key}]: Invalid value: \"{value}\": for 'Gt', 'Lt' operators, the value must be an integer"
        )
    if operator in (">", "gt"):
        return lambda labels: (number := _integer(labels.get(key))) is not None and number > bound
    return lambda labels: (number := _integer(labels.get(key))) is not None and number < bound


def _integer(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"[+-]?[0-9]+", text) else None


def _key(tokens: list[str], position: int) -> str:
    token = tokens[position] if position < len(tokens) else ""
    if token in ("", "=", "==", "!=", "!", "<", ">", "(", ")", ","):
        raise bad_request(f"unable to parse requirement: found '{token}', expected: identifier")
    if not _QUALIFIED_KEY.fullmatch(token):
        raise bad_request(
            f'unable to parse requirement: <nil>: Invalid value: "{token}": name part must be a label key'
        )
    return token


def _single_value(tokens: list[str], position: int) -> tuple[str, int]:
    if position == len(tokens) or tokens[position] == ",":
        return "", position
    return _checked_value(tokens[position]), position + 1


def _checked_value(value: str) -> str:
    if not _VALUE.fullmatch(value):
        raise bad_request(
            f'unable to parse requirement: values[0]: Invalid value: "{value}": a label value was expected'
        )
    return value


def _value_set(tokens: list[str], position: int) -> tuple[frozenset[str], int]:
    if position >= len(tokens) or tokens[position] != "(":
        found = tokens[position] if position < len(tokens) else ""
        raise bad_request(f"unable to parse requirement: found '{found}' expected: '('")
    values: list[str] = []
    expects_value = True
    for index in range(position + 1, len(tokens)):
        symbol = tokens[index]
        if symbol == ")":
            if expects_value:
                values.append("")
            return frozenset(values), index + 1
        if symbol == ",":
            if expects_value:
                values.append("")
            expects_value = True
        elif expects_value:
            values.append(_checked_value(symbol))
            expects_value = False
        else:
            raise bad_request(f"unable to parse requirement: found '{symbol}', expected: ',' or ')'")
    raise bad_request("unable to parse requirement: found '', expected: ',' or ')'")


# --- fields ----------------------------------------------------------------------------------------------------------

_METADATA_FIELDS = ("metadata.name", "metadata.namespace")
_EVENT_OBJECT_FIELDS = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_FIELDS: dict[str, tuple[str, ...]] = {
    "pods": (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.podIPs",
        "status.nominatedNodeName",
    ),
    "nodes": ("spec.unschedulable",),
    "namespaces": ("status.phase",),
    "replicationcontrollers": ("status.replicas",),
    "replicasets": ("status.replicas",),
    "statefulsets": ("status.successful",),
    "services": ("spec.clusterIP", "spec.type"),
    "resourceslices": ("spec.nodeName", "spec.driver"),
    "events": (
        *(f"involvedObject.{name}" for name in _EVENT_OBJECT_FIELDS),
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
}


def parse_field_selector(plural: str, text: str, view: str = "") -> list[FieldTerm]:
    """Parse `path=value`, `path==value`, `path!=value`, joined by commas.

    Args:
        plural: the resource, which knows only some fields.
        text: the selector as the client sent it.
        view: API group whose field names are in use ("events.k8s.io"), translated to the stored ones.

    Raises:
        ApiStatusError: 400, bad grammar or a field that this resource does not index.

    """
    terms: list[FieldTerm] = []
    for part in filter(None, (piece.strip() for piece in re.split(r"(?<!\\),", text))):
        found = re.match(r"(.*?)(!=|==|=)(.*)", part, re.DOTALL)
        if found is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        path, operator, value = found.groups()
        stored = _stored_path(path, view)
        if stored not in _METADATA_FIELDS and stored not in _FIELDS.get(plural, ()):
            raise bad_request(f"field label not supported: {path}")
        terms.append(FieldTerm(stored, operator != "!=", re.sub(r"\\(.)", r"\1", value)))
    return terms


def _stored_path(path: str, view: str) -> str:
    if view == "events.k8s.io":
        if path.startswith("regarding."):
            return "involvedObject." + path.removeprefix("regarding.")
        if path == "reportingController":
            return "reportingComponent"
    return path


def _field(obj: Json, path: str) -> str:
    if path == "spec.hostNetwork":
        return "true" if obj["spec"].get("hostNetwork") else "false"
    if path == "source":
        return (obj.get("source") or {}).get("component") or obj.get("reportingComponent") or ""
    value: Any = obj
    for step in path.split("."):
        value = (value or {}).get(step)
    if isinstance(value, bool) or (value is None and path == "spec.unschedulable"):
        return "true" if value else "false"
    return "" if value is None else str(value)
