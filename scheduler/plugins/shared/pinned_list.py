"""PinnedList: a list that is searched with a node's labels, where most items name the one place they are for.

A local volume names its host, a capacity its zone. Asking every item whether it is for a node would cost nodes times
items; here an item that names a label's values is offered only to nodes that have one of them.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Generic, NamedTuple, TypeVar

from scheduler.model.meta import LabelSelector
from scheduler.model.storage import VolumeNodeAffinity

__all__ = ["Pin", "PinnedList", "affinity_pin", "selector_pin"]

T = TypeVar("T")


class Pin(NamedTuple):
    """A node without one of these values of the label is surely wrong; one with it is not surely right."""

    key: str
    values: Sequence[str]


class PinnedList(Generic[T]):
    """Items in a given order, found by labels."""

    __slots__ = ("_free", "_pinned")

    def __init__(self, items: Iterable[tuple[T, Pin | None]]) -> None:
        self._free: list[tuple[int, T]] = []
        self._pinned: dict[str, dict[str, list[tuple[int, T]]]] = {}
        for rank, (item, pin) in enumerate(items):
            if pin is None:
                self._free.append((rank, item))
                continue
            by_value = self._pinned.setdefault(pin.key, {})
            for value in dict.fromkeys(pin.values):
                by_value.setdefault(value, []).append((rank, item))

    def offered_to(self, labels: Mapping[str, str]) -> Iterator[T]:
        """Yield the items that may be for a node with these labels, in order."""
        lists = [self._free] if self._free else []
        for key, by_value in self._pinned.items():
            here = by_value.get(labels[key]) if key in labels else None
            if here:
                lists.append(here)
        ranked = lists[0] if len(lists) == 1 else heapq.merge(*lists, key=itemgetter(0))
        for _, item in ranked:
            yield item


def affinity_pin(affinity: VolumeNodeAffinity | None) -> Pin | None:
    """Return a pin of a volume's node affinity, if it has one term and that names values of a label."""
    terms = affinity.required.node_selector_terms if affinity is not None and affinity.required is not None else ()
    if len(terms) != 1:
        return None
    named = (r for r in terms[0].match_expressions if r.operator == "In")
    return next((Pin(r.key, r.values) for r in named), None)


def selector_pin(selector: LabelSelector | None) -> Pin | None:
    """Return a pin of a label selector, if it names values of a label."""
    if selector is None:
        return None
    for key, value in selector.match_labels.items():
        return Pin(key, (value,))
    return next((Pin(r.key, r.values) for r in selector.match_expressions if r.operator == "In"), None)
