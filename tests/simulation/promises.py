"""What must hold: after every write of a scheduler, and when everything has settled.

The checker knows nothing of the scheduler's code: it reads the objects, and counts for itself.

    G1  every pod that fits a node is bound, every other one has a condition that says why not
    G2  no node holds more than it has
    G3  a binding reaches only the pod it was decided for
    G4  who does not hold the lease sends nothing
    G5  what the leader believes equals what the server has
    G10 a condition says what is true
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from scheduler.testing.apiserver.resources import BY_PATH
from scheduler.testing.apiserver.store import Change
from tests.simulation.model_api import Json, ModelApi
from tests.simulation.replica import SCHEDULER_NAME, Replica

__all__ = ["Promises", "Violation"]

_LEASES = re.compile(r"/leases")
_PODS, _NODES = BY_PATH[("", "v1", "pods")], BY_PATH[("", "v1", "nodes")]
_LEASE_RESOURCE = BY_PATH[("coordination.k8s.io", "v1", "leases")]


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise that was broken.

    Attributes:
        promise: G1 to G10.
        at_s: when, in seconds of the history.
        what: in words.
    """

    promise: str
    at_s: float
    what: str

    def __str__(self) -> str:
        return f"{self.promise} at {self.at_s:.3f} s: {self.what}"


@dataclass(slots=True, eq=False)
class Promises:
    """Watches one history.

    Attributes:
        violations: what was broken so far.
    """

    api: ModelApi
    elapsed_s: object
    replicas: list[Replica] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)

    def __post_init__(self) -> None:
        for resource in (_PODS, _NODES):
            self.api.store.table(resource).subscribers[self] = None

    def broken(self, promise: str, what: str) -> None:
        """Note a violation."""
        self.violations.append(Violation(promise, self.elapsed_s(), what))

    # --- as it goes --------------------------------------------------------------------------------------------------

    def sent(self, replica: int, method: str, path: str) -> None:
        """A replica sends a write: it must hold the lease, or have held it last and not yet lost it."""
        if _LEASES.search(path):
            return
        holder = self.lease_holder()
        identity = self.replicas[replica].identity
        if holder != identity:
            self.broken("G4", f"{identity} sends {method} {path} while the lease names {holder or 'nobody'}")

    def lease_holder(self) -> str:
        """Return who the lease names now."""
        for stored in self.api.store.table(_LEASE_RESOURCE).objects.values():
            if stored.data["metadata"]["name"] == SCHEDULER_NAME:
                return stored.data["spec"].get("holderIdentity") or ""
        return ""

    def offer(self, change: Change) -> None:
        """A pod or node has changed: no node may hold more than it has."""
        del change
        used = _used(self.api)
        for node in self.api.nodes():
            name = node["metadata"]["name"]
            have = int(node["status"]["allocatable"]["cpu"])
            if used.get(name, 0) > have:
                self.broken("G2", f"{name} holds pods that request {used[name]} of its {have} CPUs")

    # --- at the end --------------------------------------------------------------------------------------------------

    def settled(self) -> None:
        """Nothing has happened for long enough: look at every pod, and at what the leader believes."""
        used = _used(self.api)
        for pod in self.api.pods():
            if pod["spec"].get("nodeName") or pod["metadata"].get("deletionTimestamp"):
                continue
            name = pod["metadata"]["name"]
            fitting = [node["metadata"]["name"] for node in self.api.nodes() if _fits(pod, node, used)]
            if fitting:
                self.broken("G1", f"{name} fits {', '.join(fitting)} and is still pending")
            elif not _is_said_unschedulable(pod):
                self.broken("G10", f"{name} fits nowhere and has no condition that says so")
        self._beliefs()

    def _beliefs(self) -> None:
        leaders = [replica for replica in self.replicas if replica.is_leading]
        if len(leaders) != 1:
            self.broken("G1", f"{len(leaders)} replicas lead at the end")
            return
        core = leaders[0].scheduling.core
        believed = {pod.pod_key: name for name, info in core.cache.dump().nodes.items() for pod in info.pods}
        true = {
            f"default/{pod['metadata']['name']}": pod["spec"]["nodeName"]
            for pod in self.api.pods()
            if pod["spec"].get("nodeName")
        }
        if believed != true:
            self.broken("G5", f"the leader believes {sorted(believed.items())}, the server has {sorted(true.items())}")
        nodes = {node["metadata"]["name"]: bool(node["spec"].get("unschedulable")) for node in self.api.nodes()}
        known = {name: info.node for name, info in core.cache.dump().nodes.items() if info.has_node}
        if {name: node.spec.unschedulable for name, node in known.items()} != nodes:
            self.broken("G5", f"the leader knows the nodes {sorted(known)}, the server has {nodes}")
        queued = {pod.pod_key for pod in core.queue.pending_pods()[0]}
        pending = {f"default/{pod['metadata']['name']}" for pod in self.api.pods() if not pod["spec"].get("nodeName")}
        if queued != pending:
            self.broken("G5", f"the leader's queue holds {sorted(queued)}, pending are {sorted(pending)}")
        if core.cache.num_assumed:
            self.broken("G5", f"{core.cache.num_assumed} pods are still assumed")


def _used(api: ModelApi) -> dict[str, int]:
    used: dict[str, int] = {}
    for pod in api.pods():
        node = pod["spec"].get("nodeName")
        if node:
            used[node] = used.get(node, 0) + _cpus(pod)
    return used


def _cpus(pod: Json) -> int:
    return sum(int(container["resources"]["requests"]["cpu"]) for container in pod["spec"]["containers"])


def _fits(pod: Json, node: Json, used: dict[str, int]) -> bool:
    if node["spec"].get("unschedulable"):
        return False
    labels = node["metadata"].get("labels") or {}
    if any(labels.get(key) != value for key, value in (pod["spec"].get("nodeSelector") or {}).items()):
        return False
    return used.get(node["metadata"]["name"], 0) + _cpus(pod) <= int(node["status"]["allocatable"]["cpu"])


def _is_said_unschedulable(pod: Json) -> bool:
    conditions = pod["status"].get("conditions") or []
    return any(
        (each["type"], each["status"], each.get("reason")) == ("PodScheduled", "False", "Unschedulable")
        for each in conditions
    )
