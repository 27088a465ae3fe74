"""The controllers of the model cluster, which never fail: kubelets, garbage collection, volumes.

A claim whose node is chosen gets a volume made there after a moment, or the choice is taken back, as a provisioner does
that has no room; a volume that was taken for a claim is bound to it.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable

from scheduler.testing.apiserver.store import Change
from tests.simulation.cluster import CLAIMS, NODES, PODS, VOLUMES, Cluster

__all__ = ["Controllers"]

Later = Callable[..., object]

SELECTED_NODE = "volume.kubernetes.io/selected-node"
_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
_KUBELET_S = 0.25
_COLLECTED_S, _ORPHAN_S = (0.0, 20.0), 20.0
_PROVISIONED_S = (0.1, 4.0)
_BOUND_S = (0.05, 1.0)
_HAS_NO_ROOM = 0.25


class Controllers:
    """All of them.

    Args:
        cluster: theirs.
        later: ``later(seconds, function, *arguments)`` calls something in a while.
        chance: how long things take.
    """

    def __init__(self, cluster: Cluster, later: Later, chance: random.Random) -> None:
        self._cluster = cluster
        self._later = later
        self._chance = chance
        for resource, hear in ((PODS, self._pod), (NODES, self._node), (CLAIMS, self._claim), (VOLUMES, self._volume)):
            cluster.listen(resource, hear)

    def _pod(self, change: Change) -> None:
        if change.after is None:
            return
        metadata, node = change.after.data["metadata"], change.after.data["spec"].get("nodeName")
        if "deletionTimestamp" in metadata:
            self._later(metadata["deletionGracePeriodSeconds"] + _KUBELET_S, self._reap, metadata["name"])
        if node and node != "foreign" and self._cluster.node(node) is None:
            self._later(_ORPHAN_S, self._collect, node)

    def _node(self, change: Change) -> None:
        if change.after is None:
            self._later(self._chance.uniform(*_COLLECTED_S), self._collect, change.key)

    def _reap(self, name: str) -> None:
        """Remove a pod whose time to terminate is over."""
        pod = self._cluster.pod(name)
        due = None if pod is None else pod["metadata"].get("deletionTimestamp")
        if due is not None and dt.datetime.fromisoformat(due) <= self._cluster.now():
            self._cluster.delete_pod(name, grace_s=0)

    def _collect(self, node: str) -> None:
        """Remove the pods of a node that is gone; one that has come back keeps them."""
        if self._cluster.node(node) is None:
            for pod in self._cluster.pods():
                if pod["spec"].get("nodeName") == node:
                    self._cluster.delete_pod(pod["metadata"]["name"], grace_s=0)

    def _claim(self, change: Change) -> None:
        claim = None if change.after is None else change.after.data
        if claim is None or claim["spec"].get("volumeName"):
            return
        if (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE):
            self._later(self._chance.uniform(*_PROVISIONED_S), self._provision, claim["metadata"]["name"])

    def _provision(self, name: str) -> None:
        claim = self._cluster.claim(name)
        node = ((claim or {}).get("metadata", {}).get("annotations") or {}).get(SELECTED_NODE)
        if claim is None or node is None or claim["spec"].get("volumeName"):
            return
        if self._cluster.node(node) is None or self._chance.random() < _HAS_NO_ROOM:
            self._cluster.change(CLAIMS, name, {"metadata": {"annotations": {SELECTED_NODE: None}}})
        else:
            self._cluster.provide_volume(f"made-for-{name}", node, claim)

    def _volume(self, change: Change) -> None:
        volume = None if change.after is None else change.after.data
        if volume is None:
            return
        claim, name = volume["spec"].get("claimRef"), volume["metadata"]["name"]
        if claim is not None and claim.get("uid"):
            self._later(self._chance.uniform(*_BOUND_S), self._bind, claim["name"], name)
        elif volume["status"]["phase"] == "Pending":
            self._later(self._chance.uniform(*_BOUND_S), self._offer, name)

    def _offer(self, name: str) -> None:
        self._cluster.change(VOLUMES, name, {"status": {"phase": "Available"}}, "status")

    def _bind(self, name: str, volume: str) -> None:
        claim = self._cluster.claim(name)
        if claim is not None and not claim["spec"].get("volumeName"):
            changes = {"metadata": {"annotations": {_BIND_COMPLETED: "yes"}}, "spec": {"volumeName": volume}}
            self._cluster.change(CLAIMS, name, changes)
