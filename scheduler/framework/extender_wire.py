"""Extender wire: what extenders answer, and how it is read.

JSON keys are Go's field names (spec 1.10): we write them exactly so and read them in any letter case, as Go does. Only
in answers too large to be taken apart generically (a hostile one would become many times larger in memory) they must be
spelled as we spell them.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from scheduler.model.meta import Int64

__all__ = [
    "MAX_LOOSE_BYTES",
    "BindAnswer",
    "FilterAnswer",
    "MetaPod",
    "MetaVictims",
    "NodeItem",
    "NodeItems",
    "NodeName",
    "PreemptAnswer",
    "Priority",
    "read_answer",
]

MAX_LOOSE_BYTES = 1 << 20
"""Answers up to this size may spell their keys as they like."""

T = TypeVar("T")


class NodeName(msgspec.Struct, frozen=True):
    """The only field of a node that counts."""

    name: str = ""


class NodeItem(msgspec.Struct, frozen=True):
    """A node."""

    metadata: NodeName = NodeName()


class NodeItems(msgspec.Struct, frozen=True):
    """A NodeList."""

    items: list[NodeItem] | None = None


class FilterAnswer(msgspec.Struct, frozen=True, rename="pascal"):
    """``ExtenderFilterResult``."""

    nodes: NodeItems | None = None
    node_names: list[str] | None = None
    failed_nodes: dict[str, str] | None = None
    failed_and_unresolvable_nodes: dict[str, str] | None = None
    error: str | None = None


class Priority(msgspec.Struct, frozen=True, rename="pascal"):
    """``HostPriority``."""

    host: str = ""
    score: Int64 = 0


class BindAnswer(msgspec.Struct, frozen=True, rename="pascal"):
    """``ExtenderBindingResult``."""

    error: str | None = None


class MetaPod(msgspec.Struct, frozen=True):
    """A pod by its UID."""

    uid: str = msgspec.field(name="UID", default="")


class MetaVictims(msgspec.Struct, frozen=True):
    """Victims by their UIDs."""

    pods: list[MetaPod] | None = msgspec.field(name="Pods", default=None)
    num_pdb_violations: Int64 = msgspec.field(name="NumPDBViolations", default=0)


class PreemptAnswer(msgspec.Struct, frozen=True, rename="pascal"):
    """``ExtenderPreemptionResult``."""

    node_name_to_meta_victims: dict[str, MetaVictims] | None = None


def read_answer(body: bytes | bytearray, wanted: type[T]) -> T:
    """Return the answer; ``null`` is an empty one (parity: Go).

    Raises:
        msgspec.ValidationError: it has another shape.
        ValueError: it is no JSON; so is ``msgspec.DecodeError``.
        RecursionError: it is nested too deeply.
    """
    if len(body) > MAX_LOOSE_BYTES:
        return _read_exactly(body, wanted)
    raw = msgspec.json.decode(body)
    return wanted() if raw is None else msgspec.convert(_with_go_names(raw), wanted)


def _read_exactly(body: bytes | bytearray, wanted: type[T]) -> T:
    answer = msgspec.json.decode(body, type=wanted)
    if answer == wanted():
        raise ValueError(f"none of the fields that it should have is in its {len(body)} bytes")
    return answer


_STRUCTS: tuple[type[msgspec.Struct], ...] = (
    NodeName,
    NodeItem,
    NodeItems,
    FilterAnswer,
    Priority,
    BindAnswer,
    MetaPod,
    MetaVictims,
    PreemptAnswer,
)
_NAMES = {name.lower(): name for struct in _STRUCTS for name in struct.__struct_encode_fields__}
# Maps whose keys are names of nodes, not of fields.
_BY_NODE = frozenset({"FailedNodes", "FailedAndUnresolvableNodes", "NodeNameToMetaVictims"})


def _with_go_names(raw: Any, *, are_names: bool = False) -> Any:
    """Return the value with the keys that we know spelled as Go spells them."""
    if isinstance(raw, list):
        return [_with_go_names(item) for item in raw]
    if not isinstance(raw, dict):
        return raw
    spelled = {}
    for key, value in raw.items():
        field = key if are_names else _NAMES.get(key.lower(), key)
        spelled[field] = _with_go_names(value, are_names=not are_names and field in _BY_NODE)
    return spelled
