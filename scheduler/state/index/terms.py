"""Carried terms: the pod (anti-)affinity that the pods on nodes carry, turned around to be asked by an incoming pod.

A pod's affinity looks at others, but a scheduler needs the reverse too: which terms of the pods that run already select
the pod that comes, and in which topology domains do their carriers run? Walking all pods for that in every cycle is
what makes affinity expensive. Here equal terms are one entry, whoever carries them, with one count for each value of
the term's topology key. It changes when a pod with affinity comes to a node or leaves it, or when a node's labels
change, so rows and snapshots play no part in it.

A carrier on a node that lacks the topology key counts nowhere (parity), and an entry without counts does not exist.

Two tables: ``repelling`` are required anti-affinity terms, which a Filter needs; ``preferring`` are required affinity
and preferences, which only scores need.

Invariant (tested): after any history both tables equal those built from the pods on nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from scheduler.model.affinity import AffinityTerm
from scheduler.model.pod import Pod
from scheduler.state.index.carried import Carried
from scheduler.state.index.term_buckets import TermBuckets
from scheduler.state.index.term_counts import DenseCounts, TermCounts
from scheduler.state.index.term_log import TermChange, TermLog
from scheduler.state.index.term_questions import TermQuestions, Visible

__all__ = ["TermIndex", "TermTable"]

Labels = Mapping[str, str]


class TermTable:
    """Distinct terms with their counts, asked for by whom they select."""

    __slots__ = ("_buckets", "_carried", "_log", "_questions", "_visible")

    def __init__(self, dense: DenseCounts) -> None:
        self._carried: dict[tuple[AffinityTerm, int | None], Carried] = {}
        self._buckets = TermBuckets()
        self._visible = Visible()
        self._log = TermLog()
        self._questions = TermQuestions(self._buckets, self._log, dense)

    def __len__(self) -> int:
        return len(self._carried)

    def __iter__(self) -> Iterator[Carried]:
        return iter(self._carried.values())

    def count(self, term: AffinityTerm, weight: int | None, value: str, delta: int) -> None:
        """Count a carrier in (1) or out (-1) in the domain ``value``."""
        key = (term, weight)
        carried = self._carried.get(key)
        if carried is None:
            carried = self._carried[key] = Carried(term, weight)
            self._buckets.add(carried)
            self._visible.add(term)
        carried.count(value, delta)
        self._log.add(TermChange(carried, value, delta))
        if not carried.counts:
            del self._carried[key]
            self._buckets.remove(carried)
            self._visible.remove(term)

    def selecting(self, pod: Pod, namespace_labels: Labels) -> Sequence[TermCounts]:
        """Return the sums of the terms that select the pod, whose namespace has ``namespace_labels``."""
        if not self._carried:
            return ()
        meta = pod.metadata
        asker = self._visible.asker(meta.namespace, meta.labels, namespace_labels)
        return self._questions.answer(asker)


class TermIndex:
    """All terms that pods on nodes carry; written by the cache alone."""

    __slots__ = ("preferring", "repelling")

    def __init__(self) -> None:
        dense = DenseCounts()
        self.repelling = TermTable(dense)
        self.preferring = TermTable(dense)

    def add(self, pod: Pod, node_labels: Labels) -> None:
        """Count a pod in on a node with these labels."""
        self._count(pod, node_labels, 1)

    def remove(self, pod: Pod, node_labels: Labels) -> None:
        """Count out the pod that was counted in with this value, on a node with these labels."""
        self._count(pod, node_labels, -1)

    def replace(self, old: Pod, new: Pod, node_labels: Labels) -> None:
        """Follow a new version of a pod that stays on its node, which has these labels."""
        if old.spec.affinity != new.spec.affinity or old.metadata.namespace != new.metadata.namespace:
            self._count(old, node_labels, -1)
            self._count(new, node_labels, 1)

    def relabel(self, pods: Iterable[Pod], old: Labels | None, new: Labels | None) -> None:
        """Follow a change of the labels of the node that ``pods`` are on; None: the node does not exist."""
        before, after = _only_changed(old or _NO_LABELS, new or _NO_LABELS)
        if before or after:  # labels that are the same move no carrier
            for pod in pods:
                self._count(pod, before, -1)
                self._count(pod, after, 1)

    def _count(self, pod: Pod, node_labels: Labels, delta: int) -> None:
        terms = pod.affinity_terms
        for term in terms.required_anti_affinity:
            _count(self.repelling, term, None, node_labels, delta)
        for term in terms.required_affinity:
            _count(self.preferring, term, None, node_labels, delta)
        for term, weight in terms.preferred_affinity:
            _count(self.preferring, term, weight, node_labels, delta)
        for term, weight in terms.preferred_anti_affinity:
            _count(self.preferring, term, -weight, node_labels, delta)


def _count(table: TermTable, term: AffinityTerm, weight: int | None, node_labels: Labels, delta: int) -> None:
    value = node_labels.get(term.topology_key)
    if value is not None and term.selector is not None:
        table.count(term, weight, value, delta)


def _only_changed(old: Labels, new: Labels) -> tuple[Labels, Labels]:
    return (
        {key: value for key, value in old.items() if new.get(key) != value},
        {key: value for key, value in new.items() if old.get(key) != value},
    )


_NO_LABELS: Labels = {}
