"""Matching pods: how many pods on each node a label selector matches, without a walk over the pods.

Spread and affinity ask this in every cycle, mostly the same few questions again. Each live question (namespaces,
selector, terminating pods or not) keeps its answer as a column with one entry a slot and a position in the log of
changes. When it is asked again it catches up with the log, one step for each pod that came or went since; when that
would cost more than counting anew (a long absence, a log that no longer reaches back), it is counted anew from the
classes. A question that is not asked costs nothing, and the least recently asked gives way to the next beyond
``_MAX_QUESTIONS``.

Invariant (tested): after any history an answer equals the one counted from scratch.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from scheduler.api.views import CodedColumn, IntColumn
from scheduler.model.meta import LabelSelector, LabelSelectorRequirement
from scheduler.model.pod import Pod
from scheduler.model.selectors import label_selector_matches, value_predicate
from scheduler.state.index.by_code import CodesBySlot, SumsByCode
from scheduler.state.index.label_classes import CHEAP_BACKLOG, Change, LabelClass, LabelClasses

__all__ = ["MatchingPods"]

_MAX_QUESTIONS = 512
_MAX_KNOWN = 256
_MAX_KEYS = 8
_FEW_COUNTS = 16

Slots = NDArray[np.intp]
QuestionKey = tuple[frozenset[str] | None, tuple[tuple[str, str], ...], tuple[LabelSelectorRequirement, ...], bool]


class _Question:
    """One live question with its answer.

    Attributes:
        position: the changes up to here are in the answer.
        rows: the answer in the row order of ``rows_of``, or None if it has to be gathered.
    """

    __slots__ = (
        "_by_key",
        "_classes",
        "_column",
        "_include_terminating",
        "_known",
        "_namespaces",
        "_selector",
        "position",
        "rows",
        "rows_of",
    )

    def __init__(
        self,
        classes: LabelClasses,
        namespaces: frozenset[str] | None,
        selector: LabelSelector,
        include_terminating: bool,
    ) -> None:
        self._classes = classes
        self._namespaces = namespaces
        self._selector = selector
        self._include_terminating = include_terminating
        self.rows: IntColumn | None = None
        self.rows_of: Slots | None = None
        self.position = 0
        self._column = np.zeros(0, np.int64)
        self._known: dict[LabelClass, bool] = {}
        self._by_key: dict[str, SumsByCode] = {}
        self._count()

    def answer(self, slots: Slots) -> IntColumn:
        """Return the up-to-date answer for the nodes in these slots; the array is never written to again."""
        self._catch_up()
        if self.rows is None or self.rows_of is not slots:
            self.rows, self.rows_of = self._column[slots], slots
            self.rows.flags.writeable = False
        return self.rows

    def answer_by(self, key: str, codes: CodesBySlot) -> IntColumn:
        """Return the up-to-date answer added up by code of a label; the array is never written to again."""
        self._catch_up()
        kept = self._by_key.get(key)
        if kept is None or kept.codes is not codes:
            if kept is None and len(self._by_key) >= _MAX_KEYS:
                self._by_key.clear()
            kept = self._by_key[key] = SumsByCode(codes, self._column[codes.slots])
        return kept.hand_out()

    def _catch_up(self) -> None:
        """Take in what happened since; a node that is new may have a slot beyond the column's end."""
        classes = self._classes
        if len(self._column) < classes.num_slots:
            self._column = np.append(self._column, np.zeros(classes.num_slots - len(self._column), np.int64))
        backlog = classes.position - self.position
        if not backlog:
            return
        many = backlog > CHEAP_BACKLOG and backlog > classes.num_within(self._namespaces)
        changes = None if many else classes.changes_since(self.position)
        if changes is None:
            self._count()
        else:
            self._apply(changes)

    def _apply(self, changes: Sequence[Change]) -> None:
        sums = self._by_key.values()
        for of, slot, delta in changes:
            if self._concerns(of):
                self._column[slot] += delta
                self.rows = None
                for by_code in sums:
                    by_code.add(slot, delta)
        self.position = self._classes.position

    def _count(self) -> None:
        column = np.zeros(self._classes.num_slots, np.int64)
        for of in self._candidates():
            if self._concerns(of):
                _add_counts(column, of.counts)
        self._column, self.rows = column, None
        self._by_key.clear()
        self.position = self._classes.position

    def _candidates(self) -> Iterable[LabelClass]:
        """Return the classes that the first condition lets pass: a pod may have hundreds of terms."""
        within, selector = self._classes.within(self._namespaces), self._selector
        if selector.match_labels:
            key, value = next(iter(selector.match_labels.items()))
            return [of for of in within if of.labels.get(key) == value]
        if selector.match_expressions:
            first = selector.match_expressions[0]
            key, is_wanted = first.key, value_predicate(first)
            return [of for of in within if is_wanted(of.labels.get(key))]
        return within

    def _concerns(self, of: LabelClass) -> bool:
        known = self._known.get(of)
        if known is None:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            known = self._known[of] = self._selects(of)
        return known

    def _selects(self, of: LabelClass) -> bool:
        if of.is_terminating and not self._include_terminating:
            return False
        if self._namespaces is not None and of.namespace not in self._namespaces:
            return False
        return label_selector_matches(self._selector, of.labels)


class MatchingPods:
    """The index: pods by class, and the live questions about them.

    Pods and nodes are put in by the cache alone, which gives a node a slot before it puts pods on it.
    """

    __slots__ = ("_classes", "_codes", "_questions")

    def __init__(self) -> None:
        self._classes = LabelClasses()
        self._questions: OrderedDict[QuestionKey, _Question] = OrderedDict()
        self._codes: dict[str, CodesBySlot] = {}

    # --- written by the cache ---

    def open_node(self, name: str) -> None:
        """Get ready for pods on a node that was not here."""
        self._classes.open_slot(name)

    def close_node(self, name: str) -> None:
        """Forget a node that has no pods left."""
        self._classes.close_slot(name)

    def add(self, pod: Pod) -> None:
        """Count a pod in on the node that its value names."""
        self._classes.add(pod)

    def remove(self, pod: Pod) -> None:
        """Count out a pod that was counted in with this value."""
        self._classes.remove(pod)

    def replace(self, old: Pod, new: Pod) -> None:
        """Follow a new version of a pod that stays on its node."""
        before, after = old.metadata, new.metadata
        if (
            before.labels != after.labels
            or before.namespace != after.namespace
            or (before.deletion_timestamp is None) != (after.deletion_timestamp is None)
        ):
            self.remove(old)
            self.add(new)

    # --- asked ---

    def slots(self, names: Sequence[str]) -> Slots:
        """Return the slots of these nodes, in this order; good until one of them is closed."""
        return np.fromiter(map(self._classes.slot, names), np.intp, len(names))

    def counts(
        self,
        slots: Slots,
        namespaces: frozenset[str] | None,
        selector: LabelSelector | None,
        *,
        include_terminating: bool,
    ) -> IntColumn:
        """Return for each node how many pods in ``namespaces`` (None: in all) the selector matches.

        A missing selector matches no pod. The array is never written to again.
        """
        if selector is None:
            return np.zeros(len(slots), np.int64)
        return self._question(namespaces, selector, include_terminating).answer(slots)

    def counts_by(
        self,
        key: str,
        column: CodedColumn[str],
        slots: Slots,
        namespaces: frozenset[str] | None,
        selector: LabelSelector | None,
        *,
        include_terminating: bool,
    ) -> IntColumn:
        """Return ``counts`` added up by code of ``column``, the label ``key`` of the nodes in ``slots``, and a 0.

        Nodes without the label are left out. The array is never written to again.
        """
        if selector is None:
            return np.zeros(len(column.values) + 1, np.int64)
        codes = self._codes.get(key)
        if codes is None or codes.column is not column or codes.slots is not slots:
            if codes is None and len(self._codes) >= _MAX_KEYS:
                self._codes.clear()
            codes = self._codes[key] = CodesBySlot(column, slots)
        return self._question(namespaces, selector, include_terminating).answer_by(key, codes)

    def _question(
        self, namespaces: frozenset[str] | None, selector: LabelSelector, include_terminating: bool
    ) -> _Question:
        key = (
            namespaces,
            tuple(sorted(selector.match_labels.items())),
            selector.match_expressions,
            include_terminating,
        )
        questions = self._questions
        question = questions.get(key)
        if question is None:
            if len(questions) >= _MAX_QUESTIONS:
                questions.popitem(last=False)
            question = questions[key] = _Question(self._classes, namespaces, selector, include_terminating)
        else:
            questions.move_to_end(key)
        return question


def _add_counts(column: IntColumn, counts: Mapping[int, int]) -> None:
    if len(counts) <= _FEW_COUNTS:
        for slot, count in counts.items():
            column[slot] += count
        return
    slots = np.fromiter(counts.keys(), np.intp, len(counts))
    column[slots] += np.fromiter(counts.values(), np.int64, len(counts))
