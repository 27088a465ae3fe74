"""What users, kubelets, other schedulers and crashes do in a history, each when its moment has come."""

from __future__ import annotations

from tests.simulation.cluster import NODES, URGENT, Cluster
from tests.simulation.extender import THING
from tests.simulation.model_api import Json
from tests.simulation.plan import Deed
from tests.simulation.replica import RIVAL, SCHEDULER_NAME, Replica

__all__ = ["Deeds"]

_HOST = "kubernetes.io/hostname"


class Deeds:
    """Carries deeds out.

    Args:
        cluster: where.
        replicas: the schedulers, by name.
    """

    def __init__(self, cluster: Cluster, replicas: dict[str, Replica]) -> None:
        self._cluster = cluster
        self._replicas = replicas

    async def do(self, deed: Deed) -> None:
        """Do what is to be done, if it is possible now."""
        await getattr(self, deed.kind)(deed)

    # --- nodes -------------------------------------------------------------------------------------------------------

    async def create_node(self, deed: Deed) -> None:
        if self._cluster.node(deed.name) is None:
            status = {"capacity": _resources(deed.number), "allocatable": _resources(deed.number)}
            metadata = {"name": deed.name, "labels": {"pool": deed.where, _HOST: deed.name}}
            self._cluster.create({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status})

    async def delete_node(self, deed: Deed) -> None:
        self._cluster.delete_node(deed.name)

    async def cordon(self, deed: Deed) -> None:
        self._cluster.change(NODES, deed.name, {"spec": {"unschedulable": True}})

    async def uncordon(self, deed: Deed) -> None:
        self._cluster.change(NODES, deed.name, {"spec": {"unschedulable": None}})

    async def resize_node(self, deed: Deed) -> None:
        self._cluster.change(NODES, deed.name, {"status": {"allocatable": _resources(deed.number)}}, "status")

    # --- pods --------------------------------------------------------------------------------------------------------

    async def create_pod(self, deed: Deed, requests: Json | None = None, **spec: object) -> None:
        if self._cluster.pod(deed.name) is None:
            self._cluster.create(_pod(deed, requests or {}, spec))

    async def create_urgent_pod(self, deed: Deed) -> None:
        await self.create_pod(deed, priorityClassName=URGENT)

    async def create_picky_pod(self, deed: Deed) -> None:
        await self.create_pod(deed, nodeSelector={"pool": deed.where})

    async def create_rival_pod(self, deed: Deed) -> None:
        await self.create_pod(deed, schedulerName=RIVAL)

    async def create_extended_pod(self, deed: Deed) -> None:
        await self.create_pod(deed, requests={THING: "1"})

    async def create_volume_pod(self, deed: Deed) -> None:
        """Make a pod and its claim; unless the volume is to be made, or there is none, one is there on a node."""
        storage_class = "made" if deed.where == "made" else "local"
        self._cluster.provide_class(storage_class)
        if deed.where not in {"made", "nowhere"}:
            self._cluster.provide_volume(f"volume-{deed.name}", deed.where)
        self._cluster.provide_claim(deed.name, storage_class)
        await self.create_pod(deed, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": deed.name}}])

    async def delete_pod(self, deed: Deed) -> None:
        self._cluster.delete_pod(deed.name, grace_s=deed.number)

    async def replace_pod(self, deed: Deed) -> None:
        self._cluster.delete_pod(deed.name, grace_s=0)
        await self.create_pod(deed)

    async def steal_pod(self, deed: Deed) -> None:
        """Somebody binds the pod: to a node of his own, or to one of ours without asking whether there is room."""
        if deed.where == "foreign" or self._cluster.node(deed.where) is not None:
            self._cluster.bind_pod(deed.name, deed.where)

    # --- schedulers and server ---------------------------------------------------------------------------------------

    async def compact(self, deed: Deed) -> None:
        del deed
        self._cluster.api.store.compact()

    async def crash(self, deed: Deed) -> None:
        if deed.name in self._replicas:
            await self._replicas[deed.name].crash()

    async def freeze(self, deed: Deed) -> None:
        self._replicas[deed.name].freeze(deed.number)

    async def stop(self, deed: Deed) -> None:
        if deed.name in self._replicas:
            self._replicas[deed.name].stop()

    async def stop_leader(self, deed: Deed) -> None:
        del deed
        for leader in self._leaders():
            leader.stop()

    async def crash_leader(self, deed: Deed) -> None:
        del deed
        for leader in self._leaders():
            await leader.crash()

    def _leaders(self) -> list[Replica]:
        return [each for each in self._replicas.values() if each.is_leading and each.scheduler_name == SCHEDULER_NAME]


def _resources(cpus: int) -> Json:
    return {"cpu": str(cpus), "memory": "64Gi", "pods": "110"}


def _pod(deed: Deed, requests: Json, spec: Json) -> Json:
    resources = {"requests": {"cpu": str(deed.number), **requests}, "limits": requests}
    container = {"name": "main", "image": "main", "resources": resources}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": deed.name, "namespace": "default"},
        "spec": {"schedulerName": SCHEDULER_NAME, "containers": [container], **spec},
    }
