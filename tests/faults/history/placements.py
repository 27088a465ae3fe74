"""G1 and G2: no pod is forgotten, no node is given away twice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

from tests.faults.history.record import History, Json, Version, Violation, key_of
from tests.integration.api import condition
from tests.integration.checker import (
    Amounts,
    crowding,
    host_ports,
    is_live,
    nodes_that_fit,
    quantity,
    requests,
    static_reasons,
)

STALENESS_S = 2.0
"""What others did less than this before a bind of ours, we need not have known."""


def lost_pods(history: History) -> list[Violation]:
    """G1: at the end every pod of ours is bound, or fits nowhere and says so."""
    pods, nodes = list(history.latest("Pod").values()), list(history.latest("Node").values())
    found = []
    for pod in pods:
        if pod["spec"].get("nodeName") or not history.is_ours(pod) or _is_held_back(pod):
            continue
        if fitting := nodes_that_fit(pod, nodes, pods):
            said = (condition(dict(pod)) or {}).get("message", "nothing")
            found.append(
                Violation("G1", f"{key_of(pod)} fits {', '.join(fitting[:3])} and is pending; it says: {said}")
            )
        elif condition(dict(pod)) is None:
            found.append(Violation("G1", f"{key_of(pod)} fits nowhere and has no condition that says so"))
    return found


def _is_held_back(pod: Json) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp") or pod["spec"].get("schedulingGates")) or not is_live(pod)


def double_bookings(history: History, staleness_s: float = STALENESS_S) -> list[Violation]:
    """G2: no bind of ours put more on a node than it had, given all that we could have known.

    The changes are replayed in the server's order. A bind that crowds its node, or breaks a rule of it, is excused only
    if it would have been right without what others changed within `staleness_s` before it.
    """
    replay = _Replay(history, staleness_s)
    return [violation for version in history.ordered() for violation in replay.step(version)]


@dataclass(slots=True)
class _Placed:
    pod: Json
    amounts: Amounts
    at_s: float
    is_foreign: bool


@dataclass(slots=True)
class _Room:
    """The pods of a node, and what they ask for together, so that a bind need not add all of it up anew."""

    pods: dict[str, _Placed] = field(default_factory=dict)
    used: Amounts = field(default_factory=dict)

    def put(self, uid: str, pod: Json, at_s: float, *, is_foreign: bool) -> None:
        self.pods[uid] = _Placed(pod, requests(pod), at_s, is_foreign)
        self._count(self.pods[uid].amounts, 1)

    def become(self, uid: str, pod: Json) -> None:
        known = self.pods[uid]
        if known.pod["spec"] != pod["spec"]:
            self._count(known.amounts, -1)
            known.amounts = requests(pod)
            self._count(known.amounts, 1)
        known.pod = pod

    def take_out(self, uid: str) -> None:
        if (known := self.pods.pop(uid, None)) is not None:
            self._count(known.amounts, -1)

    def _count(self, amounts: Amounts, sign: int) -> None:
        for resource, amount in amounts.items():
            self.used[resource] = self.used.get(resource, Fraction()) + sign * amount

    def is_plainly_enough(self, node: Json) -> bool:
        """Tell whether all pods have room on the node, and cannot clash in another way."""
        allocatable = {name: quantity(text) for name, text in node["status"].get("allocatable", {}).items()}
        if any(amount > allocatable.get(resource, 0) for resource, amount in self.used.items()):
            return False
        return len(self.pods) <= allocatable.get("pods", 0) and not any(host_ports(p.pod) for p in self.pods.values())


@dataclass(slots=True)
class _NodePast:
    """The versions of a node: each with the time at which the next one took its place (None for the present)."""

    present: Json | None = None
    former: list[tuple[float, Json | None]] = field(default_factory=list)

    def become(self, node: Json | None, at_s: float) -> None:
        self.former.append((at_s, self.present))
        self.present = node

    def within(self, since_s: float) -> Iterator[Json]:
        """Return the versions that were true at some moment since then."""
        if self.present is not None:
            yield self.present
        for replaced_at_s, node in self.former:
            if node is not None and replaced_at_s >= since_s:
                yield node


class _Replay:
    def __init__(self, history: History, staleness_s: float) -> None:
        self._history = history
        self._staleness_s = staleness_s
        self._bound_at = history.bound_at()
        self._foreign = {r.key for r in history.binds(ours=False) if r.is_done}
        self._nodes: dict[str, _NodePast] = defaultdict(_NodePast)
        self._placed: dict[str, _Room] = defaultdict(_Room)
        self._epoch = 0

    def step(self, version: Version) -> list[Violation]:
        if version.epoch != self._epoch:
            self._epoch = version.epoch
            self._nodes.clear()
            self._placed.clear()
        if version.kind == "Node":
            present = None if version.change == "DELETED" else version.object
            self._nodes[version.name].become(present, version.at_s)
            return []
        return self._pod(version)

    def _pod(self, version: Version) -> list[Violation]:
        pod = version.object
        node_name = pod["spec"].get("nodeName")
        if not node_name:
            return []
        here = self._placed[node_name]
        if version.change == "DELETED" or not is_live(pod):
            here.take_out(version.uid)
            return []
        if version.uid in here.pods:
            here.become(version.uid, pod)
            return []
        at_s = min(self._bound_at.get(version.uid, version.at_s), version.at_s)
        is_foreign = version.key in self._foreign or not self._history.is_ours(pod)
        here.put(version.uid, pod, at_s, is_foreign=is_foreign)
        is_judged = not is_foreign and version.change != "LISTED"
        return self._judge(node_name, pod, at_s) if is_judged else []

    def _judge(self, node_name: str, pod: Json, at_s: float) -> list[Violation]:
        """Return what is wrong with the present bind under every view that we may have had."""
        since_s = at_s - self._staleness_s
        here, present = self._placed[node_name], self._nodes[node_name].present
        if present is not None and not static_reasons(present, pod) and here.is_plainly_enough(present):
            return []
        placed = here.pods.values()
        all_pods = [each.pod for each in placed]
        known_pods = [each.pod for each in placed if not each.is_foreign or each.at_s < since_s]
        reasons: list[str] = []
        for node in self._nodes[node_name].within(since_s):
            for pods in (all_pods, known_pods):
                why = [*static_reasons(node, pod), *crowding(node, pods)]
                if not why:
                    return []
                reasons = reasons or why
        what = "; ".join(reasons) or "there is no such node"
        return [Violation("G2", f"{key_of(pod)} was bound to {node_name}: {what}", at_s)]
