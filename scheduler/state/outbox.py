"""Outbox: what the core wants done outside. The driver in ``app`` empties it after every decision.

Instructions are values: the core neither knows who carries them out nor waits for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from scheduler.api.cycle_state import CycleState
from scheduler.api.preemption import Eviction
from scheduler.api.queued import QueuedPodInfo
from scheduler.model.meta import Condition
from scheduler.model.pod import Pod

if TYPE_CHECKING:
    from scheduler.framework.runtime import Framework

__all__ = ["EmitEvent", "Instruction", "Outbox", "PatchPodStatus", "StartBinding"]


@dataclass(slots=True, eq=False)
class StartBinding:
    """Carry out a decision: wait on Permit, PreBind, bind, PostBind. Also the job's identity in every later call.

    Attributes:
        framework: the profile's plugins.
        state: the attempt's cycle state.
        info: the queue's record of the pod.
        assumed: the pod with ``spec.nodeName`` set, as the cache holds it.
        node_name: the chosen node.
        started_s: when the attempt began, on the engine's perf counter.
        is_waiting: Permit put the pod on hold.
    """

    framework: Framework
    state: CycleState
    info: QueuedPodInfo
    assumed: Pod
    node_name: str
    started_s: float
    is_waiting: bool = False


@dataclass(frozen=True, slots=True)
class PatchPodStatus:
    """Tell the pod why it is pending, or where it will run.

    Attributes:
        pod: the newest version known; the patch is computed against it.
        condition: the PodScheduled condition to set, or None to leave conditions alone.
        nominated_node_name: value to set ("" clears); None leaves it.
    """

    pod: Pod
    condition: Condition | None
    nominated_node_name: str | None = None


@dataclass(frozen=True, slots=True)
class EmitEvent:
    """Record a Kubernetes event about a pod.

    Attributes:
        regarding: the pod.
        reporter: schedulerName of the profile.
        kind: ``Normal`` or ``Warning``.
        reason: e.g. ``FailedScheduling``.
        action: e.g. ``Scheduling``.
        note: the text, at most 1,024 bytes.
        related: a second pod the event is about (the preemptor), or None.
    """

    regarding: Pod
    reporter: str
    kind: str
    reason: str
    action: str
    note: str
    related: Pod | None = None


Instruction = StartBinding | PatchPodStatus | EmitEvent | Eviction


class Outbox:
    """Instructions in the order in which the core gave them."""

    __slots__ = ("_items",)

    def __init__(self) -> None:
        self._items: list[Instruction] = []

    def push(self, instruction: Instruction) -> None:
        """Add an instruction."""
        self._items.append(instruction)

    def drain(self) -> list[Instruction]:
        """Return all instructions and forget them."""
        items, self._items = self._items, []
        return items

    def __len__(self) -> int:
        return len(self._items)
