"""Listeners: the waiting pods that one hint is to be asked about, found by what they wait for.

A hint looks at little of an event: a few labels, a claim's name. Its index (``HintIndex``) says what a waiting pod
wants and what an event offers, as keys of two halves, where and what. An event costs a look-up for each place, and one
more for each of its whats if somebody waits in that place, however many pods wait for something else.

    _by_key   "shop" -> ("app", "web") -> pod 1, pod 7      _everything   pod 4, of which the index could not say

Invariant: a pod is in ``_everything``, or in ``_by_key`` under each of its keys in ``_wanted``.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable

from scheduler.api.events import HintIndex, Offer, WantedKey
from scheduler.model.pod import Pod
from scheduler.telemetry.logging import get_logger

__all__ = ["Listeners"]

_log = get_logger(__name__)


class Listeners:
    """Names (``namespace/name``) of pods, with what they want.

    An index that fails finds everybody: a bug in it may cost vain questions but never strands a pod.
    """

    __slots__ = ("_by_key", "_everything", "_has_failed", "_index", "_wanted")

    def __init__(self, index: HintIndex) -> None:
        self._index = index
        self._has_failed = False
        self._wanted: dict[str, frozenset[WantedKey]] = {}
        self._by_key: dict[Hashable, dict[Hashable, dict[str, None]]] = {}
        self._everything: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._wanted) + len(self._everything)

    def put(self, name: str, pod: Pod) -> None:
        """Put in a pod that is not in."""
        wanted = self._wanted_by(pod)
        if wanted is None:
            self._everything[name] = None
            return
        self._wanted[name] = wanted
        for where, what in wanted:
            self._by_key.setdefault(where, {}).setdefault(what, {})[name] = None

    def remove(self, name: str) -> None:
        """Take out a pod that is in."""
        wanted = self._wanted.pop(name, None)
        if wanted is None:
            del self._everything[name]
            return
        for where, what in wanted:
            here = self._by_key[where]
            del here[what][name]
            if not here[what]:
                del here[what]
                if not here:
                    del self._by_key[where]

    def concerned(self, old: object | None, new: object | None) -> Collection[str]:
        """Return the pods that the event may help, in no particular order."""
        if not self._wanted:
            return self._everything
        try:
            offers = self._index.offered(old, new)
            if offers is not None:
                return self._find(offers)
        except Exception as error:  # noqa: BLE001  see the class
            self._report(error)
        return {**self._wanted, **self._everything}

    def _find(self, offers: Iterable[Offer]) -> Collection[str]:
        found: list[dict[str, None]] = []
        for where, whats in offers:
            here = self._by_key.get(where)
            if here is not None:
                found += [here[what] for what in here.keys() & whats]
        return set(self._everything).union(*found) if found else self._everything

    def _wanted_by(self, pod: Pod) -> frozenset[WantedKey] | None:
        try:
            wanted = self._index.wanted(pod)
            return None if wanted is None else frozenset(wanted)
        except Exception as error:  # noqa: BLE001  see the class
            self._report(error)
            return None

    def _report(self, error: Exception) -> None:
        log = _log.debug if self._has_failed else _log.error  # it may fail at each event
        self._has_failed = True
        log("index of a queueing hint failed, hint asked about all pods", error=repr(error))
