"""Host ports: collecting and colliding."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.model.ports import HostPort, ports_conflict
from scheduler.testing import pod

ANY = "0.0.0.0"


def test_ports_of_containers_and_sidecars_count() -> None:
    """Ordinary init containers have gone when the pod runs; a port without hostPort is not the node's."""
    ported = (
        pod()
        .host_port(80)
        .container(ports=[{"containerPort": 1}, {"containerPort": 2, "hostPort": 443, "hostIP": "10.0.0.1"}])
        .init_container(ports=[{"containerPort": 3, "hostPort": 3}])
        .sidecar(ports=[{"containerPort": 53, "hostPort": 53, "protocol": "UDP"}])
        .container(ports=[{"containerPort": 80, "hostPort": 80}])
        .obj()
    )
    assert ported.host_ports == (
        HostPort(ANY, "UDP", 53),
        HostPort(ANY, "TCP", 80),
        HostPort("10.0.0.1", "TCP", 443),
    )


def test_a_pod_without_host_ports_needs_none() -> None:
    """The common case."""
    assert pod().obj().host_ports == ()


@pytest.mark.parametrize(
    ("wanted", "used", "expected"),
    [
        pytest.param([HostPort(ANY, "TCP", 80)], [HostPort(ANY, "TCP", 80)], True, id="same port"),
        pytest.param([HostPort(ANY, "TCP", 80)], [HostPort(ANY, "TCP", 81)], False, id="other number"),
        pytest.param([HostPort(ANY, "TCP", 80)], [HostPort(ANY, "UDP", 80)], False, id="other protocol"),
        pytest.param([HostPort("1.1.1.1", "TCP", 80)], [HostPort("2.2.2.2", "TCP", 80)], False, id="other address"),
        pytest.param([HostPort("1.1.1.1", "TCP", 80)], [HostPort("1.1.1.1", "TCP", 80)], True, id="same address"),
        pytest.param([HostPort(ANY, "TCP", 80)], [HostPort("1.1.1.1", "TCP", 80)], True, id="wanted on every address"),
        pytest.param([HostPort("1.1.1.1", "TCP", 80)], [HostPort(ANY, "TCP", 80)], True, id="used on every address"),
        pytest.param([], [HostPort(ANY, "TCP", 80)], False, id="nothing wanted"),
        pytest.param([HostPort(ANY, "TCP", 80)], [], False, id="nothing used"),
        pytest.param(
            [HostPort(ANY, "TCP", 1), HostPort(ANY, "TCP", 2)], [HostPort(ANY, "TCP", 2)], True, id="one of several"
        ),
    ],
)
def test_conflicts(wanted: list[HostPort], used: list[HostPort], expected: bool) -> None:
    """Two ports collide if protocol and number agree and the addresses overlap."""
    assert ports_conflict(wanted, set(used)) is expected


PORTS = st.lists(
    st.builds(
        HostPort, st.sampled_from((ANY, "1.1.1.1", "2.2.2.2")), st.sampled_from(("TCP", "UDP")), st.integers(1, 2)
    ),
    max_size=4,
)


@given(PORTS, PORTS)
@settings(deadline=None)
def test_collisions_are_found_whichever_side_has_more_ports(wanted, used) -> None:
    """Every pair of ports is looked at, in effect."""
    expected = any(
        (a.protocol, a.port) == (b.protocol, b.port) and (a.ip == b.ip or ANY in (a.ip, b.ip))
        for a in wanted
        for b in used
    )
    assert ports_conflict(wanted, used) is expected
