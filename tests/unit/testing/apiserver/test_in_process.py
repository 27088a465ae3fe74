"""The embedded server without its sockets: what tests and demos call directly."""

from __future__ import annotations

import datetime as dt

import pytest
import yaml

from scheduler.testing.apiserver import ApiStatusError, EmbeddedApiServer

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "default"},
    "spec": {"containers": [{"name": "c", "image": "x"}]},
}


def test_created_objects_are_read_back_as_copies() -> None:
    """What a caller changes does not reach the store."""
    server = EmbeddedApiServer()
    created = server.create(POD)
    assert (created["kind"], created["apiVersion"]) == ("Pod", "v1")
    created["spec"]["nodeName"] = "elsewhere"
    held = server.get("pods", "p")
    assert held is not None
    assert "nodeName" not in held["spec"]
    assert server.get("pods", "q") is None


def test_callers_object_is_not_changed() -> None:
    """A manifest can be used again."""
    server = EmbeddedApiServer()
    before = repr(POD)
    server.create(POD)
    assert repr(POD) == before


def test_lists_are_per_namespace_or_whole() -> None:
    """None means every namespace."""
    server = EmbeddedApiServer()
    server.create(POD)
    server.create({**POD, "metadata": {"name": "p", "namespace": "kube-system"}})
    assert len(server.list("pods")) == 2
    assert [pod["metadata"]["namespace"] for pod in server.list("pods", "kube-system")] == ["kube-system"]


def test_verbs_follow_the_same_rules_as_http() -> None:
    """Bind once, then conflict; delete what is bound only by force."""
    server = EmbeddedApiServer()
    server.create(POD)
    server.bind("p", "n1")
    with pytest.raises(ApiStatusError, match="already assigned") as refused:
        server.bind("p", "n2")
    assert refused.value.code == 409
    server.delete("pods", "p")
    assert server.get("pods", "p") is not None
    server.delete("pods", "p", grace_period_s=0)
    assert server.get("pods", "p") is None


def test_status_can_be_patched() -> None:
    """The sub-resource leaves the spec alone."""
    server = EmbeddedApiServer()
    server.create(POD)
    patched = server.patch("pods", "p", {"status": {"phase": "Running"}}, subresource="status")
    assert patched["status"]["phase"] == "Running"


def test_unknown_kinds_are_named() -> None:
    """A slip in a test's manifest fails at once."""
    with pytest.raises(KeyError, match="unicorns"):
        EmbeddedApiServer().list("unicorns")


def test_clock_stamps_objects() -> None:
    """A fixed clock makes fixed objects."""
    server = EmbeddedApiServer(clock=lambda: dt.datetime(2030, 1, 2, 3, 4, 5, tzinfo=dt.UTC))
    assert server.create(POD)["metadata"]["creationTimestamp"] == "2030-01-02T03:04:05Z"


def test_every_write_raises_the_version_by_one() -> None:
    """One counter for all resources."""
    server = EmbeddedApiServer()
    first = server.resource_version
    server.create(POD)
    server.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})
    assert server.resource_version == first + 2


def test_kubeconfig_points_to_the_server() -> None:
    """kubectl needs nothing else."""
    server = EmbeddedApiServer(port=12345)
    document = yaml.safe_load(server.kubeconfig())
    assert document["clusters"][0]["cluster"] == {"server": "http://127.0.0.1:12345"}
