"""Recorders: counters, gauges and histograms cheap enough for the scheduling thread.

A recorder is a plain object with slots: recording is an integer addition, without a lock and without a label look-up
beyond one dictionary access. Scrapes read the same objects from another thread; a scrape may see a histogram's sum one
observation behind its buckets, never a torn number (design record 0004).

Invariants:
    * Every child of a family has exactly one writing thread, except in families made with ``shared=True``, whose
      children take a lock.
    * A family never holds more than ``max_children`` children; what comes after is booked under the label values
      ``other``, so a bug in a label can cost accuracy but not memory.
    * Children live until ``clear``; callers may keep ("bind") them for ever, because ``clear`` zeroes, not drops, them.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

__all__ = [
    "OVERFLOW",
    "UNEXPECTED",
    "CounterFamily",
    "CounterRecorder",
    "Description",
    "Family",
    "GaugeFamily",
    "GaugeRecorder",
    "HistogramFamily",
    "HistogramRecorder",
    "Stability",
    "exponential_buckets",
]

OVERFLOW = "other"
UNEXPECTED = "unexpected"
Stability = Literal["STABLE", "BETA", "ALPHA"]
_MAX_CHILDREN = 1_000


def _ignore() -> None: ...


def exponential_buckets(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Return ``count`` upper bounds: start, start·factor, … by repeated multiplication, as upstream computes them."""
    bounds: list[float] = []
    bound = start
    for _ in range(count):
        bounds.append(bound)
        bound *= factor
    return tuple(bounds)


class CounterRecorder:
    """A number that only grows."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0

    def inc(self, amount: float = 1) -> None:
        """Add ``amount`` (≥ 0)."""
        self.value += amount

    def clear(self) -> None:
        """Start again at zero."""
        self.value = 0


class GaugeRecorder:
    """A number that goes up and down."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0

    def add(self, amount: float) -> None:
        """Add ``amount``, which may be negative."""
        self.value += amount

    def set(self, value: float) -> None:
        """Replace the number."""
        self.value = value

    def clear(self) -> None:
        """Start again at zero."""
        self.value = 0


class HistogramRecorder:
    """Counts of observations per bucket, and their sum; the last count belongs to +Inf."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Book one observation."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def clear(self) -> None:
        """Forget all observations."""
        self.counts = [0] * len(self.counts)
        self.sum = 0.0


class _SharedCounter(CounterRecorder):
    __slots__ = ("_lock",)

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()

    def inc(self, amount: float = 1) -> None:
        with self._lock:
            self.value += amount


class _SharedGauge(GaugeRecorder):
    __slots__ = ("_lock",)

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()

    def add(self, amount: float) -> None:
        with self._lock:
            self.value += amount


class _SharedHistogram(HistogramRecorder):
    __slots__ = ("_lock",)

    def __init__(self, bounds: Sequence[float]) -> None:
        super().__init__(bounds)
        self._lock = threading.Lock()

    def observe(self, value: float) -> None:
        bucket = bisect_left(self.bounds, value)
        with self._lock:
            self.counts[bucket] += 1
            self.sum += value


@dataclass(frozen=True, slots=True)
class Description:
    """What the exposition says about a family, and how its children are made.

    Attributes:
        name: full name as exposed; a counter's ends in ``_total``.
        help: text without the stability prefix.
        labels: label names in upstream's order.
        stability: shown as ``[STABLE] `` etc. before the help text.
        buckets: upper bounds of a histogram, without +Inf.
        shared: more than one thread writes to the same child.
        max_children: bound on the number of label combinations.
        optional: without labels: absent until the first value, instead of 0 from the start.
    """

    name: str
    help: str
    labels: tuple[str, ...] = ()
    stability: Stability = "ALPHA"
    buckets: tuple[float, ...] = ()
    shared: bool = False
    max_children: int = _MAX_CHILDREN
    optional: bool = False

    @property
    def help_line(self) -> str:
        """Return the help text as exposed."""
        return f"[{self.stability}] {self.help}"


R = TypeVar("R", CounterRecorder, GaugeRecorder, HistogramRecorder)


class Family(Generic[R]):
    """All children of one metric, by label values."""

    kind: Literal["counter", "gauge", "histogram"]

    def __init__(self, description: Description) -> None:
        self.description = description
        self.by_labels: dict[tuple[str, ...], R] = {}
        self._allowed: dict[int, frozenset[str]] = {}
        self._on_unexpected: Callable[[], None] = _ignore
        if not description.labels and not description.optional:
            self.labels()

    def labels(self, *values: str) -> R:
        """Return the child for these label values, made on first use."""
        child = self.by_labels.get(values)
        return child if child is not None else self._add(values)

    def _add(self, values: tuple[str, ...]) -> R:
        names = self.description.labels
        if len(values) != len(names):
            msg = f"metric {self.description.name} takes the labels {names}, got {values}"
            raise ValueError(msg)
        if self._allowed:
            values = tuple(self._admit(i, value) for i, value in enumerate(values))
        if values not in self.by_labels and len(self.by_labels) >= self.description.max_children:
            values = (OVERFLOW,) * len(names)
        # setdefault keeps the first child when two threads of a shared family meet here.
        return self.by_labels.setdefault(values, self._make())

    def _admit(self, index: int, value: str) -> str:
        allowed = self._allowed.get(index)
        if allowed is None or value in allowed:
            return value
        self._on_unexpected()
        return UNEXPECTED

    def allow_only(self, label: str, values: frozenset[str], on_unexpected: Callable[[], None] | None = None) -> None:
        """Book all other values of a label as ``unexpected`` (``--allow-metric-labels``); before the first use.

        Args:
            label: one of the family's.
            values: the allowed ones.
            on_unexpected: is called each time another one comes; any thread.

        Raises:
            ValueError: there is no such label.
        """
        self._allowed[self.description.labels.index(label)] = values
        self._on_unexpected = on_unexpected or _ignore

    def _make(self) -> R:
        raise NotImplementedError

    def children(self) -> Iterator[tuple[tuple[str, ...], R]]:
        """Yield label values and child; safe beside a writing thread."""
        yield from list(self.by_labels.items())

    def clear(self) -> None:
        """Zero every child; bound children stay valid."""
        for _, child in self.children():
            child.clear()


class CounterFamily(Family[CounterRecorder]):
    """A counter; the name ends in ``_total``."""

    kind = "counter"

    def _make(self) -> CounterRecorder:
        return _SharedCounter() if self.description.shared else CounterRecorder()


class GaugeFamily(Family[GaugeRecorder]):
    """A gauge."""

    kind = "gauge"

    def _make(self) -> GaugeRecorder:
        return _SharedGauge() if self.description.shared else GaugeRecorder()

    def clear(self) -> None:
        """Keep all children: a gauge mirrors a state, which a reset of the metrics does not change.

        # differs: upstream's reset drops gauges too, after which +1/-1 bookkeeping shows wrong numbers.
        """


class HistogramFamily(Family[HistogramRecorder]):
    """A histogram with the description's buckets."""

    kind = "histogram"

    def _make(self) -> HistogramRecorder:
        make = _SharedHistogram if self.description.shared else HistogramRecorder
        return make(self.description.buckets)
