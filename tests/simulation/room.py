"""Room: what a binding must be, judged in the moment that the server carries it out (part of ``promises``).

The node holds what it is given: all that the scheduler itself had given away before counts; what others have just done
to the node (bound a pod there, made it smaller) is excused for a while, because nobody can know it at once. The node
was there and open when the leader before gave up the lease, or at the latest when it was taken from him: a leader begins
with lists that are newer than that (``app/taking_over.py``). The pod's volumes are ready there.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from scheduler.testing.apiserver.store import Change
from tests.simulation.cluster import LEASES, NODES, PODS, Cluster
from tests.simulation.model_api import Json

__all__ = ["Room", "cpus_of", "used_cpus"]


class Room:
    """Judges all bindings of one history.

    Args:
        cluster: to watch.
        elapsed_s: seconds since the history began.
        broken: is told of a broken promise: which, and how.
        excused_s: for how long others' deeds may be unknown.

    Attributes:
        bound: UIDs of the pods that a scheduler bound, not somebody else.
    """

    def __init__(
        self, cluster: Cluster, elapsed_s: Callable[[], float], broken: Callable[[str, str], None], excused_s: float
    ) -> None:
        self._cluster = cluster
        self._elapsed_s = elapsed_s
        self._broken = broken
        self._excused_s = excused_s
        self._taken: list[tuple[float, str, int, str]] = []
        self._closed_s: dict[str, float] = {}
        self._sizes_gone: dict[str, int] = {}
        self.bound: set[str] = set()
        self._free_since_s: float | None = 0.0
        self._knows_s: dict[str, float] = {}
        for resource, hear in ((PODS, self._pod), (NODES, self._node), (LEASES, self._lease)):
            cluster.listen(resource, hear)

    def _pod(self, change: Change) -> None:
        before, after = (None if each is None else each.data for each in (change.before, change.after))
        node = "" if after is None else after["spec"].get("nodeName") or ""
        self._judge_meant(change)
        if after is None or not node or (before is not None and before["spec"].get("nodeName")):
            return
        binder = self._cluster.api.requester
        if binder:
            self.bound.add(after["metadata"]["uid"])
            self._judge(after, node, binder)
        self._taken.append((self._elapsed_s(), node, cpus_of(after), _scheduler(binder)))

    def _node(self, change: Change) -> None:
        before, after = (None if each is None else each.data for each in (change.before, change.after))
        name = change.key
        if after is None or (after["spec"].get("unschedulable") and not (before or after)["spec"].get("unschedulable")):
            self._closed_s[name] = self._elapsed_s()
        elif not after["spec"].get("unschedulable"):
            self._closed_s.pop(name, None)
        if after is None:
            self._sizes_gone[name] = _size(before)
            return
        earlier = (
            self._sizes_gone.pop(name, 0) if before is None else _size(before)
        )  # its successor may be smaller, too
        if _size(after) < earlier:
            self._taken.append((self._elapsed_s(), name, earlier - _size(after), ""))

    def _lease(self, change: Change) -> None:
        holder = "" if change.after is None else change.after.data["spec"].get("holderIdentity") or ""
        free_since_s = self._elapsed_s() if self._free_since_s is None else self._free_since_s
        if holder:
            self._knows_s.setdefault(holder, free_since_s)
        self._free_since_s = None if holder else free_since_s

    def _judge_meant(self, change: Change) -> None:
        """A write reaches only the pod that had the name when it was sent, and was decided for that one."""
        api, stored = self._cluster.api, change.after or change.before
        if api.meant_uid and stored is not None and stored.data["metadata"]["uid"] != api.meant_uid:
            self._broken("G3", f"{api.requester} writes to {change.key} what was meant for the pod of that name before")

    def _judge(self, pod: Json, name: str, binder: str) -> None:
        pod_name = pod["metadata"]["name"]
        if self._closed_s.get(name, math.inf) < self._knows_s.get(binder, -math.inf):
            self._broken("G2", f"{binder} binds {pod_name} to {name}, which was closed before the lease was free")
        node = self._cluster.node(name)
        if node is None:
            return
        since_s, scheduler = self._elapsed_s() - self._excused_s, _scheduler(binder)
        excuse = sum(
            cpus for at_s, where, cpus, who in self._taken if where == name and who != scheduler and at_s > since_s
        )
        used = used_cpus(self._cluster).get(name, 0)
        if used - excuse > _size(node):
            known = f", {excuse} of them unknown to it" if excuse else ""
            self._broken("G2", f"{name} holds pods that request {used} of its {_size(node)} CPUs{known}")
        for volume in pod["spec"].get("volumes") or ():
            self._judge_claim(volume.get("persistentVolumeClaim"), pod_name, name)

    def _judge_claim(self, source: Json | None, pod_name: str, node: str) -> None:
        claim = None if source is None else self._cluster.claim(source["claimName"])
        if claim is None:
            return
        volume = self._cluster.volume(claim["spec"].get("volumeName") or "")
        if volume is None:
            self._broken("G2", f"{pod_name} is bound to {node} and its claim to no volume")
        elif self._cluster.reach(volume) != node:
            self._broken("G2", f"{pod_name} is bound to {node}, its volume is on {self._cluster.reach(volume)}")


def used_cpus(cluster: Cluster) -> dict[str, int]:
    """Return what the pods on each node request."""
    used: dict[str, int] = {}
    for pod in cluster.pods():
        node = pod["spec"].get("nodeName")
        if node:
            used[node] = used.get(node, 0) + cpus_of(pod)
    return used


def cpus_of(pod: Json) -> int:
    """Return how many CPUs a pod requests."""
    return sum(int(container["resources"]["requests"]["cpu"]) for container in pod["spec"]["containers"])


def _size(node: Json) -> int:
    return int(node["status"]["allocatable"]["cpu"])


def _scheduler(identity: str) -> str:
    return identity.rsplit("-", 2)[0]
