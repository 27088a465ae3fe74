"""Term questions: for a kind of pod, what do the terms that select it add up to, kept from one asking to the next.

Pods that agree in all that the terms can tell apart (see ``model.visible_labels``) are one question. Its sums follow
the log of changes, so asking again costs a step for each carrier that came or went since, whether one term selects the
pod or thousands do. A question that is new, or was not asked for long, is counted from the terms that may select the
pod. The questions asked last are kept, as long as their sums are not too large together.

Invariant (tested): after any history an answer equals the one counted from scratch.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from scheduler.model.affinity import AffinityTerm
from scheduler.model.visible_labels import OTHER, Pairs, VisibleLabels
from scheduler.state.index.carried import Carried
from scheduler.state.index.term_buckets import TermBuckets
from scheduler.state.index.term_counts import DenseCounts, TermCounts
from scheduler.state.index.term_log import TermChange, TermLog

__all__ = ["Asker", "TermQuestions", "Visible"]

Labels = Mapping[str, str]

_MAX_QUESTIONS = 256
_MAX_ENTRIES = 500_000
_MAX_KNOWN = 1024
_CHEAP_BACKLOG = 64


class Asker(NamedTuple):
    """What terms can see of a pod: equal askers are selected by the same terms.

    A namespace that no term names is ``OTHER``, as label values are.
    """

    namespace: str
    labels: Pairs
    namespace_labels: Pairs


class Visible:
    """What the terms of a table can tell apart."""

    __slots__ = ("_labels", "_namespace_labels", "_namespaces")

    def __init__(self) -> None:
        self._namespaces: Counter[str] = Counter()
        self._labels = VisibleLabels()
        self._namespace_labels = VisibleLabels()

    def add(self, term: AffinityTerm) -> None:
        """Take in a term."""
        self._namespaces.update(term.namespaces)
        self._labels.add(term.selector)
        self._namespace_labels.add(term.namespace_selector)

    def remove(self, term: AffinityTerm) -> None:
        """Take out a term."""
        for namespace in term.namespaces:
            if self._namespaces[namespace] == 1:
                del self._namespaces[namespace]
            else:
                self._namespaces[namespace] -= 1
        self._labels.remove(term.selector)
        self._namespace_labels.remove(term.namespace_selector)

    def asker(self, namespace: str, labels: Labels, namespace_labels: Labels) -> Asker:
        """Return what the terms can see."""
        seen = namespace if namespace in self._namespaces else OTHER
        return Asker(seen, self._labels.of(labels), self._namespace_labels.of(namespace_labels))


class _Question:
    """One question with its answer.

    Attributes:
        position: the changes up to here are in the sums.
        sums: the answer by topology key and whether the terms are required; none of them is empty.
    """

    __slots__ = ("_asker", "_dense", "_known", "_labels", "_namespace_labels", "position", "sums")

    def __init__(self, asker: Asker, dense: DenseCounts) -> None:
        self._asker = asker
        self._labels, self._namespace_labels = dict(asker.labels), dict(asker.namespace_labels)
        self._dense = dense
        self._known: dict[Carried, bool] = {}
        self.sums: dict[tuple[str, bool], TermCounts] = {}
        self.position = -1

    def count(self, terms: TermBuckets) -> None:
        """Count from scratch."""
        self.close()
        for carried in terms.candidates(self._asker.namespace, self._labels):
            if self._is_selected_by(carried):
                for value, count in carried.counts.items():
                    self._add(carried, value, count)

    def apply(self, changes: Iterable[TermChange]) -> None:
        """Take in what happened since."""
        for carried, value, delta in changes:
            if self._is_selected_by(carried):
                self._add(carried, value, delta)

    def close(self) -> None:
        """Drop the answer."""
        for sums in self.sums.values():
            self._dense.forget(sums)
        self.sums.clear()

    def costs_less_anew(self, terms: TermBuckets, backlog: int) -> bool:
        """Say whether counting from scratch is less work than that many changes."""
        if backlog <= max(_CHEAP_BACKLOG, self.size()):
            return False
        some = islice(terms.candidates(self._asker.namespace, self._labels), backlog)
        return sum(1 for _ in some) + self.size() < backlog

    def size(self) -> int:
        """Return the number of sums."""
        return sum(len(sums.counts) for sums in self.sums.values())

    def _is_selected_by(self, carried: Carried) -> bool:
        known = self._known.get(carried)
        if known is None:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            known = carried.term.matches(self._asker.namespace, self._labels, self._namespace_labels)
            self._known[carried] = known
        return known

    def _add(self, carried: Carried, value: str, count: int) -> None:
        key = (carried.term.topology_key, carried.weight is None)
        sums = self.sums.get(key)
        if sums is None:
            sums = self.sums[key] = TermCounts(*key, self._dense)
        sums.add(value, count, 1 if carried.weight is None else carried.weight)
        if not sums.counts:
            self._dense.forget(sums)
            del self.sums[key]


class TermQuestions:
    """The questions asked last about one table."""

    __slots__ = ("_dense", "_log", "_num_entries", "_questions", "_sizes", "_terms")

    def __init__(self, terms: TermBuckets, log: TermLog, dense: DenseCounts) -> None:
        self._terms = terms
        self._log = log
        self._dense = dense
        self._questions: OrderedDict[Asker, _Question] = OrderedDict()
        self._sizes: dict[Asker, int] = {}
        self._num_entries = 0

    def answer(self, asker: Asker) -> Sequence[TermCounts]:
        """Return the sums for the asker, none of them empty."""
        question = self._questions.get(asker)
        if question is None:
            question = self._questions[asker] = _Question(asker, self._dense)
        else:
            self._questions.move_to_end(asker)
        if question.position != self._log.position:
            self._catch_up(question)
            self._note_size(asker, question)
        return list(question.sums.values())

    def _catch_up(self, question: _Question) -> None:
        changes = self._log.since(question.position)
        if changes is None or question.costs_less_anew(self._terms, len(changes)):
            question.count(self._terms)
        else:
            question.apply(changes)
        question.position = self._log.position

    def _note_size(self, asker: Asker, question: _Question) -> None:
        size = question.size()
        self._num_entries += size - self._sizes.get(asker, 0)
        self._sizes[asker] = size
        while len(self._questions) > 1 and (len(self._questions) > _MAX_QUESTIONS or self._num_entries > _MAX_ENTRIES):
            oldest, dropped = self._questions.popitem(last=False)
            dropped.close()
            self._num_entries -= self._sizes.pop(oldest)
