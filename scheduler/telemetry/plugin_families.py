"""Families that plugins make at run time, under names with a prefix of their own."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from scheduler.telemetry.recorders import CounterFamily, Description, Family

__all__ = ["PREFIX", "PluginFamilies"]

PREFIX = "podium_plugin_"
_MAX_FAMILIES = 200
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_LABEL = re.compile(r"[a-z_][a-z0-9_]*")

F = TypeVar("F", bound=Family[Any])


class PluginFamilies:
    """All families of plugins by their full names.

    Attributes:
        by_name: the families.
    """

    def __init__(self, on_new: Callable[[Family[Any]], None] = lambda family: None) -> None:  # noqa: ARG005  nobody asks
        self.by_name: dict[str, Family[Any]] = {}
        self._on_new = on_new

    def make(self, kind: type[F], name: str, text: str, labels: Sequence[str], buckets: Sequence[float] = ()) -> F:
        """Return the family of this name, made on first use.

        Raises:
            ValueError: the name or a label is not well-formed, or the name was used for another family.
        """
        _check(kind, name, labels)
        full = PREFIX + name
        known = self.by_name.get(full)
        if known is None:
            if len(self.by_name) >= _MAX_FAMILIES:
                raise ValueError(f"metric {full} is one too many: plugins may make {_MAX_FAMILIES}")
            description = Description(full, text, tuple(labels), buckets=tuple(buckets), shared=True)
            known = self.by_name[full] = kind(description)
            self._on_new(known)
        described = known.description
        if not isinstance(known, kind) or (described.labels, described.buckets) != (tuple(labels), tuple(buckets)):
            raise ValueError(f"metric {full} was made before in another way")
        return known


def _check(kind: type[Family[Any]], name: str, labels: Sequence[str]) -> None:
    if not _NAME.fullmatch(name) or name.startswith(PREFIX):
        raise ValueError(f"metric name {name!r} must be snake case, without {PREFIX}")
    if issubclass(kind, CounterFamily) != name.endswith("_total"):
        raise ValueError(f"metric name {name!r}: counters, and only they, end in _total")
    if name in {"faults_total", "quarantined", "info"}:
        raise ValueError(f"metric name {name!r} is taken by the scheduler itself")
    wrong = [label for label in labels if not _LABEL.fullmatch(label) or label in {"le", "quantile"}]
    if wrong or len(set(labels)) < len(labels):
        raise ValueError(f"metric {name!r}: labels {tuple(labels)} must be snake case and differ")
