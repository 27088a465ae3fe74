"""``podium demo``: the daemon at work on an embedded API server, in one terminal, without a cluster.

podium demo            a small cluster, three dozen pods, a live view, then placements and reasons
podium demo --serve    the same, and stays open for kubectl and for scraping until Ctrl-C
"""

from __future__ import annotations

import argparse
import asyncio
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scheduler.app.daemon import Daemon
from scheduler.cli.demo_cluster import PRIORITY_CLASS, SCHEDULER_NAME, demo_nodes, demo_pods
from scheduler.config.flags import complete, parse_flags
from scheduler.telemetry import logging
from scheduler.testing.apiserver import EmbeddedApiServer

__all__ = ["demo"]

Json = dict[str, Any]

_FRAME_S = 0.15
_LONGEST_S = 20.0
_SETTLED_S = 1.5
_BAR = 20
_CLEAR = "\x1b[H\x1b[J"

_CONFIG = f"""\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  resourceName: podium
profiles:
  - schedulerName: {SCHEDULER_NAME}
"""


def demo(argv: Sequence[str]) -> int:
    """Run the sub-command; returns its exit code: 1 if the pods that can run did not all get a node."""
    parser = argparse.ArgumentParser(prog="podium demo", allow_abbrev=False, description=__doc__.split("\n")[0])
    parser.add_argument("--serve", action="store_true", help="stay open until Ctrl-C")
    options = parser.parse_args(argv)
    with (
        tempfile.TemporaryDirectory(prefix="podium-demo-") as directory,
        Path(directory, "podium.log").open("w") as log,
        EmbeddedApiServer.in_thread() as server,
    ):
        logging.configure(verbosity=2, stream=log)
        kubeconfig = Path(directory, "kubeconfig")
        kubeconfig.write_text(server.kubeconfig())
        with _daemon(Path(directory), kubeconfig) as daemon:
            is_complete = _show(server)
            if options.serve:
                _serve(server, daemon, kubeconfig)
    return 0 if is_complete else 1


@contextmanager
def _daemon(directory: Path, kubeconfig: Path) -> Iterator[Daemon]:
    """Run the daemon in a thread, configured by flags as users configure it."""
    config = directory / "config.yaml"
    config.write_text(_CONFIG)
    port = str(_free_port())
    flags = ["--config", str(config), "--kubeconfig", str(kubeconfig), "--secure-port", port]
    daemon = Daemon(complete(parse_flags([*flags, "--bind-address", "127.0.0.1"])))
    thread = threading.Thread(target=lambda: asyncio.run(daemon.run()), name="service")
    thread.start()
    try:
        yield daemon
    finally:
        daemon.stop()
        thread.join()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _show(server: EmbeddedApiServer) -> bool:
    """Create the cluster and the pods while drawing what happens; returns whether all that can run have a node."""
    print("Podium demo: the real scheduler on an embedded API server\n")
    server.create(PRIORITY_CLASS)
    for node in demo_nodes():
        server.create(node)
    started_s = changed_s = time.monotonic()
    waiting = list(demo_pods())
    count = len(waiting)
    last: list[str] = []
    while time.monotonic() - started_s < _LONGEST_S:
        for pod in waiting[:3]:
            server.create(pod.create_manifest())
        del waiting[:3]
        pods = server.list("pods")
        frame = _frame(server.list("nodes"), pods)
        if frame != last:
            last, changed_s = frame, time.monotonic()
            _draw(frame, pods, count)
        if not waiting and time.monotonic() - changed_s > _SETTLED_S and all(map(_is_decided, pods)):
            break
        time.sleep(_FRAME_S)
    _summary(pods, time.monotonic() - started_s)
    return all(map(_is_decided, pods))


def _is_decided(pod: Json) -> bool:
    """Say whether the pod has a node or a reason."""
    return bool(pod["spec"].get("nodeName") or _reason(pod))


def _reason(pod: Json) -> str:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return next(
        (c.get("message", "") for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"), ""
    )


def _frame(nodes: Sequence[Json], pods: Sequence[Json]) -> list[str]:
    width = max(len(node["metadata"]["name"]) for node in nodes)
    return [_node_line(node, pods, width) for node in nodes]


def _node_line(node: Json, pods: Sequence[Json], width: int) -> str:
    name = node["metadata"]["name"]
    here = [pod for pod in pods if pod["spec"].get("nodeName") == name]
    milli = sum(_cpu_milli(pod) for pod in here)
    capacity = 1000 * int(node["status"]["allocatable"]["cpu"])
    filled = min(_BAR, round(_BAR * milli / capacity))
    marks = (
        "cordoned"
        if node["spec"].get("unschedulable")
        else ", ".join(t["key"] for t in node["spec"].get("taints") or ())
    )
    bar = "█" * filled + "·" * (_BAR - filled)
    used = f"{milli / 1000:>4.1f} of {capacity // 1000} cpu, {len(here):>2} pods"
    return f"  {name:<{width}}  {bar}  {used}  {marks}".rstrip()


def _cpu_milli(pod: Json) -> int:
    total = 0
    for container in pod["spec"]["containers"]:
        text = ((container.get("resources") or {}).get("requests") or {}).get("cpu", "0")
        total += int(text[:-1]) if text.endswith("m") else 1000 * int(text)
    return total


def _draw(frame: Sequence[str], pods: Sequence[Json], count: int) -> None:
    bound = sum(bool(pod["spec"].get("nodeName")) for pod in pods)
    status = f"  {len(pods)} of {count} pods created, {bound} have a node"
    if sys.stdout.isatty():
        print(_CLEAR + "Podium demo\n\n" + "\n".join(frame) + f"\n\n{status}\n", flush=True)
    else:
        print(status, flush=True)


def _summary(pods: Sequence[Json], seconds: float) -> None:
    placed = [pod for pod in pods if pod["spec"].get("nodeName")]
    print(f"\nPlacements ({len(placed)} pods, {seconds:.1f} s):\n")
    by_node: dict[str, list[str]] = {}
    for pod in placed:
        by_node.setdefault(pod["spec"]["nodeName"], []).append(pod["metadata"]["name"])
    for node, names in sorted(by_node.items()):
        print(f"  {node:<12} {' '.join(names)}")
    print("\nPending, and why:\n")
    for pod in pods:
        if not pod["spec"].get("nodeName"):
            print(f"  {pod['metadata']['name']:<16} {_reason(pod) or 'not tried yet'}")
    print()


def _serve(server: EmbeddedApiServer, daemon: Daemon, kubeconfig: Path) -> None:
    print(f"The API server listens on {server.url}; Ctrl-C ends it. Try:\n")
    print(f"  kubectl --kubeconfig {kubeconfig} get pods -o wide")
    print(f"  kubectl --kubeconfig {kubeconfig} run hello --image=registry.example/hello \\")
    print(f'      --overrides=\'{{"spec": {{"schedulerName": "{SCHEDULER_NAME}"}}}}\'')
    print(f"  curl -k https://127.0.0.1:{daemon.port}/metrics")
    print(f"  tail -f {kubeconfig.parent / 'podium.log'}\n", flush=True)
    try:
        while True:
            time.sleep(1)
    except KeyboardInterrupt:
        print("ending")
