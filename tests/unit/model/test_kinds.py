"""The table of kinds."""

from __future__ import annotations

import pytest

from scheduler.api import EventResource
from scheduler.model.kinds import KINDS, kind_named
from scheduler.model.node import Node
from scheduler.model.pod import Pod
from scheduler.model.storage import CSIStorageCapacity
from scheduler.model.workload import ReplicaSet


@pytest.mark.parametrize(
    ("kind", "path", "object_path"),
    [
        (Pod, "/api/v1/pods", "/api/v1/namespaces/a/pods/x"),
        (Node, "/api/v1/nodes", "/api/v1/nodes/x"),
        (ReplicaSet, "/apis/apps/v1/replicasets", "/apis/apps/v1/namespaces/a/replicasets/x"),
        (
            CSIStorageCapacity,
            "/apis/storage.k8s.io/v1/csistoragecapacities",
            "/apis/storage.k8s.io/v1/namespaces/a/csistoragecapacities/x",
        ),
    ],
)
def test_paths(kind: type, path: str, object_path: str) -> None:
    """Where the API server serves a kind."""
    assert KINDS[kind].path == path
    assert KINDS[kind].object_path("a", "x") == object_path


def test_finished_pods_are_not_watched() -> None:
    """They take nothing from their nodes."""
    assert KINDS[Pod].field_selector == "status.phase!=Succeeded,status.phase!=Failed"


def test_event_resources_are_those_of_the_api() -> None:
    """The names must match, since metrics and registrations use them."""
    named = {info.resource for info in KINDS.values() if info.resource}
    assert named <= {resource.value for resource in EventResource}


def test_kinds_are_found_by_name() -> None:
    """Each under the name that manifests use."""
    assert {kind_named(info.kind) for info in KINDS.values()} == set(KINDS)
    with pytest.raises(LookupError, match="'Deployment'"):
        kind_named("Deployment")
