"""What a kubelet does that matters to a scheduler: it refuses pods for which its node has no room (OutOfcpu)."""

from __future__ import annotations

import http.client
import threading
import time
from collections import defaultdict
from fractions import Fraction

from tests.faults.history.observer import Observer
from tests.faults.history.record import Json, Version
from tests.integration.api import Client, Cluster
from tests.integration.checker import is_live, quantity, requests

POLL_S = 0.02
MERGE = "application/merge-patch+json"


class Kubelets:
    """The admission of all kubelets of a cluster, in a thread: first come, first served, by the server's order.

    Attributes:
        refused: the pods that found no room, with the time at which the refusal was decided.
    """

    def __init__(self, cluster: Cluster, observer: Observer) -> None:
        self.refused: list[tuple[float, Json]] = []
        self._cluster = cluster
        self._client = Client(cluster.plane)
        self._observer = observer
        self._read = 0
        self._used: dict[str, dict[str, Fraction]] = defaultdict(dict)
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="kubelets", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._is_stopping = True
        self._thread.join(30)
        self._client.close()

    def _run(self) -> None:
        while not self._is_stopping:
            versions = self._observer.versions
            while self._read < len(versions):
                version = versions[self._read]
                self._read += 1
                if version.kind == "Pod" and version.object["spec"].get("nodeName"):
                    self._take(version)
            time.sleep(POLL_S)

    def _take(self, version: Version) -> None:
        pod = version.object
        used = self._used[pod["spec"]["nodeName"]]
        if version.change == "DELETED" or not is_live(pod):
            used.pop(version.uid, None)
        elif version.uid not in used:
            asked = requests(pod).get("cpu", Fraction())
            if sum(used.values()) + asked <= self._room(pod["spec"]["nodeName"]):
                used[version.uid] = asked
            else:
                self._refuse(pod)

    def _room(self, node_name: str) -> Fraction:
        for node in self._observer.live("Node").values():
            if node["metadata"]["name"] == node_name:
                return quantity(node["status"]["allocatable"]["cpu"])
        return Fraction()

    def _refuse(self, pod: Json) -> None:
        self.refused.append((time.time(), pod))
        status = {"phase": "Failed", "reason": "OutOfcpu", "message": "Node didn't have enough resource: cpu"}
        path = self._cluster.pod_path(pod["metadata"]["name"], "/status")
        try:
            code, answer = self._client.call("PATCH", path, {"status": status}, content_type=MERGE)
        except (OSError, http.client.HTTPException) as error:
            code, answer = 0, error
        assert code in (200, 404), f"refusing {pod['metadata']['name']}: {code} {answer}"
