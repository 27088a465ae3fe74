"""An extender that misbehaves in every way that one can over HTTP, beside the daemon as deployed."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext

from tests.benchmarks.procfs import peak_rss_mb
from tests.contract.extender.server import ExtenderServer
from tests.faults.bench import FaultBench, fault
from tests.faults.results import at_most, exactly
from tests.faults.supervisor import SupervisedScheduler
from tests.integration.api import eventually
from tests.integration.settled import wait_told

TIMEOUT_S = 5.0
GPU = "example.com/gpu"
REFUSED = "connection refused"
FAILS = {
    REFUSED: "Connection refused",
    "ten seconds slow": "Post",
    "status 500": "code 500",
    "HTML": "answered no JSON",
    "invalid UTF-8": "answered no",
    "1 GB body": "longer than 41943040 bytes",
    "slow loris": "Post",
    "unknown node": "not found in the input node list",
    "redirect": "code 307",
    "nested too deeply": "answered no JSON",
    "reports an error": "no device left",
    "hangs up": "Post",
}


@fault(
    36,
    "an extender refuses connections, is slow, answers 500, HTML, bad UTF-8, 1 GB, drips, redirects, names unknown nodes",
)
def test_misbehaving_extender(bench: FaultBench) -> None:
    """The pods that are its business are told; all others are bound meanwhile; memory and time are bounded."""
    server = ExtenderServer()
    try:
        extender = {
            "urlPrefix": server.url, "filterVerb": "filter", "prioritizeVerb": "rank", "weight": 5,
            "nodeCacheCapable": True, "httpTimeout": f"{TIMEOUT_S:g}s", "managedResources": [{"name": GPU}],
        }  # fmt: skip
        scheduler = bench.scheduler(elect=False, configuration={"extenders": [extender]})
        cluster = bench.cluster
        room = {"cpu": "20", "memory": "64Gi", "pods": "110", GPU: "100"}
        cluster.create(
            *(cluster.node(name).set("status.allocatable", room).set("status.capacity", room) for name in "ab")
        )
        cluster.create(cluster.pod("warm").requests({GPU: "1"}).limits({GPU: "1"}))
        cluster.wait_bound("warm")
        before = peak_rss_mb(scheduler.daemon.process.pid)
        slowest_s = 0.0
        for number, (name, words) in enumerate(FAILS.items()):
            with failing(server, name):
                begun_s, pod, beside = time.monotonic(), f"p{number}", f"beside-{number}"
                cluster.create(cluster.pod(pod).requests({GPU: "1"}).limits({GPU: "1"}))
                wait_told(cluster, pod, words, timeout_s=60)
                slowest_s = max(slowest_s, time.monotonic() - begun_s)
                cluster.delete(pod)
                cluster.create(cluster.pod(beside))
                cluster.wait_bound(beside)
        assert not [path for path, _ in server.asked if "trap" in path], "a redirect was followed"
        server.behave("score out of range")
        cluster.create(cluster.pod("scored").requests({GPU: "1"}).limits({GPU: "1"}))
        eventually(lambda: "scored" in cluster.bound(), "scores being ignored that cannot be", timeout_s=60)
        bench.figure("the longest that one attempt took", at_most(TIMEOUT_S + 1.0), slowest_s, "s")
        more_mb = peak_rss_mb(scheduler.daemon.process.pid) - before
        bench.figure("more memory at its peak, MiB", at_most(64), more_mb)
        leave_alone(bench, server, scheduler)
        bench.figure("restarts", exactly(0), scheduler.restarts)
        bench.settle()
        bench.verdict()
    finally:
        server.close()


def failing(server: ExtenderServer, name: str) -> AbstractContextManager[None]:
    """Let the extender fail in a way while the block runs; all but one go on until another is asked for."""
    if name == REFUSED:
        return server.refusing()
    server.behave(name)
    return nullcontext()


def leave_alone(bench: FaultBench, server: ExtenderServer, scheduler: SupervisedScheduler) -> None:
    """Be slow until the extender is asked no more, and the pods that are its business fail at once."""
    server.behave("slow loris")
    cluster = bench.cluster
    cluster.create(cluster.pod("patient").requests({GPU: "1"}).limits({GPU: "1"}))

    def skipped() -> bool:
        return scheduler.daemon.metrics().total("podium_extender_calls_total", result="skipped") > 0

    eventually(skipped, "an extender that is slow again and again to be left alone", timeout_s=180, poll_s=0.5)
    time.sleep(2.0)  # for the sampler, which looks once a second
    cluster.delete("patient")
