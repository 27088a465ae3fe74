"""Cache: nodes and the pods that take room on them, as far as this scheduler believes.

The cache holds pods that have a node: those that the API server says are bound, and those that this scheduler has
decided and is still binding. Pending pods are the queue's. Pods are known by UID, so a pod that was deleted and made
anew under its old name is another pod. What a UID can go through:

```
              assume                       add (API server's version; its node wins)
   Initial ───────────▶ Assumed ────────────────────────────────────▶ Added ◀──┐
    │  ▲  ▲              │ │ ▲                                         │ │      │ update
    │  │  │    forget    │ │ └─ finish_binding: still Assumed; with    │ └──────┘
    │  │  └──────────────┘ │    a ttl it may expire from here on       │
    │  │       expire      │                                           │
    │  └───────────────────┤ remove                                    │ remove
    │                      ▼                                           ▼
    │                    Deleted  ◀────────────────────────────────  Deleted
    └─ add ─▶ Added
```

Every other transition raises ``CacheError`` and changes nothing: assuming a pod that is here, adding or forgetting one
that is Added, updating one that is Assumed, updating or removing one that is unknown. (Forgetting an unknown pod is
no error: the deletion may have come first.)

Pods and nodes come by different watches, in any order. A pod whose node is unknown waits on a *placeholder*, and a node
that goes leaves a placeholder behind while pods name it. Placeholders appear in no snapshot.

Single-threaded: the scheduling thread alone touches the cache, and events are applied between cycles, never in one.

Invariants: ``_nodes`` is ordered by generation, oldest first, which makes "what changed since" a walk over the changed
nodes only; every pod in ``_pods`` is on exactly the node that its value names; assumed UIDs are a subset of ``_pods``.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from scheduler.model.meta import NodeName
from scheduler.model.node import Node
from scheduler.model.pod import Pod
from scheduler.state.cache.assume import AssumedPods
from scheduler.state.cache.errors import CacheError
from scheduler.state.cache.node_info import NodeInfo
from scheduler.state.cache.node_tree import NodeTree
from scheduler.state.cache.shared import Shared
from scheduler.state.cache.snapshot import Snapshot
from scheduler.telemetry.logging import get_logger

__all__ = ["Cache", "CacheDump"]

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class CacheDump:
    """What the cache holds, for the comparer and for people; the values are live, not copies.

    Attributes:
        nodes: every node by name, placeholders included.
        assumed: UIDs of the assumed pods.
    """

    nodes: Mapping[NodeName, NodeInfo]
    assumed: frozenset[str]


class Cache:
    """Nodes, pods on them, and snapshots of both."""

    def __init__(self, *, ttl_s: float | None = None) -> None:
        """Make an empty cache.

        Args:
            ttl_s: how long an assumed pod is kept after its binding is done without news of it; None: for ever.
        """
        self._nodes: OrderedDict[NodeName, NodeInfo] = OrderedDict()
        self._tree = NodeTree()
        self._shared = Shared()
        self._images, self._matching, self._terms = self._shared.images, self._shared.matching, self._shared.terms
        self._pods: dict[str, Pod] = {}
        self._assumed = AssumedPods(ttl_s)

    @property
    def num_nodes(self) -> int:
        """Return the number of nodes, placeholders included (parity: ``cache_size{type="nodes"}``)."""
        return len(self._nodes)

    @property
    def num_pods(self) -> int:
        """Return the number of pods, assumed ones and those on placeholders included."""
        return len(self._pods)

    @property
    def num_assumed(self) -> int:
        """Return the number of assumed pods."""
        return len(self._assumed)

    @property
    def unconfirmed_since_s(self) -> float | None:
        """Return when the first pod was bound that the watch has not shown on its node yet; None if there is none."""
        return self._assumed.unconfirmed_since_s

    def excuse_unconfirmed(self, until_s: float) -> list[Pod]:
        """Wait no longer for the watch to show pods that were bound until then; return them. They keep their places."""
        return [self._pods[uid] for uid in self._assumed.excuse(until_s)]

    # --- nodes ---

    def add_node(self, node: Node) -> NodeInfo:
        """Take in a node; pods that waited for it are on it at once. A known node is updated.

        Returns:
            the live record, for looking at.
        """
        return self.update_node(node)

    def update_node(self, node: Node) -> NodeInfo:
        """Take in a new version of a node. An unknown node is added.

        Returns:
            the live record, for looking at.
        """
        info = self._info(NodeName(node.metadata.name))
        self._images.replace(info.name, info.node if info.has_node else None, node)
        self._tree.put(info.name, node.zone_key)
        if info.num_pods_with_affinity:
            old = info.labels if info.has_node else None
            self._terms.relabel(info.pods_with_affinity, old, node.metadata.labels)
        info.set_node(node)
        self._nodes.move_to_end(info.name)
        return info

    def remove_node(self, name: str) -> None:
        """Take a node out; pods on it stay on a placeholder until their own deletions come.

        Raises:
            CacheError: no such node.
        """
        info = self._nodes.get(NodeName(name))
        if info is None or not info.has_node:
            raise CacheError(f"node {name} is not found")
        self._tree.remove(info.name)
        self._images.replace(info.name, info.node, None)
        self._terms.relabel(info.pods_with_affinity, info.labels, None)
        info.remove_node()
        self._nodes.move_to_end(info.name)
        self._drop_if_empty(info)

    def get_node(self, name: str) -> NodeInfo | None:
        """Return the live record of a node, or None if there is no such node (a placeholder is none)."""
        info = self._nodes.get(NodeName(name))
        return info if info is not None and info.has_node else None

    # --- pods ---

    def assume_pod(self, pod: Pod) -> None:
        """Let a decided pod take its place before the API server knows of it; ``spec.nodeName`` is the decision.

        Raises:
            CacheError: the pod is already here.
        """
        uid = _key(pod)
        if uid in self._pods:
            raise CacheError(f"pod {uid}({pod.key}) is in the cache, so can't be assumed")
        self._place(uid, pod)
        self._assumed.add(uid)

    def finish_binding(self, pod: Pod, now_s: float = 0.0) -> None:
        """Note that the pod is bound; starts its time-to-live, if the cache has one.

        Pods that are no longer assumed are fine: the watch is often faster than the answer.
        """
        self._assumed.finish(_key(pod), now_s)

    def forget_pod(self, pod: Pod) -> bool:
        """Take a decision back.

        Returns:
            whether the pod was here.

        Raises:
            CacheError: the pod is not assumed (any more), or is assumed on another node.
        """
        uid = _key(pod)
        known = self._pods.get(uid)
        if known is None:
            return False
        if known.node_name != pod.node_name:
            raise CacheError(f"pod {uid}({pod.key}) was assumed on {pod.node_name} but assigned to {known.node_name}")
        if uid not in self._assumed:
            raise CacheError(f"pod {uid}({pod.key}) wasn't assumed so cannot be forgotten")
        self._take_out(uid, known)
        return True

    def expire(self, now_s: float) -> list[Pod]:
        """Drop assumed pods whose time-to-live is over; return them. Does nothing without a time-to-live."""
        expired = [self._pods[uid] for uid in self._assumed.expired(now_s)]
        for pod in expired:
            self._take_out(pod.metadata.uid, pod)
        return expired

    def add_pod(self, pod: Pod) -> None:
        """Take in an assigned pod as the API server has it; confirms an assumed one.

        Raises:
            CacheError: the pod is already here and not assumed.
        """
        uid = _key(pod)
        known = self._pods.get(uid)
        if known is None:
            self._place(uid, pod)
            return
        if uid not in self._assumed:
            raise CacheError(f"pod {uid}({pod.key}) was already in added state")
        if known.node_name != pod.node_name:
            log.info(
                "pod was added to another node than assumed",
                pod=pod.key,
                uid=uid,
                assumed_node=known.node_name,
                node=pod.node_name,
            )
        self._replace(uid, known, pod)

    def update_pod(self, old: Pod, new: Pod) -> None:
        """Take in a new version of an added pod.

        Raises:
            CacheError: the pod is unknown or still only assumed, or the two are different pods.
        """
        uid = _key(new)
        known = self._pods.get(uid)
        if old.metadata.uid != uid:
            raise CacheError(f"pod {new.key} has uid {uid}, it is not the pod {old.metadata.uid} to be updated")
        if known is None:
            raise CacheError(f"pod {uid}({new.key}) is not added to scheduler cache, so cannot be updated")
        if uid in self._assumed:
            raise CacheError(f"assumed pod {uid}({new.key}) should not be updated")
        if known.node_name != new.node_name:
            # differs: upstream exits here; the API server is right about its own object, so the pod is moved.
            log.error("pod changed its node", pod=new.key, uid=uid, old_node=known.node_name, node=new.node_name)
        self._replace(uid, known, new)

    def remove_pod(self, pod: Pod) -> None:
        """Take out a pod that is gone, from wherever it is here.

        Raises:
            CacheError: the pod is unknown.
        """
        uid = _key(pod)
        known = self._pods.get(uid)
        if known is None:
            raise CacheError(f"pod {uid}({pod.key}) is not found in scheduler cache, so cannot be removed from it")
        if pod.node_name and known.node_name != pod.node_name:
            # differs: upstream exits here. A deletion without a node comes from a missed watch event and is fine.
            log.error(
                "pod was deleted from another node than cached",
                pod=pod.key,
                uid=uid,
                cached_node=known.node_name,
                node=pod.node_name,
            )
        self._take_out(uid, known)

    def is_assumed(self, uid: str) -> bool:
        """Say whether the pod is assumed."""
        return uid in self._assumed

    def get_pod(self, uid: str) -> Pod | None:
        """Return the pod as the cache has it, also if its node is gone."""
        return self._pods.get(uid)

    # --- reading ---

    def update_snapshot(self, snapshot: Snapshot) -> None:
        """Bring ``snapshot`` up to date; costs as much as there are changed nodes, and a listing if nodes came or went.

        Raises:
            CacheError: the snapshot contradicts the cache (a bug). It will be rebuilt by the next call.
        """
        # Newest first, up to what the snapshot has seen.
        changed: list[NodeInfo] = []
        for info in reversed(self._nodes.values()):
            if info.generation <= snapshot.generation:
                break
            changed.append(info)
        if snapshot.order_version != self._tree.version:
            names = self._tree.names()
            infos = [self._nodes[name] for name in names]
            snapshot.reorder(self._tree.version, names, infos, self._shared)
        if changed:
            snapshot.rewrite(changed)
        if len(snapshot) != len(self._tree):
            have, want = len(snapshot), len(self._tree)
            snapshot.clear()
            raise CacheError(f"snapshot has {have} nodes and the cache {want}: it will be rebuilt")

    def dump(self) -> CacheDump:
        """Return everything in the cache; live values."""
        return CacheDump(self._nodes, self._assumed.uids())

    # --- inside ---

    def _info(self, name: NodeName) -> NodeInfo:
        info = self._nodes.get(name)
        if info is None:
            info = self._nodes[name] = NodeInfo(name, self._images)
            self._matching.open_node(name)
        return info

    def _place(self, uid: str, pod: Pod) -> None:
        if not pod.node_name:
            raise CacheError(f"pod {uid}({pod.key}) has no node, so it takes no room in the cache")
        info = self._info(NodeName(pod.node_name))
        info.add_pod(pod)
        self._matching.add(pod)
        if pod.has_affinity and info.has_node:
            self._terms.add(pod, info.labels)
        self._nodes.move_to_end(info.name)
        self._pods[uid] = pod

    def _take_out(self, uid: str, known: Pod) -> None:
        info = self._nodes[NodeName(known.node_name)]
        info.remove_pod(known)
        self._matching.remove(known)
        if known.has_affinity and info.has_node:
            self._terms.remove(known, info.labels)
        self._nodes.move_to_end(info.name)
        self._drop_if_empty(info)
        del self._pods[uid]
        self._assumed.discard(uid)

    def _replace(self, uid: str, known: Pod, pod: Pod) -> None:
        if not pod.node_name:
            raise CacheError(f"pod {uid}({pod.key}) lost its node {known.node_name}")
        if known.node_name != pod.node_name:
            self._take_out(uid, known)
            self._place(uid, pod)
            return
        info = self._nodes[NodeName(pod.node_name)]
        self._pods[uid] = pod
        self._assumed.discard(uid)
        if known.takes_the_same_place_as(pod):
            # So it is each time the API server confirms a decision: no row and no verdict has to be made anew.
            info.swap_pod(pod)
            return
        # Most new versions are about status: they look the same to the indexes, which then have nothing to do.
        info.remove_pod(known)
        info.add_pod(pod)
        self._matching.replace(known, pod)
        if info.has_node:
            self._terms.replace(known, pod, info.labels)
        self._nodes.move_to_end(info.name)

    def _drop_if_empty(self, info: NodeInfo) -> None:
        if not info.has_node and info.num_pods == 0:
            del self._nodes[info.name]
            self._matching.close_node(info.name)


def _key(pod: Pod) -> str:
    uid = pod.metadata.uid
    if not uid:
        raise CacheError(f"pod {pod.key} has no uid, so the cache cannot keep it apart from others")
    return uid
