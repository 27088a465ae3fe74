"""The test control plane itself: identities, the real kube-scheduler beside it, restarts."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.controlplane.cluster import ControlPlane

pytestmark = pytest.mark.integration

POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "example.org/app:1"}]}}
READY_NODE = {
    "capacity": {"cpu": "4", "memory": "8Gi", "pods": "10"},
    "conditions": [{"type": "Ready", "status": "True"}],
}


def make_namespace(plane: ControlPlane, name: str) -> str:
    assert plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})[0] == 201
    return f"/api/v1/namespaces/{name}/pods"


def test_scheduler_identity_has_the_documented_rules_and_no_others(control_plane: ControlPlane) -> None:
    """A scheduler may read, bind and report; it may not change nodes, read secrets or take another lease."""
    pods = make_namespace(control_plane, "identity")
    scheduler = control_plane.scheduler_identity("scheduler-under-test")
    assert control_plane.request("POST", pods, POD)[0] == 201

    def code(method: str, path: str, body: Any = None, content_type: str = "application/json") -> int:
        return control_plane.request(method, path, body, content_type=content_type, kubeconfig=scheduler)[0]

    assert code("GET", "/api/v1/pods") == 200
    assert code("GET", "/api/v1/nodes") == 200
    merge = "application/merge-patch+json"
    assert code("PATCH", f"{pods}/p/status", {"status": {"message": "x"}}, merge) == 200
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
    assert code("POST", f"{pods}/p/binding", binding) == 201
    assert code("PATCH", f"{pods}/p", {"metadata": {"labels": {"a": "b"}}}, merge) == 403
    assert code("POST", "/api/v1/nodes", {"metadata": {"name": "n"}}) == 403
    assert code("GET", "/api/v1/secrets") == 403
    assert code("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler") == 403


def test_unknown_clients_may_do_nothing(control_plane: ControlPlane) -> None:
    """A certificate alone gives no rights."""
    kubeconfig = control_plane.client_kubeconfig("nobody", ["nothing"])
    assert control_plane.request("GET", "/api/v1/pods", kubeconfig=kubeconfig)[0] == 403


def test_real_scheduler_runs_beside_us_and_ends_when_told() -> None:
    """kube-scheduler binds a pod; the API server comes back after a restart with everything it knew."""
    with ControlPlane.start() as plane:
        pods = make_namespace(plane, "side")
        assert plane.request("POST", "/api/v1/nodes", {"metadata": {"name": "n"}, "status": READY_NODE})[0] == 201
        assert plane.request("POST", pods, POD)[0] == 201
        scheduler = plane.start_kube_scheduler()
        deadline = time.monotonic() + 30
        while not plane.request("GET", f"{pods}/p")[1]["spec"].get("nodeName"):
            assert time.monotonic() < deadline, scheduler.log_tail()
            assert scheduler.is_running, scheduler.log_tail()
            time.sleep(0.1)
        scheduler.stop()
        assert not scheduler.is_running
        plane.apiserver.kill()
        plane.start_apiserver()
        assert plane.request("GET", f"{pods}/p")[1]["spec"]["nodeName"] == "n"
        directory = plane.directory
    assert not directory.exists()
    assert not plane.etcd.is_running
