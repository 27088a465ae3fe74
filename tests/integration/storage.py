"""Volumes for tests on the real API server: storage classes, claims and volumes of one test, and a provisioner.

The volume controller is the real one (`ControlPlane.start_controller_manager`). What a cluster's CSI drivers would do is
done by `Provisioner`: a coroutine that watches claims and makes a volume where the scheduler has asked for one.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

from scheduler.kube.framing import LineSplitter
from scheduler.kube.http_transport import HttpTransport
from scheduler.kube.kubeconfig import load_kubeconfig
from scheduler.kube.transport import Transport
from tests.controlplane.cluster import ControlPlane
from tests.integration.api import Cluster, Json, eventually
from tests.integration.settled import HOSTNAME

CONTROLLERS = ("persistentvolume-binder-controller", "ephemeral-volume-controller")
SELECTED_NODE = "volume.kubernetes.io/selected-node"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
VOLUMES = "/api/v1/persistentvolumes"
TIMEOUT_S = 10.0
MERGE = "application/merge-patch+json"


class Storage:
    """The storage objects of one test; the cluster-scoped ones are removed by `close`."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._client = cluster.client
        self._made: list[tuple[str, str]] = []

    # --- making ------------------------------------------------------------------------------------------------------

    def storage_class(
        self, name: str = "local", *, waits: bool = True, provisioner: str = NO_PROVISIONER, **fields: Any
    ) -> str:
        """Create a class that waits for its first consumer, or binds at once; returns its full name."""
        mode = "WaitForFirstConsumer" if waits else "Immediate"
        return self._cluster_scoped(
            "/apis/storage.k8s.io/v1/storageclasses",
            {"metadata": {"name": self._full(name)}, "provisioner": provisioner, "volumeBindingMode": mode, **fields},
        )

    def claim(self, name: str, class_name: str, *, size: str = "1Gi", **spec: Any) -> Json:
        """Create a claim in the test's namespace."""
        return self._client.ok("POST", self.claims_path, claim_manifest(name, class_name, size=size, **spec))

    def local_volume(
        self, name: str, class_name: str, node_name: str, *, size: str = "1Gi", mode: str = "ReadWriteOnce"
    ) -> str:
        """Create a local volume on a node; both names are short; returns the volume's full name."""
        manifest = volume_manifest(self._full(name), class_name, self._full(node_name), size=size)
        manifest["spec"]["accessModes"] = [mode]
        return self._cluster_scoped(VOLUMES, manifest)

    def csi_driver(self, name: str, **spec: Any) -> str:
        """Create a CSI driver; returns its full name."""
        manifest = {"metadata": {"name": self._full(name)}, "spec": spec}
        return self._cluster_scoped("/apis/storage.k8s.io/v1/csidrivers", manifest)

    def capacity(self, name: str, class_name: str, node_name: str, capacity: str) -> str:
        """Publish a driver's capacity on a node; returns the object's path."""
        collection = f"/apis/storage.k8s.io/v1/namespaces/{self.cluster.namespace}/csistoragecapacities"
        manifest = {
            "metadata": {"name": name},
            "storageClassName": class_name,
            "nodeTopology": {"matchLabels": {HOSTNAME: self._full(node_name)}},
            "capacity": capacity,
        }
        self._client.ok("POST", collection, manifest)
        return f"{collection}/{name}"

    # --- looking -----------------------------------------------------------------------------------------------------

    def get_claim(self, name: str) -> Json:
        found: Json = self._client.ok("GET", f"{self.claims_path}/{name}")
        return found

    def claims(self) -> list[Json]:
        found: list[Json] = self._client.ok("GET", self.claims_path)["items"]
        return found

    def get_volume(self, full_name: str) -> Json:
        found: Json = self._client.ok("GET", f"{VOLUMES}/{full_name}")
        return found

    def wait_selected(self, name: str) -> str:
        """Wait until the scheduler has asked for a volume on some node; returns the node's name."""
        return eventually(
            lambda: self.get_claim(name)["metadata"].get("annotations", {}).get(SELECTED_NODE, ""),
            f"a node to be selected for claim {name}",
        )

    def wait_phase(self, name: str, phase: str) -> Json:
        """Wait until a claim is in this phase, and return it."""
        return eventually(
            lambda: found if (found := self.get_claim(name))["status"].get("phase") == phase else None,
            f"claim {name} to be {phase}",
        )

    def wait_available(self, *full_names: str) -> None:
        """Wait until the volume controller offers these volumes."""
        for name in full_names:
            eventually(lambda: self.get_volume(name)["status"].get("phase") == "Available", f"volume {name} to be free")  # noqa: B023  used at once

    def remember(self, collection: str, name: str) -> None:
        """Have an object of the cluster removed at the end."""
        self._made.append((collection, name))

    # --- ending ------------------------------------------------------------------------------------------------------

    def delete_claim(self, name: str) -> None:
        """Remove a claim as the protection controller would once no pod uses it."""
        self._remove(f"{self.claims_path}/{name}")

    def close(self) -> None:
        """Remove what would outlive the namespace."""
        with contextlib.suppress(OSError, http.client.HTTPException):
            for claim in self.claims():
                self.delete_claim(claim["metadata"]["name"])
            for collection, name in self._made:
                self._remove(f"{collection}/{name}")

    def _remove(self, path: str) -> None:
        """Delete an object, its finalizers unheeded."""
        self._client.call("DELETE", path)
        self._client.call("PATCH", path, {"metadata": {"finalizers": None}}, content_type=MERGE)

    def _cluster_scoped(self, collection: str, manifest: Json) -> str:
        name: str = self._client.ok("POST", collection, manifest)["metadata"]["name"]
        self.remember(collection, name)
        return name

    def _full(self, name: str) -> str:
        return f"{self.cluster.namespace}-{name}"

    @property
    def claims_path(self) -> str:
        return f"/api/v1/namespaces/{self.cluster.namespace}/persistentvolumeclaims"


def claim_manifest(name: str, class_name: str, *, size: str = "1Gi", **spec: Any) -> Json:
    """Return a claim."""
    return {
        "metadata": {"name": name},
        "spec": {
            "storageClassName": class_name,
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
            **spec,
        },
    }


def volume_manifest(
    name: str, class_name: str, hostname: str, *, size: str = "1Gi", claim_ref: Mapping[str, str] | None = None
) -> Json:
    """Return a local volume that one node reaches."""
    expression = {"key": HOSTNAME, "operator": "In", "values": [hostname]}
    spec: Json = {
        "storageClassName": class_name,
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": "Retain",
        "local": {"path": f"/mnt/{name}"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
    }
    if claim_ref is not None:
        spec["claimRef"] = dict(claim_ref)
    return {"metadata": {"name": name}, "spec": spec}


class Provisioner:
    """Makes volumes for the claims of one class, as an external provisioner does.

    A claim that waits for its consumer gets a volume once a node is selected for it. `refused` nodes have no room: there
    the selected-node annotation is taken away again, which asks the scheduler for another node. Nothing is done before
    `open` is called.

    Attributes:
        seen: claim -> the nodes that were asked for, in order.
    """

    def __init__(self, plane: ControlPlane, storage: Storage, class_name: str) -> None:
        self._plane = plane
        self._class = class_name
        self._claims = storage.claims_path
        self._storage = storage
        self._refuses: Callable[[str], bool] = lambda node_name: False
        self._is_open = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run, name="provisioner", daemon=True)
        self.seen: dict[str, list[str]] = {}
        self.error: BaseException | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._loop is not None and self._task is not None:
            self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(10)
        assert self.error is None, f"the provisioner broke: {self.error!r}"

    def open(self) -> None:
        """Begin to make volumes."""
        self._is_open.set()

    def refuse(self, refuses: Callable[[str], bool]) -> None:
        """Have no room on the nodes for which this is true."""
        self._refuses = refuses

    # --- its thread --------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except asyncio.CancelledError:
            pass
        except BaseException as error:  # noqa: BLE001  shown by the test's thread
            self.error = error

    async def _main(self) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        transport = HttpTransport(load_kubeconfig(self._plane.admin_kubeconfig), user_agent="provisioner")
        try:
            await self._watch(transport)
        finally:
            await transport.close()

    async def _watch(self, transport: Transport) -> None:
        lines = LineSplitter()
        async with transport.stream(f"{self._claims}?watch=1", connect_timeout_s=TIMEOUT_S) as chunks:
            async for chunk in chunks:
                for line in lines.feed(chunk):
                    event = json.loads(line)
                    if event["type"] in ("ADDED", "MODIFIED"):
                        await self._look(transport, event["object"])

    async def _look(self, transport: Transport, claim: Json) -> None:
        node_name = claim["metadata"].get("annotations", {}).get(SELECTED_NODE, "")
        if claim["spec"].get("storageClassName") != self._class or claim["spec"].get("volumeName") or not node_name:
            return
        asked = self.seen.setdefault(claim["metadata"]["name"], [])
        if asked[-1:] != [node_name]:
            asked.append(node_name)
        while not self._is_open.is_set():  # noqa: ASYNC110  set by another thread
            await asyncio.sleep(0.02)
        if self._refuses(node_name):
            await self._send_back(transport, claim)
        else:
            await self._provision(transport, claim, node_name)

    async def _provision(self, transport: Transport, claim: Json, node_name: str) -> None:
        metadata = claim["metadata"]
        reference = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            **{key: metadata[key] for key in ("namespace", "name", "uid", "resourceVersion")},
        }
        size = claim["spec"]["resources"]["requests"]["storage"]
        manifest = volume_manifest(f"pvc-{metadata['uid']}", self._class, node_name, size=size, claim_ref=reference)
        status = await self._send(transport, "POST", VOLUMES, manifest)
        assert status in (201, 409), status
        if status == 201:
            self._storage.remember(VOLUMES, manifest["metadata"]["name"])

    async def _send_back(self, transport: Transport, claim: Json) -> None:
        metadata = claim["metadata"]
        changes = {"metadata": {"resourceVersion": metadata["resourceVersion"], "annotations": {SELECTED_NODE: None}}}
        status = await self._send(transport, "PATCH", f"{self._claims}/{metadata['name']}", changes, MERGE)
        assert status in (200, 409), status

    @staticmethod
    async def _send(
        transport: Transport, method: str, path: str, body: Json, content_type: str = "application/json"
    ) -> int:
        data = json.dumps(body).encode()
        answer = await transport.request(method, path, body=data, content_type=content_type, timeout_s=TIMEOUT_S)
        return answer.status


@contextlib.contextmanager
def storage_of(cluster: Cluster) -> Iterator[Storage]:
    """Give a test its storage objects."""
    made = Storage(cluster)
    try:
        yield made
    finally:
        made.close()
