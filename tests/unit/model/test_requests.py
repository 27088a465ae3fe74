"""Effective requests of pods and allocatable amounts of nodes (spec §3.3, §3.4)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from scheduler.model.quantity import MAX_INT64
from scheduler.model.requests import DEFAULT_CPU_MILLI, DEFAULT_MEMORY_BYTES, is_scalar_resource
from scheduler.testing import PodBuilder, node, pod

MI = 2**20
GI = 2**30


@pytest.mark.parametrize(
    ("wanted", "requests"),
    [
        pytest.param(pod(), {}, id="a pod that states nothing asks for nothing"),
        pytest.param(pod().requests(cpu="1500m", memory="1Gi"), {"cpu": 1500, "memory": GI}, id="one container"),
        pytest.param(pod().limits(cpu="1"), {}, id="limits are not requests"),
        pytest.param(
            pod().requests(cpu="1").container({"cpu": "500m", "memory": "1Mi"}),
            {"cpu": 1500, "memory": MI},
            id="containers add up",
        ),
        pytest.param(
            pod().requests(cpu="100u").container({"cpu": "100u"}).container({"cpu": "100u"}),
            {"cpu": 1},
            id="rounding happens after the sum",
        ),
        pytest.param(pod().requests(memory="100m"), {"memory": 1}, id="a tenth of a byte is a byte"),
        pytest.param(
            pod().requests(cpu="1").init_container({"cpu": "3"}).init_container({"cpu": "2", "memory": "1Mi"}),
            {"cpu": 3000, "memory": MI},
            id="the largest init container counts if it is larger than the sum",
        ),
        pytest.param(
            pod().requests(cpu="4").init_container({"cpu": "3"}),
            {"cpu": 4000},
            id="a smaller init container does not count",
        ),
        pytest.param(
            pod().requests(cpu="1").sidecar({"cpu": "2"}),
            {"cpu": 3000},
            id="a sidecar adds to the containers",
        ),
        pytest.param(
            pod().requests(cpu="1").sidecar({"cpu": "2"}).init_container({"cpu": "3"}).sidecar({"cpu": "1"}),
            {"cpu": 5000},
            id="an init container runs beside the sidecars before it",
        ),
        pytest.param(
            pod().requests(cpu="1").init_container({"cpu": "3"}).sidecar({"cpu": "2"}),
            {"cpu": 3000},
            id="but not beside those behind it",
        ),
        pytest.param(
            pod().requests(cpu="1").init_container({"cpu": "4"}).overhead(cpu="250m", memory="1Mi"),
            {"cpu": 4250, "memory": MI},
            id="overhead comes on top",
        ),
        pytest.param(
            pod().requests(cpu="1", memory="1Gi").pod_requests(cpu="500m").overhead(cpu="100m"),
            {"cpu": 600, "memory": GI},
            id="a pod-level request replaces the sum, overhead still comes on top",
        ),
        pytest.param(
            pod().requests({"example.com/gpu": 2}).pod_requests({"example.com/gpu": 5, "hugepages-2Mi": "4Mi"}),
            {"example.com/gpu": 2, "hugepages-2Mi": 4 * MI},
            id="pod level knows CPU, memory and huge pages only",
        ),
        pytest.param(
            pod().requests({"example.com/gpu": 1, "unknown": 1, "pods": 1, "ephemeral-storage": "1Gi"}),
            {"example.com/gpu": 1, "ephemeral-storage": GI},
            id="names that the scheduler does not count are left out",
        ),
        pytest.param(
            pod().requests(cpu="1e30", memory="1e30"), {"cpu": MAX_INT64, "memory": MAX_INT64}, id="saturates"
        ),
        pytest.param(
            pod().requests(memory="9E").container({"memory": "9E"}), {"memory": MAX_INT64}, id="a sum saturates too"
        ),
    ],
)
def test_requests_of_a_pending_pod(wanted: PodBuilder, requests: dict[str, int]) -> None:
    """What a pending pod asks for."""
    assert wanted.obj().requests == requests


def infeasible(builder: PodBuilder) -> PodBuilder:
    return builder.condition("PodResizePending", reason="Infeasible")


RESIZING = pod().requests(cpu="2", memory="1Gi").on("n1")


@pytest.mark.parametrize(
    ("assigned", "requests"),
    [
        pytest.param(RESIZING, {"cpu": 2000, "memory": GI}, id="without status the spec counts"),
        pytest.param(
            RESIZING.container_status(allocated={"cpu": "5"}),
            {"cpu": 2000, "memory": GI},
            id="an allocation without actuated resources is not looked at",
        ),
        pytest.param(
            RESIZING.container_status(actuated={"cpu": "3"}, allocated={"cpu": "1", "memory": "2Gi"}),
            {"cpu": 3000, "memory": 2 * GI},
            id="the largest of spec, actuated and allocated counts",
        ),
        pytest.param(
            infeasible(RESIZING.container_status(actuated={"cpu": "500m"}, allocated={"cpu": "1"})),
            {"cpu": 1000},
            id="an infeasible wish does not count",
        ),
        pytest.param(
            RESIZING.container_status(actuated={"cpu": "1"}, allocated={}).condition(
                "PodResizePending", reason="Deferred"
            ),
            {"cpu": 2000, "memory": GI},
            id="a deferred wish does",
        ),
        pytest.param(
            pod().init_container({"cpu": "1"}, name="i").container_status("i", actuated={"cpu": "9"}, allocated={}),
            {"cpu": 1000},
            id="an ordinary init container is never resized",
        ),
        pytest.param(
            pod().sidecar({"cpu": "1"}, name="s").container_status("s", actuated={"cpu": "9"}, allocated={}),
            {"cpu": 9000},
            id="a sidecar is",
        ),
        pytest.param(
            pod()
            .requests(cpu="1")
            .pod_requests(cpu="2", memory="1Gi")
            .set("status.resources", {"requests": {"cpu": "4"}})
            .set("status.allocatedResources", {"cpu": "3"}),
            {"cpu": 4000, "memory": GI},
            id="pod-level resize works alike",
        ),
        pytest.param(
            infeasible(pod().pod_requests(cpu="2", memory="1Gi").set("status.resources", {"requests": {"cpu": "1"}})),
            {"cpu": 1000, "memory": 0},
            id="pod level, infeasible: what was never allocated is nothing",
        ),
    ],
)
def test_requests_of_an_assigned_pod(assigned: PodBuilder, requests: dict[str, int]) -> None:
    """What a pod takes from its node while a resize may be under way."""
    assert assigned.obj().accounted_requests == requests


def test_a_pending_pods_status_does_not_count() -> None:
    """Only accounting looks at the status."""
    resized = RESIZING.container_status(actuated={"cpu": "9"}, allocated={}).obj()
    assert resized.requests == {"cpu": 2000, "memory": GI}


@pytest.mark.parametrize(
    ("wanted", "cpu_milli", "memory_bytes"),
    [
        pytest.param(pod(), DEFAULT_CPU_MILLI, DEFAULT_MEMORY_BYTES, id="nothing stated"),
        pytest.param(pod().requests(cpu="0", memory="0"), 0, 0, id="a stated zero stays zero"),
        pytest.param(pod().requests(cpu="1"), 1000, DEFAULT_MEMORY_BYTES, id="one resource stated"),
        pytest.param(
            pod().requests(cpu="1").container().container({"memory": "1Gi"}),
            1000 + 2 * DEFAULT_CPU_MILLI,
            GI + 2 * DEFAULT_MEMORY_BYTES,
            id="each container for itself",
        ),
        pytest.param(
            pod().requests(cpu="50m", memory="1Mi").init_container(),
            DEFAULT_CPU_MILLI,
            DEFAULT_MEMORY_BYTES,
            id="init containers too",
        ),
        pytest.param(
            pod().overhead(cpu="1"), 1000 + DEFAULT_CPU_MILLI, DEFAULT_MEMORY_BYTES, id="overhead comes on top"
        ),
        pytest.param(
            pod().container().pod_requests(cpu="1"),
            1000,
            2 * DEFAULT_MEMORY_BYTES,
            id="pod level: only what is stated nowhere gets the default",
        ),
        pytest.param(
            pod().requests(memory="1Gi").container().pod_requests(cpu="1"),
            1000,
            GI,
            id="pod level: stated by one container is stated",
        ),
        pytest.param(
            pod().pod_requests({"example.com/gpu": 1}),
            DEFAULT_CPU_MILLI,
            DEFAULT_MEMORY_BYTES,
            id="pod-level requests that have no meaning there do not count as set",
        ),
    ],
)
def test_non_zero_requests(wanted: PodBuilder, cpu_milli: int, memory_bytes: int) -> None:
    """Containers that state nothing weigh something in scores."""
    assert wanted.obj().non_zero_requests == {"cpu": cpu_milli, "memory": memory_bytes}


def test_accounted_non_zero_requests_look_at_the_status() -> None:
    """The defaults apply to what the status yields."""
    resized = pod().requests(cpu="1").container_status(actuated={"cpu": "3"}, allocated={}).obj()
    assert resized.accounted_non_zero_requests == {"cpu": 3000, "memory": DEFAULT_MEMORY_BYTES}


def test_allocatable_of_a_node() -> None:
    """Names that nobody counts are left out; pods are counted."""
    allocatable = (
        node()
        .capacity({"cpu": "3920m", "memory": "8Gi", "pods": "110", "ephemeral-storage": "1Gi", "odd": "5"})
        .allocatable({"example.com/gpu": 2, "attachable-volumes-csi-x": 25})
        .obj()
        .allocatable
    )
    assert allocatable == {
        "cpu": 3920,
        "memory": 8 * GI,
        "pods": 110,
        "ephemeral-storage": GI,
        "example.com/gpu": 2,
        "attachable-volumes-csi-x": 25,
    }


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("example.com/gpu", True),
        ("hugepages-2Mi", True),
        ("attachable-volumes-csi-x", True),
        ("kubernetes.io/anything", True),
        ("x.kubernetes.io/y", True),
        ("requests.example.com/gpu", False),
        ("gpu", False),
        ("a/b/c", False),
        ("/gpu", False),
        ("Example.com/gpu", False),
        ("example.com/-", False),
        ("example.com/" + "x" * 63, True),
        ("example.com/" + "x" * 64, False),
        ("e" * 245 + "/gpu", False),
        ("example.com/gpu\n", False),
    ],
)
def test_scalar_resources(name: str, expected: bool) -> None:
    """Extended resources need a domain and a valid name."""
    assert is_scalar_resource(name) is expected


@pytest.mark.parametrize(
    "build",
    [
        pytest.param(lambda p: p.init_container({}), id="empty init container"),
        pytest.param(lambda p: p.overhead(cpu="0"), id="zero overhead"),
        pytest.param(lambda p: p.container({}), id="empty second container"),
        pytest.param(lambda p: p.set("spec.resources", {}), id="empty pod-level resources"),
    ],
)
def test_fast_and_general_path_agree(build: Callable[[PodBuilder], PodBuilder]) -> None:
    """What adds nothing changes nothing."""
    plain = pod().requests({"cpu": "1500u", "memory": "1.5Ki", "example.com/gpu": "1", "odd": "1"})
    assert build(plain).obj().requests == plain.obj().requests
