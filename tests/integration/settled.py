"""Waiting until the scheduler knows what the test knows.

Nodes and pods come to the scheduler by watches of their own, so a pod may be tried before a node that was created earlier
is known. Tests that count on every node begin with `known_nodes`; tests that wait for a reason wait for its words.
"""

from __future__ import annotations

from scheduler.testing.node_builder import NodeBuilder
from tests.integration.api import Cluster, Json, condition, eventually

HOSTNAME = "kubernetes.io/hostname"


def known_nodes(cluster: Cluster, *builders: NodeBuilder) -> None:
    """Create nodes, and wait until the test's scheduler could use the last one."""
    created = cluster.create(*builders)
    last = created[-1]["metadata"]["labels"][HOSTNAME]
    cluster.create(cluster.pod("probe").toleration(operator="Exists").node_selector({HOSTNAME: last}))
    cluster.wait_bound("probe")
    cluster.delete("probe")


def on_node(cluster: Cluster, name: str) -> dict[str, str]:
    """Return the node selector for a node of the test by its short name."""
    return {HOSTNAME: f"{cluster.namespace}-{name}"}


def wait_told(cluster: Cluster, name: str, text: str, *, timeout_s: float = 30.0) -> Json:
    """Wait until the pod's PodScheduled condition contains the text; returns the condition."""
    last: Json = {}

    def probe() -> Json | None:
        last.update(condition(cluster.get(name)) or {})
        return last if text in last.get("message", "") else None

    try:
        return eventually(probe, f"{name} to be told: {text}", timeout_s=timeout_s)
    except AssertionError as error:
        raise AssertionError(f"{error}; it was told: {last.get('message')}") from None


def notes(cluster: Cluster, name: str, text: str) -> list[str]:
    """Return the notes of FailedScheduling events about the pod that contain the text."""
    return [event["note"] for event in cluster.events(name, "FailedScheduling") if text in event["note"]]
