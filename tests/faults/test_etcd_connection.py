"""What is between API server and etcd breaks, while both are well."""

from __future__ import annotations

import time
from urllib.parse import urlsplit

from tests.faults.bench import FaultBench, fault
from tests.faults.proxy import Blackhole, Match, ResetPeer, Rule, TcpProxy
from tests.faults.results import at_most, exactly


@fault(4, "all between API server and etcd in a black hole for 8 s, then reset (L1)", fresh=True)
def test_etcd_out_of_reach(bench: FaultBench) -> None:
    """As when etcd is frozen, but the connections do not survive: what was on its way to etcd is lost."""
    etcd = urlsplit(bench.plane.etcd_url)
    assert etcd.port is not None
    with TcpProxy.start(etcd.port, seed=bench.seed, log_file=bench.directory / "proxy-etcd.jsonl") as proxy:
        restart_with_etcd_at(bench, f"http://{etcd.hostname}:{proxy.port}")
        scheduler = bench.scheduler("a")
        load = bench.load_l1(closed=True)
        load.wait_created(500)
        bench.open_nodes(load)
        hole = proxy.add(Rule(Match(), Blackhole()))
        time.sleep(8.0)
        cut = proxy.add(Rule(Match(), ResetPeer()))
        hole.remove()
        time.sleep(0.5)
        cut.remove()
        end_s = time.time()
        bench.plane.wait_ready()
        bench.settle()
        bench.figure("N", at_most(3), bench.recovery_s(load, end_s), "s")
        bench.figure("restarts", exactly(0), scheduler.restarts)
        assert hole.hits > 0
        assert cut.hits > 0
        assert proxy.record.errors == []
        bench.verdict()
        restart_with_etcd_at(bench, bench.plane.etcd_url)  # what ends the test needs it after the proxy


def restart_with_etcd_at(bench: FaultBench, url: str) -> None:
    """Start the API server anew, which then looks for etcd there."""
    bench.plane.apiserver.stop()
    bench.plane.etcd_address = url
    bench.plane.start_apiserver()
