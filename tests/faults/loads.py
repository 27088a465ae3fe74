"""The two loads of the fault tests, and how long the binding rate needs to come back.

L1: 50 nodes with room to spare, 1,000 pods at 50 a second. L2: 20 nodes that are exactly full after 400 pods, so that
any capacity that leaks, or is given away twice, shows as a stuck pod or a crowded node.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from scheduler.testing.node_builder import NodeBuilder
from tests.integration.api import Client, Cluster, eventually

L1_NODES, L1_PODS, L1_RATE = 50, 1_000, 50.0
L2_NODES, L2_PODS, L2_RATE = 20, 400, 100.0
BACK_SHARE = 0.8
"""The rate counts as back when a second has this share of the load's binds."""


@dataclass(slots=True)
class Load:
    """Pods that a thread creates at an even pace; it catches up after an outage.

    Attributes:
        rate: pods a second.
        created: names so far.
    """

    cluster: Cluster
    pods: int
    rate: float
    cpu: str = "100m"
    prefix: str = "load"
    created: list[str] = field(default_factory=list)
    _is_stopping: bool = False
    _thread: threading.Thread | None = None
    _error: BaseException | None = None

    def start(self) -> Load:
        """Begin."""
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)
        self._thread.start()
        return self

    def wait_created(self, count: int = 0, timeout_s: float = 180.0) -> Load:
        """Wait until so many pods (default: all) have been created."""

        def probe() -> bool:
            assert self._error is None, f"the load ended with {self._error!r}"
            return len(self.created) >= (count or self.pods)

        eventually(probe, f"{count or self.pods} pods to be created", timeout_s=timeout_s)
        return self

    def end_after(self, more: int) -> None:
        """Create so many more pods and then none: the load outlives a fault that ends now.

        Raises:
            AssertionError: it had too few pods for that.
        """
        count = len(self.created) + more
        assert count <= self.pods, (
            f"the load has {self.pods} pods, and should still have {more} at the end of the fault"
        )
        self.wait_created(count)
        self.stop()

    def stop(self) -> None:
        """Create no more pods; those that exist are all there will be."""
        self._is_stopping = True
        if self._thread is not None:
            self._thread.join(60)
            assert not self._thread.is_alive(), "the load does not end"
        self.pods = len(self.created)

    def _run(self) -> None:
        client = Client(self.cluster.plane)
        begun_s = time.monotonic()
        try:
            for number in range(self.pods):
                time.sleep(max(0.0, begun_s + number / self.rate - time.monotonic()))
                if not self._create(client, f"{self.prefix}-{number:04}"):
                    return
        except BaseException as error:  # noqa: BLE001  shown to the test by `wait_created`
            self._error = error
        finally:
            client.close()

    def _create(self, client: Client, name: str) -> bool:
        """Create one pod, however often it takes; False when stopped meanwhile."""
        manifest = self.cluster.pod(name).requests(cpu=self.cpu).create_manifest()
        path = f"/api/v1/namespaces/{self.cluster.namespace}/pods"
        while not self._is_stopping:
            try:
                status, answer = client.call("POST", path, manifest)
            except (OSError, http.client.HTTPException):
                status, answer = 0, None
            if status in (201, 409):  # 409: an earlier try has arrived after all
                self.created.append(name)
                return True
            assert status in (0, 429) or status >= 500, f"creating {name}: {status} {answer}"
            time.sleep(0.05)
        return False


def l1_nodes(cluster: Cluster) -> list[NodeBuilder]:
    """Return 50 nodes with room for 5,500 pods."""
    return [cluster.node(f"n{i}", cpu="32", memory="64Gi", pods="110") for i in range(L1_NODES)]


def l2_nodes(cluster: Cluster) -> list[NodeBuilder]:
    """Return 20 nodes that hold 20 pods of one CPU each, and not one more."""
    return [cluster.node(f"n{i}", cpu="20", memory="64Gi", pods="110") for i in range(L2_NODES)]


def recovery_s(bound_at: Iterable[float], end_s: float, *, rate: float, is_complete: bool) -> float:
    """Return how long after the end of a fault the binding rate was back: N of the tests.

    It is back at the first bind that begins a second with `BACK_SHARE` of the load's rate, or when the last pod is bound
    if that comes first (only if all are bound: `is_complete`). Infinite if never.

    Args:
        bound_at: seconds since the epoch of every bind.
        end_s: the end of the fault.
        rate: of the load, in pods a second.
        is_complete: whether every pod was bound.

    Raises:
        AssertionError: the test did not measure it: fewer pods than such a second needs were left at the end of the fault.
    """
    times: Sequence[float] = sorted(at_s for at_s in bound_at if at_s > end_s)
    need = max(1, int(rate * BACK_SHARE))
    left = f"{len(times)} pods were left to bind at the end of the fault"
    assert len(times) >= need or not is_complete, f"N was not measured: {left}, and {need} in a second are the rate"
    for index, at_s in enumerate(times):
        last = index + need - 1
        if last < len(times) and times[last] <= at_s + 1.0:
            return at_s - end_s
    return times[-1] - end_s if is_complete else float("inf")
