"""CycleState: what the plugins of one scheduling attempt tell one another and their own later calls.

One state lives from the first plugin call of an attempt to PostBind. It is not shared between pods. Preemption's dry
runs work on clones, so a value that a plugin changes in ``add_pod``/``remove_pod`` must offer ``clone()``.
"""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar, cast, runtime_checkable

from scheduler.model.pod import Pod

__all__ = ["PODS_TO_ACTIVATE", "Cloneable", "CycleState", "StateKey"]

T = TypeVar("T")


@runtime_checkable
class Cloneable(Protocol):
    """A state value that a dry run may change without touching the original."""

    def clone(self) -> object:
        """Return an independent copy."""


class StateKey(Generic[T]):
    """A typed name under which a plugin keeps one value: ``KEY: StateKey[MyState] = StateKey("PreFilterMyPlugin")``."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"StateKey({self.name!r})"


PODS_TO_ACTIVATE: StateKey[dict[str, Pod]] = StateKey("PodsToActivate")
"""Pods by ``namespace/name`` that a plugin wants in the active queue once the scheduling or binding cycle ends."""


class CycleState:
    """Typed key-value store of one attempt.

    Attributes:
        record_plugin_metrics: whether this attempt is in the 10 % sample whose plugin durations are measured.
        skip_filter_plugins: names of plugins whose PreFilter answered Skip.
        skip_score_plugins: names of plugins whose PreScore answered Skip.
        skip_pre_bind_plugins: names of plugins whose PreBind pre-flight answered Skip.
    """

    __slots__ = (
        "_values",
        "record_plugin_metrics",
        "skip_filter_plugins",
        "skip_pre_bind_plugins",
        "skip_score_plugins",
    )

    def __init__(self, *, record_plugin_metrics: bool = False) -> None:
        self._values: dict[StateKey[object], object] = {}
        self.record_plugin_metrics = record_plugin_metrics
        self.skip_filter_plugins: set[str] = set()
        self.skip_score_plugins: set[str] = set()
        self.skip_pre_bind_plugins: set[str] = set()

    def write(self, key: StateKey[T], value: T) -> None:
        """Store ``value`` under ``key``, replacing what was there."""
        self._values[cast("StateKey[object]", key)] = value

    def read(self, key: StateKey[T]) -> T:
        """Return the value under ``key``.

        Raises:
            KeyError: nothing was written under the key in this attempt.
        """
        return cast("T", self._values[cast("StateKey[object]", key)])

    def get(self, key: StateKey[T]) -> T | None:
        """Return the value under ``key``, or None."""
        return cast("T | None", self._values.get(cast("StateKey[object]", key)))

    def delete(self, key: StateKey[T]) -> None:
        """Forget the value under ``key``; absent keys are fine."""
        self._values.pop(cast("StateKey[object]", key), None)

    @property
    def is_empty(self) -> bool:
        """Say whether nothing was written."""
        return not self._values

    def adopt(self, other: CycleState) -> None:
        """Take over what ``other`` has and this one lacks, and its skips; the values are shared, not copied."""
        self._values = other._values | self._values
        self.skip_filter_plugins = other.skip_filter_plugins.copy()
        self.skip_score_plugins = other.skip_score_plugins.copy()

    def take(self, other: CycleState) -> None:
        """Take over the values that ``other`` has, shared, not copied; not its skips."""
        self._values.update(other._values)

    def clone(self) -> CycleState:
        """Return a state for a dry run: values that offer ``clone()`` are cloned, others are shared."""
        copy = CycleState(record_plugin_metrics=self.record_plugin_metrics)
        copy.skip_filter_plugins = set(self.skip_filter_plugins)
        copy.skip_score_plugins = set(self.skip_score_plugins)
        copy.skip_pre_bind_plugins = set(self.skip_pre_bind_plugins)
        # As isinstance(v, Cloneable) says, but without its cost: preemption clones states by the hundred.
        copy._values = {k: v.clone() if hasattr(v, "clone") else v for k, v in self._values.items()}
        return copy
