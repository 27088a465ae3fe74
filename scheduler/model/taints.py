"""Taints and tolerations: which toleration covers which taint (spec §4.5)."""

from __future__ import annotations

from scheduler.model.meta import Value

__all__ = ["Taint"]


class Taint(Value, frozen=True):
    """A mark on a node that keeps pods away unless they tolerate it."""

    key: str = ""
    value: str = ""
    effect: str = ""
