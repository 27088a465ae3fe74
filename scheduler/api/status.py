"""Status: what a plugin answers, and how several answers become one.

A "no" is a value, never an exception. A plugin that has nothing to object returns ``None``, which stands for success
everywhere (parity: Go's nil ``*Status``), so a ten-line plugin needs no import for the common case and the hot path
compares with ``is None``.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Self

__all__ = ["Code", "Status"]


class Code(enum.IntEnum):
    """The kinds of answer; names and numbers as in ``k8s.io/kube-scheduler/framework``."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5
    PENDING = 6

    def __str__(self) -> str:
        """Return upstream's spelling, which metrics and messages show: ``UnschedulableAndUnresolvable``."""
        return _CODE_NAMES[self]


_CODE_NAMES = {
    Code.SUCCESS: "Success",
    Code.ERROR: "Error",
    Code.UNSCHEDULABLE: "Unschedulable",
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE: "UnschedulableAndUnresolvable",
    Code.WAIT: "Wait",
    Code.SKIP: "Skip",
    Code.PENDING: "Pending",
}

_REJECTED = frozenset({Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING})


@dataclass(frozen=True, slots=True)
class Status:
    """One plugin's answer other than plain success.

    Attributes:
        code: the kind of answer.
        reasons: texts for the pod's owner; counted over all nodes in the FailedScheduling message.
        plugin: name of the plugin that gave the answer; filled in by the framework.
        cause: the exception behind an ``ERROR``, if there was one.
    """

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""
    cause: BaseException | None = None

    @classmethod
    def unschedulable(cls, *reasons: str) -> Self:
        """Answer "not now": evicting pods from the node might help."""
        return cls(Code.UNSCHEDULABLE, reasons)

    @classmethod
    def unresolvable(cls, *reasons: str) -> Self:
        """Answer "not here": evicting pods from the node cannot help, so preemption leaves the node out."""
        return cls(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)

    @classmethod
    def pending(cls, *reasons: str) -> Self:
        """Answer "waiting for something outside": the pod skips its back-off when the plugin's event comes."""
        return cls(Code.PENDING, reasons)

    @classmethod
    def error(cls, message: str, cause: BaseException | None = None) -> Self:
        """Report trouble that says nothing about the node; the whole attempt fails and is retried after a back-off."""
        return cls(Code.ERROR, (message,), cause=cause)

    @staticmethod
    def skip() -> Status:
        """Answer "this does not concern me".

        From PreFilter or PreScore: leave the plugin's Filter or Score out of the attempt. From Bind: ask the next one.
        """
        return _SKIP

    @classmethod
    def wait(cls, *reasons: str) -> Self:
        """Answer of Permit: hold the pod until it is allowed, rejected or timed out."""
        return cls(Code.WAIT, reasons)

    @property
    def is_rejected(self) -> bool:
        """Say whether the answer rejects the pod for a reason of scheduling (not an error, not a wait)."""
        return self.code in _REJECTED

    @property
    def message(self) -> str:
        """Return all reasons in one text, joined as upstream joins them."""
        return ", ".join(self.reasons)

    def by(self, plugin: str) -> Status:
        """Return this status with the plugin's name on it."""
        return self if self.plugin == plugin else Status(self.code, self.reasons, plugin, self.cause)


_SKIP = Status(Code.SKIP)
