"""What must hold: at every write of a scheduler, and when everything has settled.

The checker knows nothing of the scheduler's code: it reads the objects, and counts for itself.

    G1  every pod that fits a node is bound, every other one has a condition that says why not
    G2  no node is given more than it has, and no pod a node that cannot take it (``room``)
    G3  a binding reaches only the pod it was decided for
    G4  who does not hold the lease sends nothing
    G5  what the leader believes equals what the server has
    G8  nothing turns without end, or breaks
    G10 a condition says what is true
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from tests.simulation.cluster import LEASES, VOLUMES, Cluster
from tests.simulation.extender import FORBIDDEN_POOL, THING
from tests.simulation.model_api import Json
from tests.simulation.replica import Replica
from tests.simulation.room import Room, cpus_of, used_cpus

__all__ = ["Promises", "Violation"]

_LEASES = re.compile(r"/leases")
_SELECTED_NODE = "volume.kubernetes.io/selected-node"


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise that was broken.

    Attributes:
        promise: G1 to G10, or C: no bug is logged.
        at_s: when, in seconds of the history.
        what: in words.
    """

    promise: str
    at_s: float
    what: str

    def __str__(self) -> str:
        return f"{self.promise} at {self.at_s:.3f} s: {self.what}"


class Promises:
    """Watches one history.

    Args:
        cluster: to watch.
        elapsed_s: seconds since the history began.
        excused_s: for how long others' deeds may be unknown to a scheduler.

    Attributes:
        violations: what was broken so far.
        replicas: the schedulers.
    """

    def __init__(self, cluster: Cluster, elapsed_s: Callable[[], float], excused_s: float) -> None:
        self._cluster = cluster
        self._elapsed_s = elapsed_s
        self.violations: list[Violation] = []
        self.replicas: list[Replica] = []
        self._room = Room(cluster, elapsed_s, self.broken, excused_s)

    def broken(self, promise: str, what: str) -> None:
        """Note a violation."""
        self.violations.append(Violation(promise, self._elapsed_s(), what))

    # --- as it goes --------------------------------------------------------------------------------------------------

    def sent(self, identity: str, method: str, path: str) -> None:
        """A scheduler sends a write: it must hold the lease, or have held it last and not yet lost it."""
        if _LEASES.search(path):
            return
        holder = self._holder(identity.rsplit("-", 2)[0])
        if holder != identity:
            self.broken("G4", f"{identity} sends {method} {path} while the lease names {holder or 'nobody'}")

    def _holder(self, lease: str) -> str:
        """Return who the lease names now."""
        for each in self._cluster.all(LEASES):
            if each["metadata"]["name"] == lease:
                return each["spec"].get("holderIdentity") or ""
        return ""

    # --- at the end --------------------------------------------------------------------------------------------------

    def settled(self) -> None:
        """Nothing has happened for long enough: look at every pod, and at what the leaders believe."""
        for replica in self.replicas:
            if replica.failure is not None:
                self.broken("G8", f"{replica.identity} broke: {replica.failure!r}")
        used = used_cpus(self._cluster)
        for pod in self._cluster.pods():
            name = pod["metadata"]["name"]
            is_bound_by_us = pod["metadata"]["uid"] in self._room.bound
            if is_bound_by_us and _scheduled(pod) != "True":
                self.broken("G10", f"{name} is bound and its condition says that it is not")
            if pod["spec"].get("nodeName") or pod["metadata"].get("deletionTimestamp"):
                continue
            fitting = [node["metadata"]["name"] for node in self._cluster.nodes() if self._fits(pod, node, used)]
            if fitting:
                self.broken("G1", f"{name} fits {', '.join(fitting)} and is still pending")
            elif not _is_said_unschedulable(pod):
                self.broken("G10", f"{name} fits nowhere and has no condition that says so")
        for scheduler in dict.fromkeys(replica.scheduler_name for replica in self.replicas):
            self._beliefs(scheduler)

    def _fits(self, pod: Json, node: Json, used: dict[str, int]) -> bool:
        if node["spec"].get("unschedulable"):
            return False
        labels, name = node["metadata"]["labels"], node["metadata"]["name"]
        if any(labels.get(key) != value for key, value in (pod["spec"].get("nodeSelector") or {}).items()):
            return False
        if THING in pod["spec"]["containers"][0]["resources"]["requests"] and labels["pool"] == FORBIDDEN_POOL:
            return False
        if used.get(name, 0) + cpus_of(pod) > int(node["status"]["allocatable"]["cpu"]):
            return False
        sources = [each["persistentVolumeClaim"] for each in pod["spec"].get("volumes") or ()]
        return all(self._can_have(self._cluster.claim(source["claimName"]), name) for source in sources)

    def _can_have(self, claim: Json | None, node: str) -> bool:
        """Say whether a claim is bound to a volume of the node, or can be."""
        if claim is None:
            return False
        if claim["spec"].get("volumeName"):
            volume = self._cluster.volume(claim["spec"]["volumeName"])
            return volume is not None and self._cluster.reach(volume) == node
        if claim["spec"]["storageClassName"] == "made":
            return (claim["metadata"].get("annotations") or {}).get(_SELECTED_NODE) in {None, node}
        free = [volume for volume in self._cluster.all(VOLUMES) if not volume["spec"].get("claimRef")]
        return any(self._cluster.reach(volume) == node for volume in free)

    def _beliefs(self, scheduler: str) -> None:
        leaders = [each for each in self.replicas if each.is_leading and each.scheduler_name == scheduler]
        if len(leaders) != 1 or leaders[0].scheduling is None:
            self.broken("G1", f"{len(leaders)} replicas of {scheduler} lead at the end")
            return
        core = leaders[0].scheduling.core
        believed = {pod.pod_key: name for name, info in core.cache.dump().nodes.items() for pod in info.pods}
        pods = {f"default/{pod['metadata']['name']}": pod["spec"] for pod in self._cluster.pods()}
        true = {key: spec["nodeName"] for key, spec in pods.items() if spec.get("nodeName")}
        if believed != true:
            self.broken("G5", f"the leader believes {sorted(believed.items())}, the server has {sorted(true.items())}")
        nodes = {
            node["metadata"]["name"]: (bool(node["spec"].get("unschedulable")), node["status"]["allocatable"]["cpu"])
            for node in self._cluster.nodes()
        }
        known = {
            name: (info.node.spec.unschedulable, info.node.status.allocatable["cpu"])
            for name, info in core.cache.dump().nodes.items()
            if info.has_node
        }
        if known != nodes:
            self.broken("G5", f"the leader knows the nodes {known}, the server has {nodes}")
        queued = {pod.pod_key for pod in core.queue.pending_pods()[0]}
        pending = {key for key, spec in pods.items() if not spec.get("nodeName") and spec["schedulerName"] == scheduler}
        if queued != pending:
            self.broken("G5", f"the leader's queue holds {sorted(queued)}, pending are {sorted(pending)}")
        if core.cache.num_assumed:
            self.broken("G5", f"{core.cache.num_assumed} pods are still assumed")


def _scheduled(pod: Json) -> str:
    conditions = pod["status"].get("conditions") or []
    return next((each["status"] for each in conditions if each["type"] == "PodScheduled"), "")


def _is_said_unschedulable(pod: Json) -> bool:
    conditions = pod["status"].get("conditions") or []
    return any(
        (each["type"], each["status"], each.get("reason")) == ("PodScheduled", "False", "Unschedulable")
        for each in conditions
    )
