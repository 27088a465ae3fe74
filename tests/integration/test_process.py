"""The process as an operator meets it: exit codes, what it says about a bad file, how it ends."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.controlplane.cluster import ControlPlane
from tests.integration.api import Cluster, Json
from tests.integration.conftest import StartDaemon

BROKEN = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
parallelism: -1
podInitialBackoffSeconds: 0
unknownField: 1
profiles:
- schedulerName: a
  plugins: {multiPoint: {enabled: [{name: NoSuchPlugin}]}}
- schedulerName: a
"""


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "scheduler", "run", *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=30)


def test_bad_file_is_refused_with_everything_that_is_wrong(tmp_path: Path, control_plane: ControlPlane) -> None:
    """Exit 1 before anything is begun, one line a problem."""
    path = tmp_path / "broken.yaml"
    path.write_text(BROKEN)
    done = _run("--config", str(path), "--kubeconfig", str(control_plane.admin_kubeconfig))
    assert done.returncode == 1
    lines = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    for words in ("unknownField", "parallelism", "podInitialBackoffSeconds", "schedulerName"):
        assert any(words in line for line in lines), f"{words} is not among {lines}"
    assert "Traceback" not in done.stderr


def test_plugin_that_nobody_offers_is_named(tmp_path: Path, control_plane: ControlPlane) -> None:
    """A profile that names it cannot be built: exit 1."""
    path = tmp_path / "plugin.yaml"
    header = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    path.write_text(f"{header}profiles: [{{plugins: {{multiPoint: {{enabled: [{{name: NoSuchPlugin}}]}}}}}}]\n")
    done = _run("--config", str(path), "--kubeconfig", str(control_plane.admin_kubeconfig), "--secure-port", "0")
    assert done.returncode == 1
    assert "NoSuchPlugin" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        pytest.param(["--no-such-flag"], 2, "no-such-flag", id="unknown flag"),
        pytest.param(["--secure-port", "many"], 2, "secure-port", id="value of the wrong type"),
        pytest.param(["--config", "/does/not/exist.yaml"], 1, "/does/not/exist.yaml", id="no such file"),
        pytest.param(["--kubeconfig", "/does/not/exist"], 1, "/does/not/exist", id="no such kubeconfig"),
    ],
)
def test_what_cannot_start_says_why(arguments: list[str], code: int, words: str) -> None:
    """Usage is 2, everything else 1; never a traceback."""
    done = _run(*arguments)
    assert done.returncode == code
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("elect", [False, True], ids=["without election", "as leader"])
def test_sigterm_under_load_loses_no_pod(elect: bool, cluster: Cluster, start_daemon: StartDaemon, lease: str) -> None:
    """Exit 0 within 20 s with binds in flight; every pod is bound or pending, and the next daemon binds the rest."""
    cluster.create(*(cluster.node(f"n{i}", cpu="50", pods="50") for i in range(8)))
    first = start_daemon(cluster.scheduler, elect=elect)
    first.wait_ready()
    cluster.create(*(cluster.pod(f"p{i}").requests(cpu="1").node_selector(open="yes") for i in range(400)))
    cluster.wait_unschedulable("p399")
    *nodes, last = cluster.nodes()  # the last one is opened after the end, so that something is left to bind
    for node in nodes:
        _open(cluster, node)
    cluster.wait_begun("p20")
    code, seconds = first.terminate()
    left = 400 - len(cluster.bound())
    print(f"ended {seconds:.2f} s after SIGTERM, {left} pods still pending")
    assert code == 0
    assert seconds < 20
    assert "bindings had no outcome" not in first.log()
    assert "Traceback" not in first.log()
    assert left >= 50
    if elect:
        assert cluster.client.ok("GET", lease)["spec"].get("holderIdentity", "") == ""
    started_s = time.monotonic()
    _open(cluster, last)
    start_daemon(cluster.scheduler, elect=elect)
    bound = cluster.wait_bound()
    print(f"the next daemon had bound the rest {time.monotonic() - started_s:.2f} s after its start")
    assert sorted(list(bound.values()).count(node) for node in set(bound.values())) == [50] * 8


def _open(cluster: Cluster, node: Json) -> None:
    cluster.patch(f"/api/v1/nodes/{node['metadata']['name']}", {"metadata": {"labels": {"open": "yes"}}})


def test_sigterm_ends_it_without_an_apiserver(
    control_plane: ControlPlane, cluster: Cluster, start_daemon: StartDaemon, lease: str
) -> None:
    """The lease cannot be released; the process ends all the same."""
    daemon = start_daemon(cluster.scheduler, elect=True)
    daemon.wait_ready()
    control_plane.apiserver.kill()
    try:
        code, seconds = daemon.terminate()
    finally:
        control_plane.start_apiserver()
    print(f"ended {seconds:.2f} s after SIGTERM")
    assert code == 0
    assert seconds < 20
    del lease
