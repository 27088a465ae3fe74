"""NodeInfo: a node, the pods on it, and the sums that filters and scores read (spec §3.3).

The sums are kept, not computed: adding or removing a pod touches only what that pod names. What a pod adds is what its
stored value subtracts when it leaves, so a changed pod is taken out as the old value and put in as the new one.

Invariants: every sum equals the sum over ``pods``; resource names, ports and claims whose sum is zero have no entry;
every change takes a new ``generation``, except that a newer version of a pod that takes the same place may be put in
for the earlier one. A *placeholder* has pods but no node: a pod was seen before its node, or the node went before its
pods. Placeholders take part in no snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from scheduler.model.meta import NodeName
from scheduler.model.node import Node
from scheduler.model.pod import Pod
from scheduler.model.ports import HostPort
from scheduler.model.requests import Resources
from scheduler.state.cache.errors import CacheError
from scheduler.state.cache.generation import next_generation
from scheduler.state.cache.images import ImageStates, ImageSummary

__all__ = ["NO_PODS_PRIORITY", "NodeInfo"]

NO_PODS_PRIORITY = 2**31
"""Stands for the priority of pods where there are none; higher than any."""

K = TypeVar("K")


class NodeInfo:
    """One node with its pods; implements ``scheduler.api.NodeView``.

    The cache owns the original. Whoever wants to try something out works on a ``clone()``.

    Attributes:
        name: the node's name.
        allocatable: what the node offers (CPU in milli-cores, else whole units); empty for a placeholder.
        requested: sum of the pods' requests, in-place resize considered.
        non_zero_requested: cpu and memory requested, with defaults for containers that state none.
        used_ports: host port -> number of pods that use it.
        pvc_ref_counts: ``namespace/claim`` -> number of volumes on the node that name it.
        priorities: pod priority -> number of pods that have it.
        generation: grows with every change.
    """

    __slots__ = (
        "_affinity",
        "_anti_affinity",
        "_image_states",
        "_images",
        "_node",
        "_pods",
        "allocatable",
        "generation",
        "name",
        "non_zero_requested",
        "priorities",
        "pvc_ref_counts",
        "requested",
        "used_ports",
    )

    def __init__(self, name: str, image_states: ImageStates | None = None) -> None:
        self.name = NodeName(name)
        self.allocatable: Resources = {}
        self.requested: Resources = {}
        self.non_zero_requested: Resources = {}
        self.used_ports: dict[HostPort, int] = {}
        self.pvc_ref_counts: dict[str, int] = {}
        self.priorities: dict[int, int] = {}
        self.generation = next_generation()
        self._node: Node | None = None
        self._pods: dict[str, Pod] = {}
        self._affinity: dict[str, Pod] = {}
        self._anti_affinity: dict[str, Pod] = {}
        self._image_states = image_states
        self._images: dict[str, ImageSummary] | None = None

    def __repr__(self) -> str:
        kind = "NodeInfo" if self._node is not None else "NodeInfo(placeholder)"
        return f"<{kind} {self.name} pods={len(self._pods)} requested={self.requested}>"

    @property
    def has_node(self) -> bool:
        """Say whether the node exists; False for a placeholder."""
        return self._node is not None

    @property
    def node(self) -> Node:
        """Return the node object.

        Raises:
            CacheError: this is a placeholder.
        """
        if self._node is None:
            raise CacheError(f"node {self.name} is not in the cluster, only pods that name it are")
        return self._node

    @property
    def labels(self) -> Mapping[str, str]:
        """Return the node's labels."""
        return self.node.metadata.labels

    @property
    def pods(self) -> list[Pod]:
        """Return the pods on the node, assumed ones included, in no particular order."""
        return list(self._pods.values())

    @property
    def pods_with_affinity(self) -> list[Pod]:
        """Return the pods that have pod affinity or anti-affinity of any kind."""
        return list(self._affinity.values())

    @property
    def pods_with_required_anti_affinity(self) -> list[Pod]:
        """Return the pods that repel others."""
        return list(self._anti_affinity.values())

    @property
    def num_pods(self) -> int:
        """Return the number of pods on the node."""
        return len(self._pods)

    @property
    def lowest_priority(self) -> int:
        """Return the lowest priority of the pods on the node; ``NO_PODS_PRIORITY`` if there are none."""
        priorities = self.priorities
        return next(iter(priorities)) if len(priorities) == 1 else min(priorities, default=NO_PODS_PRIORITY)

    @property
    def num_pods_with_affinity(self) -> int:
        """Return ``len(pods_with_affinity)`` without making the list."""
        return len(self._affinity)

    @property
    def num_pods_with_required_anti_affinity(self) -> int:
        """Return ``len(pods_with_required_anti_affinity)`` without making the list."""
        return len(self._anti_affinity)

    @property
    def images(self) -> Mapping[str, ImageSummary]:
        """Return the images on the node by every name they have; made at the first use after a change of the node."""
        if self._images is None:
            self._images = self._read_images()
        return self._images

    def pod(self, uid: str) -> Pod | None:
        """Return the pod with this UID if it is on the node."""
        return self._pods.get(uid)

    def set_node(self, node: Node) -> None:
        """Take over a new or changed node object."""
        self._node = node
        self.allocatable = node.allocatable
        self._images = None
        self.generation = next_generation()

    def remove_node(self) -> None:
        """Make this a placeholder; pods and sums stay."""
        self._node = None
        self.allocatable = {}
        self._images = None
        self.generation = next_generation()

    def add_pod(self, pod: Pod) -> None:
        """Count ``pod`` in.

        Raises:
            CacheError: a pod with this UID is already on the node.
        """
        uid = pod.metadata.uid
        if uid in self._pods:
            raise CacheError(f"pod {pod.key} ({uid}) is already on node {self.name}")
        # Derived facts first: should one of them fail, nothing has been counted.
        requests, non_zero, ports = pod.accounted_requests, pod.accounted_non_zero_requests, pod.host_ports
        self._pods[uid] = pod
        if pod.has_affinity:
            self._affinity[uid] = pod
            if pod.has_required_anti_affinity:
                self._anti_affinity[uid] = pod
        _add(self.requested, requests)
        _add(self.non_zero_requested, non_zero)
        for port in ports:
            self.used_ports[port] = self.used_ports.get(port, 0) + 1
        if pod.attachable_volumes:
            for claim in _claims(pod):
                self.pvc_ref_counts[claim] = self.pvc_ref_counts.get(claim, 0) + 1
        priority = pod.priority
        self.priorities[priority] = self.priorities.get(priority, 0) + 1
        self.generation = next_generation()

    def remove_pod(self, pod: Pod) -> None:
        """Count the pod with the UID of ``pod`` out, with the amounts with which it was counted in.

        Raises:
            CacheError: no pod with this UID is on the node.
        """
        uid = pod.metadata.uid
        known = self._pods.pop(uid, None)
        if known is None:
            raise CacheError(f"pod {pod.key} ({uid}) is not on node {self.name}")
        self._affinity.pop(uid, None)
        self._anti_affinity.pop(uid, None)
        _subtract(self.requested, known.accounted_requests)
        _subtract(self.non_zero_requested, known.accounted_non_zero_requests)
        for port in known.host_ports:
            _release(self.used_ports, port)
        for claim in _claims(known):
            _release(self.pvc_ref_counts, claim)
        _release(self.priorities, known.priority)
        self.generation = next_generation()

    def swap_pod(self, pod: Pod) -> None:
        """Put ``pod`` in the place of its earlier version, which took the same place (``Pod.takes_the_same_place_as``).

        Raises:
            CacheError: no pod with this UID is on the node.
        """
        uid = pod.metadata.uid
        if uid not in self._pods:
            raise CacheError(f"pod {pod.key} ({uid}) is not on node {self.name}")
        self._pods[uid] = pod
        if uid in self._affinity:
            self._affinity[uid] = pod
        if uid in self._anti_affinity:
            self._anti_affinity[uid] = pod

    def clone(self) -> NodeInfo:
        """Return a copy that can be changed freely, for dry runs; it has the generation of the original."""
        copy: NodeInfo = NodeInfo.__new__(NodeInfo)
        copy.name = self.name
        copy.allocatable = self.allocatable
        copy.requested = self.requested.copy()
        copy.non_zero_requested = self.non_zero_requested.copy()
        copy.used_ports = self.used_ports.copy()
        copy.pvc_ref_counts = self.pvc_ref_counts.copy()
        copy.priorities = self.priorities.copy()
        copy.generation = self.generation
        copy._node = self._node
        copy._pods = self._pods.copy()
        copy._affinity = self._affinity.copy()
        copy._anti_affinity = self._anti_affinity.copy()
        copy._image_states = self._image_states
        copy._images = self._images
        return copy

    def _read_images(self) -> dict[str, ImageSummary]:
        if self._node is None:
            return {}
        if self._image_states is not None:
            return self._image_states.of_node(self._node)
        alone = ImageStates()  # a node outside a cache is a cluster of one
        alone.replace(self.name, None, self._node)
        return alone.of_node(self._node)


def _add(total: Resources, amounts: Resources) -> None:
    for name, amount in amounts.items():
        if amount:
            total[name] = total.get(name, 0) + amount


def _subtract(total: Resources, amounts: Resources) -> None:
    for name, amount in amounts.items():
        left = total.get(name, 0) - amount
        if left:
            total[name] = left
        else:
            total.pop(name, None)


def _release(counts: dict[K, int], key: K) -> None:
    left = counts[key] - 1
    if left:
        counts[key] = left
    else:
        del counts[key]


def _claims(pod: Pod) -> Iterator[str]:
    # parity: claims of generic ephemeral volumes are not counted.
    for volume in pod.attachable_volumes:
        source = volume.persistent_volume_claim
        if source is not None:
            yield f"{pod.metadata.namespace}/{source.claim_name}"
