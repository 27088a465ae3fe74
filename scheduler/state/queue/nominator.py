"""Nominator: which pods are to run on which node once others have left it.

It exists beside ``status.nominatedNodeName`` because the scheduler knows of a nomination before the API server does. A
cycle counts the nominated pods of equal or higher priority as if they ran on their node.

Invariants: a pod (by UID) is nominated to at most one node; ``_pods`` has no empty entries.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from scheduler.model.pod import Pod

__all__ = ["Nominator", "PodLookup"]

PodLookup = Callable[[str], Pod | None]
"""``get(namespace/name)``: the newest version of a watched pod, None if it is gone."""


class Nominator:
    """Nominated pods by node."""

    __slots__ = ("_get_pod", "_node_of", "_pods")

    def __init__(self, get_pod: PodLookup | None) -> None:
        """Make an empty nominator; with ``get_pod``, pods that are gone or bound are not nominated."""
        self._get_pod = get_pod
        self._node_of: dict[str, str] = {}
        self._pods: dict[str, dict[str, Pod]] = {}

    def __len__(self) -> int:
        return len(self._node_of)

    @property
    def nodes(self) -> Collection[str]:
        """Return the names of the nodes that pods are nominated to."""
        return self._pods.keys()

    def node_of(self, uid: str) -> str | None:
        """Return the node that the pod is nominated to, or None."""
        return self._node_of.get(uid)

    def pods_for(self, node_name: str) -> Collection[Pod]:
        """Return the pods nominated to the node, as they were when they were nominated."""
        pods = self._pods.get(node_name)
        return pods.values() if pods else ()

    def add(self, pod: Pod, node_name: str | None) -> None:
        """Nominate ``pod`` to ``node_name``, or with None to what its status says; "" and nothing end a nomination."""
        self.remove(pod)
        node = pod.status.nominated_node_name if node_name is None else node_name
        # differs: upstream keeps an entry for the node "", which nothing can see.
        if node and self._is_waiting(pod):
            uid = pod.metadata.uid
            self._node_of[uid] = node
            self._pods.setdefault(node, {})[uid] = pod

    def update(self, old: Pod, new: Pod) -> None:
        """Take a new version of a pod.

        Source: ``UpdateNominatedPod``. If neither version names a node but memory does, the API server has not heard of
        the nomination yet, and memory wins; else the new version does.
        """
        kept = None
        if not old.status.nominated_node_name and not new.status.nominated_node_name:
            kept = self._node_of.get(old.metadata.uid)
        self.remove(old)
        self.add(new, kept)

    def remove(self, pod: Pod) -> None:
        """End the pod's nomination, if it has one."""
        uid = pod.metadata.uid
        node = self._node_of.pop(uid, None)
        if node is None:
            return
        pods = self._pods[node]
        del pods[uid]
        if not pods:
            del self._pods[node]

    def _is_waiting(self, pod: Pod) -> bool:
        if self._get_pod is None:
            return True
        newest = self._get_pod(pod.pod_key)
        # differs: upstream looks by name only and would nominate a pod that was replaced by another of its name.
        return newest is not None and not newest.spec.node_name and newest.metadata.uid == pod.metadata.uid
