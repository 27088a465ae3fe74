"""Every shell block of the README and of the start page works as it stands there, on the real API server.

There is no kubelet on test machines: pods of the Deployment are run by ``tests/chart/installed.py``, and forwarding a
port, which is a kubelet's work too, leads to them. kubectl and Helm are real.
"""

from __future__ import annotations

import contextlib
import json
import lzma
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chart.generated import ALL_IN_ONE
from tests.chart.image import Image, build_image
from tests.chart.installed import InstalledPod
from tests.chart.rendering import documents
from tests.controlplane.cluster import ControlPlane
from tests.docs.shell import ROOT, Shell, shell_blocks
from tests.integration.api import Cluster

NOT_RUN = {"make test\n": "it is what runs this test"}
"""Blocks that are not run here, with the reason."""

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    return build_image(tmp_path_factory.mktemp("image"))


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with ControlPlane.start() as started:
        yield started


@pytest.fixture
def cluster(plane: ControlPlane) -> Iterator[Cluster]:
    with contextlib.closing(Cluster(plane, "docs")) as made:
        yield made


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A newcomer's clone."""
    subprocess.run(["git", "clone", "--quiet", ROOT, tmp_path / "podium"], check=True)
    return tmp_path / "podium"


def test_the_readme(checkout: Path, tmp_path: Path, plane: ControlPlane) -> None:
    """Clone, demo, Helm, simulate: one block after another."""
    blocks = [block for block in shell_blocks(ROOT / "README.md") if block not in NOT_RUN]
    (clone,) = (block for block in blocks if block.startswith("git clone"))
    newcomer = Shell(tmp_path / "podium" / "..", tmp_path / "home", plane.admin_kubeconfig)
    said = newcomer.run(
        clone.replace("<this repository> podium", f"{ROOT} podium-again").replace("cd podium", "cd podium-again")
    )
    assert "Insufficient" in said, "the demo says why pods stay pending"
    (checkout / "manifests").mkdir()
    (checkout / "manifests" / "cluster.yaml").write_text(CLUSTER)
    (checkout / "cases.jsonl").write_text(one_case())
    shell = Shell(checkout, tmp_path / "again", plane.admin_kubeconfig)
    for block in blocks:
        if block != clone:
            shell.run(block)
    releases = json.loads(shell.run("helm list --namespace kube-system -o json"))
    assert [release["status"] for release in releases] == ["deployed"]
    shell.run("helm uninstall podium --namespace kube-system")


def test_the_start_page(checkout: Path, tmp_path: Path, plane: ControlPlane, cluster: Cluster, image: Image) -> None:
    """Install, schedule, ask why, scrape, check a file, remove."""
    cluster.create(cluster.node())
    shell = Shell(checkout, tmp_path / "home", plane.admin_kubeconfig)
    install, *others = shell_blocks(ROOT / "docs" / "start.md")
    shell.run(install)
    pod = InstalledPod(plane, documents(ALL_IN_ONE.read_text()), image)
    kubelet = Kubelet(plane)
    kubelet.start()
    try:
        pod.wait_ready(timeout_s=90)
        shell.port_file.write_text(str(pod.port))
        said = [shell.run(block) for block in others]
    except BaseException:
        print(pod.log()[-6000:])
        raise
    finally:
        pod.process.stop()
        kubelet.stop()
    assert "Successfully assigned default/hello" in said[0]
    assert "0/1 nodes are available: 1 Insufficient cpu." in said[1]
    assert 'scheduler_schedule_attempts_total{profile="podium",result="scheduled"} 1.0' in said[2]


class Kubelet(threading.Thread):
    """Ends the pods that are being deleted, as their kubelets would."""

    def __init__(self, plane: ControlPlane) -> None:
        super().__init__(daemon=True)
        self._plane = plane
        self._is_over = threading.Event()

    def stop(self) -> None:
        self._is_over.set()
        self.join()

    def run(self) -> None:
        path = "/api/v1/namespaces/default/pods"
        while not self._is_over.wait(0.5):
            for pod in self._plane.request("GET", path)[1]["items"]:
                if "deletionTimestamp" in pod["metadata"]:
                    self._plane.request("DELETE", f"{path}/{pod['metadata']['name']}", {"gracePeriodSeconds": 0})


def one_case() -> str:
    """Return a case of the golden files."""
    golden = ROOT / "tests" / "conformance" / "golden" / "basics.jsonl.xz"
    with lzma.open(golden, "rt") as lines:
        return json.dumps(json.loads(next(lines))["case"]) + "\n"


CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: n1}
status:
  capacity: {cpu: "4", memory: 8Gi, pods: "110"}
  allocatable: {cpu: "4", memory: 8Gi, pods: "110"}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: default}
spec:
  containers: [{name: web, image: web, resources: {requests: {cpu: "1"}}}]
"""
