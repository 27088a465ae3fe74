"""NodeCheck: is the chosen node still a place for the pod when its bind is about to be sent?

Between decision and bind there may be a wait in Permit, a volume to provision, an outage. The API server does not look
at the node: it binds a pod to any name. So whatever became known meanwhile is looked at once more: the node is gone,
was cordoned or tainted, or has no longer the room. A node that did not change is not judged again, and of one that did
only what is new: what the profile allowed when it decided stays allowed.

differs: upstream sends the bind; the pod is refused by the kubelet, or runs where it should not.
"""

from __future__ import annotations

from scheduler.api import Pod
from scheduler.model.node import Node
from scheduler.model.taints import NO_EXECUTE, NO_SCHEDULE, find_untolerated
from scheduler.plugins.node_unschedulable import tolerates_cordon
from scheduler.state.cache.cache import Cache
from scheduler.state.cache.node_info import NodeInfo

__all__ = ["NodeCheck"]

_HARD = frozenset({NO_SCHEDULE, NO_EXECUTE})


class NodeCheck:
    """Remembers the nodes that decisions under way rest on.

    Args:
        cache: what is known now.
    """

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._chosen: dict[str, Node] = {}

    def __len__(self) -> int:
        return len(self._chosen)

    def decided(self, pod: Pod, node_name: str) -> None:
        """Remember the node as it is at the decision."""
        info = self._cache.get_node(node_name)
        if info is not None:
            self._chosen[pod.uid] = info.node

    def ended(self, pod: Pod) -> None:
        """Forget the decision about a pod."""
        self._chosen.pop(pod.uid, None)

    def objection(self, pod: Pod, node_name: str) -> str | None:
        """Return why the pod must not be bound to the node any more, or None."""
        info = self._cache.get_node(node_name)
        if info is None:
            return self._said(node_name, "was deleted")
        chosen = self._chosen.get(pod.uid)
        if chosen is None or chosen is info.node:
            return None
        if chosen.uid != info.node.uid:
            return self._said(node_name, "was replaced")
        if info.node.spec.unschedulable and not chosen.spec.unschedulable and not tolerates_cordon(pod):
            return self._said(node_name, "was cordoned")
        added = [taint for taint in info.node.spec.taints if taint not in chosen.spec.taints]
        if (taint := find_untolerated(added, pod.spec.tolerations, _HARD)) is not None:
            return self._said(node_name, f"got the taint {taint.key}")
        if (resource := _lacking(pod, info, chosen)) is not None:
            return self._said(node_name, f"shrank and lacks {resource}")
        return None

    @staticmethod
    def _said(node_name: str, what: str) -> str:
        return f"node {node_name} {what} in the meantime, so the binding was not sent"


def _lacking(pod: Pod, info: NodeInfo, chosen: Node) -> str | None:
    """Return a resource that the pod asks for and the node has less of than before, and too little; "pods" counts."""
    now, before = info.allocatable, chosen.allocatable
    taken = {**info.requested, "pods": info.num_pods}
    for resource in ("pods", *(name for name, amount in pod.requests.items() if amount > 0)):
        room = now.get(resource, 0)
        if room < before.get(resource, 0) and taken.get(resource, 0) > room:
            return resource
    return None
