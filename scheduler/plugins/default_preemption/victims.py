"""Victims: the dry run on one node. Who must go so that the pod fits?

    take off all less important pods ─▶ does it fit now? ─▶ put them back one by one, the most important first, and
                                          no: not here        those that budgets protect before the others;
                                                              whoever does not fit back is a victim

Works on a private copy of the node and of the cycle state. Source: ``SelectVictimsOnNode``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scheduler.api import CycleState, EditableNode, Handle, Pod, Status, Victims
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
    """

    handle: Handle
    state: CycleState
    pod: Pod
    budgets: BudgetsByNamespace
    now_s: float

    def on(self, node: EditableNode) -> Victims | Status:
        """Return who must leave the node, a copy that is changed on the way; or why that would not help.

        Victims without pods mean that the pod would fit as it is.
        """
        pods = [other for other in node.pods if other.priority < self.pod.priority]
        if not pods:
            return NO_VICTIMS
        trial = _Trial(self.handle, self.state.clone(), self.pod, node)
        try:
            for other in pods:
                trial.take_off(other)
            status = trial.judge()
            return self._reprieve(trial, pods) if status is None else status
        except _Broken as broken:
            return Status.error(broken.status.message, broken.status.cause)

    def _reprieve(self, trial: _Trial, pods: Sequence[Pod]) -> Victims:
        by_importance = sorted(pods, key=lambda other: importance(other, self.now_s))
        violating, others = split(by_importance, self.budgets)
        unspared = [other for other in violating if not trial.put_back(other)]
        victims = unspared + [other for other in others if not trial.put_back(other)]
        if violating and others:
            victims.sort(key=lambda other: importance(other, self.now_s))
        return Victims(tuple(victims), len(unspared))


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
