"""What label keys and label values may look like, with the texts in which Kubernetes says what is wrong.

Source: ``apimachinery/pkg/api/validate/content/kube.go`` and ``dns.go``. Lengths count bytes, as in Go.
"""

from __future__ import annotations

import re

from scheduler.model.bounds import kept_for_short

__all__ = ["label_key_problems", "label_value_problems"]

_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_NAME_MESSAGE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
    f" (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME}')"
)
_PARTS_MESSAGE = (
    f"a valid label key {_NAME_MESSAGE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
)
_VALUE_MESSAGE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character"
    f" (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '({_NAME})?')"
)
_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_SUBDOMAIN_MESSAGE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and"
    f" end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_NAME_MAX_BYTES = 63
_SUBDOMAIN_MAX_BYTES = 253
# the look-behind keeps matching linear: no backtracking on hostile names
_NAME_PATTERN = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_SUBDOMAIN_PATTERN = re.compile(r"[a-z0-9](?:[-a-z0-9]*+(?<=[a-z0-9]))?(?:\.[a-z0-9](?:[-a-z0-9]*+(?<=[a-z0-9]))?)*")


@kept_for_short(4096)
def label_key_problems(key: str) -> tuple[str, ...]:
    """Return what is wrong with a label key (a "qualified name"); empty if nothing is."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        return (_PARTS_MESSAGE,)
    problems = _prefix_problems(prefix) if slash else []
    if not name:
        problems.append("name part must be non-empty")
    elif _num_bytes(name) > _NAME_MAX_BYTES:
        problems.append(f"name part must be no more than {_NAME_MAX_BYTES} bytes")
    if not _NAME_PATTERN.fullmatch(name):
        problems.append(f"name part {_NAME_MESSAGE}")
    return tuple(problems)


@kept_for_short(4096)
def label_value_problems(value: str) -> tuple[str, ...]:
    """Return what is wrong with a label value; empty if nothing is."""
    problems = []
    if _num_bytes(value) > _NAME_MAX_BYTES:
        problems.append(f"must be no more than {_NAME_MAX_BYTES} bytes")
    if value and not _NAME_PATTERN.fullmatch(value):
        problems.append(_VALUE_MESSAGE)
    return tuple(problems)


def _prefix_problems(prefix: str) -> list[str]:
    if not prefix:
        return ["prefix part must be non-empty"]
    problems = []
    if _num_bytes(prefix) > _SUBDOMAIN_MAX_BYTES:
        problems.append(f"prefix part must be no more than {_SUBDOMAIN_MAX_BYTES} bytes")
    if not _SUBDOMAIN_PATTERN.fullmatch(prefix):
        problems.append(f"prefix part {_SUBDOMAIN_MESSAGE}")
    return problems


def _num_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
