"""Victims: the dry run on one node. Who must go so that the pod fits?

    take off all less important pods ─▶ does it fit now? ─▶ put them back one by one, the most important first, and
                                          no: not here        those that budgets protect before the others;
                                                              whoever does not fit back is a victim

Where resources alone decide, arithmetic says it at once (``Handle.sparing``); else the steps are gone through on a
private copy of the node and of the cycle state. Source: ``SelectVictimsOnNode``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scheduler.api import CycleState, EditableNode, Handle, NodeView, Pod, Spare, Status, Victims
from scheduler.framework.nominations import editable_copy
from scheduler.plugins.default_preemption.budgets import BudgetsByNamespace, split

__all__ = ["NO_VICTIMS", "NO_VICTIMS_FOUND", "DryRun", "importance"]

NO_VICTIMS_FOUND = "No preemption victims found for incoming pod"
NO_VICTIMS = Status.unresolvable(NO_VICTIMS_FOUND)


class _Broken(Exception):  # noqa: N818  carries a plugin's Error out of the dry run
    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


def importance(pod: Pod, now_s: float) -> tuple[int, float]:
    """Return a key that sorts the most important pod first: higher priority, then earlier start.

    A pod that has not started counts as started now.
    """
    started_s = pod.started_s
    return -pod.priority, now_s if started_s is None else started_s


@dataclass(frozen=True, slots=True)
class DryRun:
    """What the dry runs of one attempt share.

    Attributes:
        handle: evaluates "what if".
        state: the attempt's cycle state; each node gets a clone.
        pod: the pod that wants a place.
        budgets: the disruption budgets.
        now_s: the time.
        spare: the short cut for this pod, if there is one.
    """

    handle: Handle
    state: CycleState
    pod: Pod
    budgets: BudgetsByNamespace
    now_s: float
    spare: Spare | None = None

    def on(self, node: NodeView) -> Victims | Status:
        """Return who must leave the node; or why that would not help.

        Victims without pods mean that the pod would fit as it is.
        """
        priority = self.pod.priority
        pods = [other for other in node.pods if other.priority < priority]
        if not pods:
            return NO_VICTIMS
        by_importance = sorted(pods, key=lambda other: importance(other, self.now_s))
        violating, others = split(by_importance, self.budgets)
        in_order = violating + others if violating else others
        stays = self.spare(node, in_order) if self.spare is not None else None
        if stays is None:
            stays = self._try(editable_copy(node), pods, in_order)
        if isinstance(stays, Status):
            return stays
        victims = [other for other, spared in zip(in_order, stays, strict=True) if not spared]
        num_unspared = stays[: len(violating)].count(False)
        if violating and others:
            victims.sort(key=lambda other: importance(other, self.now_s))
        return Victims(tuple(victims), num_unspared)

    def _try(self, node: EditableNode, pods: Sequence[Pod], in_order: Sequence[Pod]) -> list[bool] | Status:
        """Go through the steps on a copy of the node; returns for each pod ``in_order`` whether it stays."""
        trial = _Trial(self.handle, self.state.clone(), self.pod, node)
        try:
            for other in pods:
                trial.take_off(other)
            status = trial.judge()
            return [trial.put_back(other) for other in in_order] if status is None else status
        except _Broken as broken:
            return Status.error(broken.status.message, broken.status.cause)


class _Trial:
    """The copy of the node with the copy of the state, kept in step."""

    __slots__ = ("_handle", "_node", "_pod", "_state")

    def __init__(self, handle: Handle, state: CycleState, pod: Pod, node: EditableNode) -> None:
        self._handle = handle
        self._state = state
        self._pod = pod
        self._node = node

    def judge(self) -> Status | None:
        """Say whether the pod fits as things are."""
        return self._handle.run_filters(self._state, self._pod, self._node)

    def take_off(self, other: Pod) -> None:
        """Take a pod off the node."""
        self._node.remove_pod(other)
        status = self._handle.remove_pod(self._state, self._pod, other, self._node)
        if status is not None:
            raise _Broken(status)

    def put_back(self, other: Pod) -> bool:
        """Put a pod back if the pod that wants the place still fits beside it; say whether it does."""
        self._node.add_pod(other)
        status = self._handle.add_pod(self._state, self._pod, other, self._node)
        if status is not None:
            raise _Broken(status)
        if self.judge() is None:
            return True
        self.take_off(other)
        return False
