"""Gang: pods that are of use only together are placed together.

Pods say what gang they are of, and how many it takes, by two labels. Each member that has its node is held in Permit,
where it keeps its place without being bound; the one that completes the gang lets all go.

    all members there? ──no──▶ wait for them, holding nothing
    it was given up a moment ago? ──yes──▶ wait, longer each time, holding nothing
    another gang half placed? ──yes──▶ wait until it is done, holding nothing
    a node for this one? ──no──▶ give up: all give back what they hold
    the last one? ──no──▶ hold the place, have the others tried ──time is up──▶ give up
          └──yes──▶ all go on

Only one gang is half placed at any time, and only while its members are tried one after the other. So two gangs never
wait for each other's places.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import msgspec

from scheduler.api import (
    ActionType,
    ClusterEvent,
    CycleState,
    EventRegistration,
    EventResource,
    Handle,
    NodesView,
    PermitPlugin,
    PluginArgs,
    Pod,
    PostFilterPlugin,
    PostFilterResult,
    PreFilterPlugin,
    PreFilterResult,
    QueueingHint,
    ReservePlugin,
    Status,
    WaitingPod,
)

__all__ = ["Gang", "GangArgs"]

_FIRST_BACKOFF_S = 1.0
_LONGEST_BACKOFF_S = 60.0
_FORGET_S = 600.0


class GangArgs(PluginArgs):
    """What ``pluginConfig`` may say.

    Attributes:
        name_label: the label whose value is the gang's name; gangs of two namespaces are two gangs.
        size_label: the label whose value is the number of pods it takes.
        wait_seconds: how long places are held for members that are slow to come.
    """

    name_label: str = "gang.podium.dev/name"
    size_label: str = "gang.podium.dev/size"
    wait_seconds: Annotated[float, msgspec.Meta(gt=0, le=900)] = 30.0


@dataclass(slots=True)
class _GivenUp:
    """A gang that could not be placed: when it may be tried again, and who has asked meanwhile."""

    times: int = 0
    not_before_s: float = 0.0
    asked: dict[str, Pod] = field(default_factory=dict)


class Gang(PreFilterPlugin, PostFilterPlugin, ReservePlugin, PermitPlugin):
    """See the module. Pods without the label are no concern of it."""

    name = "Gang"
    api_version = 1
    Args = GangArgs

    def __init__(self, args: GangArgs, handle: Handle) -> None:
        """Make it."""
        self._args = args
        self._handle = handle
        self._pods = handle.lister(Pod)
        self._turned_away: dict[str, Pod] = {}
        """Members of gangs that have to wait until another is done."""
        self._given_up: dict[str, _GivenUp] = {}
        self._completed = handle.metrics.counter("gang_completed_total", "Gangs that were placed.")
        self._retreats = handle.metrics.counter("gang_given_up_total", "Times that held places were given back.")
        handle.run_in_background(lambda: handle.call_soon_threadsafe(self._wake), every_s=1)

    def events(self) -> Sequence[EventRegistration]:
        """Try a rejected member again when another one comes; all else is done by ``activate``."""
        return (EventRegistration(ClusterEvent(EventResource.POD, ActionType.ADD), self._is_of_same_gang),)

    # --- may this member be tried now? -------------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodesView) -> tuple[PreFilterResult | None, Status | None]:
        """Let a member be tried if its gang is complete and no other one is half placed."""
        del state, nodes
        gang = self._gang(pod)
        if gang is None:
            return None, Status.skip()
        size = self._size(pod)
        if size is None:
            return None, Status.unresolvable(f"label {self._args.size_label} is no number above zero")
        there = sum(1 for _ in self._members(pod))
        # Unresolvable: evicting other pods would not help.
        if there < size:
            return None, Status.unresolvable(f"gang {gang} has {there} of {size} pods")
        given_up = self._given_up.get(gang)
        if given_up is not None and self._handle.clock.now() < given_up.not_before_s:
            given_up.asked[pod.pod_key] = pod
            return None, Status.unresolvable(f"gang {gang} was given up a moment ago")
        half_placed = next((g for held in self._held() if (g := self._gang(held.pod)) != gang), None)
        if half_placed is not None:
            self._turned_away[pod.pod_key] = pod
            return None, Status.unresolvable(f"gang {half_placed} is being placed")
        return None, None

    # --- a member has a node, or has none ----------------------------------------------------------------------------

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status | None, float]:
        """Hold the member's place until its gang is complete."""
        del state, node_name
        gang = self._gang(pod)
        if gang is None:
            return None, 0.0
        if self._placed(pod) + 1 < (self._size(pod) or 1):
            self._handle.activate({member.pod_key: member for member in self._members(pod) if not member.node_name})
            return Status.wait(f"waiting for the other pods of gang {gang}"), self._args.wait_seconds
        for held in self._held_of(gang):
            held.allow(self.name)
        self._completed.inc()
        self._given_up.pop(gang, None)
        self._let_others_try()
        return None, 0.0

    def post_filter(
        self, state: CycleState, pod: Pod, statuses: Mapping[str, Status]
    ) -> tuple[PostFilterResult | None, Status | None]:
        """Give back what the gang holds: this member has no node."""
        del state, statuses
        self._give_up(pod, f"{pod.name} of the same gang fits nowhere")
        return None, Status.unschedulable()

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Agree: the place is taken by the engine itself."""
        del state, pod, node_name
        return None

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Give back what the gang holds: this member has lost its place, because its time was up or it was deleted."""
        del state, node_name
        self._give_up(pod, f"{pod.name} of the same gang lost its place")

    def _give_up(self, pod: Pod, why: str) -> None:
        gang = self._gang(pod)
        if gang is None:
            return
        held = list(self._held_of(gang))
        for member in held:
            member.reject(self.name, why)
        if held:
            self._retreats.inc()
            given_up = self._given_up.setdefault(gang, _GivenUp())
            backoff_s = min(_FIRST_BACKOFF_S * 2**given_up.times, _LONGEST_BACKOFF_S)
            given_up.times += 1
            given_up.not_before_s = self._handle.clock.now() + backoff_s
        self._let_others_try()

    def _wake(self) -> None:
        """Have gangs tried again whose time has come; called each second, between two decisions."""
        now_s = self._handle.clock.now()
        for gang, given_up in list(self._given_up.items()):
            if now_s >= given_up.not_before_s:
                asked, given_up.asked = given_up.asked, {}
                self._handle.activate(asked)
            if now_s >= given_up.not_before_s + _FORGET_S:
                del self._given_up[gang]

    def _let_others_try(self) -> None:
        pods, self._turned_away = self._turned_away, {}
        self._handle.activate(pods)

    # --- who is who --------------------------------------------------------------------------------------------------

    def _gang(self, pod: Pod) -> str | None:
        name = pod.metadata.labels.get(self._args.name_label)
        return None if name is None else f"{pod.namespace}/{name}"

    def _size(self, pod: Pod) -> int | None:
        text = pod.metadata.labels.get(self._args.size_label, "")
        return int(text) if text.isdecimal() and text.isascii() and int(text) > 0 else None

    def _is_of_same_gang(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        del old
        same = isinstance(new, Pod) and self._gang(new) is not None and self._gang(new) == self._gang(pod)
        return QueueingHint.QUEUE if same else QueueingHint.SKIP

    def _members(self, pod: Pod) -> Iterator[Pod]:
        """Yield the pods of the gang that exist and could run: a walk over all pods of the cluster."""
        gang = self._gang(pod)
        for other in self._pods.list():
            if self._gang(other) == gang and not _is_over(other):
                yield other

    def _placed(self, pod: Pod) -> int:
        """Return how many other members have a node: bound, on their way there, or held."""
        gang = self._gang(pod)
        nodes = self._handle.nodes().infos
        return sum(1 for node in nodes for p in node.pods if self._gang(p) == gang and p.uid != pod.uid)

    def _held(self) -> Iterator[WaitingPod]:
        """Yield the members that are held for want of others."""
        for held in self._handle.waiting_pods():
            if self.name in held.pending_plugins and self._gang(held.pod) is not None:
                yield held

    def _held_of(self, gang: str) -> Iterator[WaitingPod]:
        return (held for held in self._held() if self._gang(held.pod) == gang)


def _is_over(pod: Pod) -> bool:
    return pod.is_terminating or pod.status.phase in {"Succeeded", "Failed"}
