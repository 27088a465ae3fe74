"""Words for selectors in tests: ``in_("zone", "a", "b")``, ``exists("gpu")``, ``all_of(gt("cores", 8), …)``.

All of them return manifests, the dictionaries that YAML would give.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

__all__ = [
    "Manifest",
    "SelectorLike",
    "absent",
    "all_of",
    "exists",
    "field_in",
    "field_not_in",
    "gt",
    "in_",
    "lt",
    "not_in",
    "selector",
]

Manifest = dict[str, Any]
SelectorLike = Mapping[str, Any] | Iterable[Manifest]
"""Labels that must be equal, expressions that must hold, or a whole label selector manifest."""


def in_(key: str, *values: str) -> Manifest:
    """Demand one of ``values``."""
    return {"key": key, "operator": "In", "values": list(values)}


def not_in(key: str, *values: str) -> Manifest:
    """Demand none of ``values``; a missing key is fine."""
    return {"key": key, "operator": "NotIn", "values": list(values)}


def exists(key: str) -> Manifest:
    """Demand the key."""
    return {"key": key, "operator": "Exists"}


def absent(key: str) -> Manifest:
    """Demand that the key is missing."""
    return {"key": key, "operator": "DoesNotExist"}


def gt(key: str, bound: int | str) -> Manifest:
    """Demand a number above ``bound`` (node selectors only)."""
    return {"key": key, "operator": "Gt", "values": [str(bound)]}


def lt(key: str, bound: int | str) -> Manifest:
    """Demand a number below ``bound`` (node selectors only)."""
    return {"key": key, "operator": "Lt", "values": [str(bound)]}


def field_in(*names: str) -> Manifest:
    """Demand one of the nodes ``names`` (a term by ``matchFields``)."""
    return {"matchFields": [in_("metadata.name", *names)]}


def field_not_in(*names: str) -> Manifest:
    """Demand another node than ``names`` (a term by ``matchFields``)."""
    return {"matchFields": [not_in("metadata.name", *names)]}


def all_of(*parts: Manifest) -> Manifest:
    """Return one node selector term in which all ``parts`` (expressions or terms) must hold."""
    term: Manifest = {}
    for part in parts:
        pieces = {"matchExpressions": [part]} if "key" in part else part
        for name, requirements in pieces.items():
            term[name] = [*term.get(name, ()), *requirements]
    return term


def selector(wanted: SelectorLike) -> Manifest:
    """Return a label selector manifest for labels, expressions or a manifest."""
    if not isinstance(wanted, Mapping):
        return {"matchExpressions": list(wanted)}
    if wanted.keys() <= {"matchLabels", "matchExpressions"}:
        return dict(wanted)
    return {"matchLabels": dict(wanted)}
