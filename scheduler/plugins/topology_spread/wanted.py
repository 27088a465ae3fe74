"""Wanted: which events the hints need not be asked about (``HintIndex``).

A pod waits for pods that one of its selectors may match, in its namespace, and for nodes with its topology keys.

    where            what
    namespace        ("app", "web")   a pod with the label comes, goes or changes: a selector may match it
    uid              ANY              the waiting pod itself changes
    NODES            "zone"           a node with the topology key comes, goes or changes what counts of it
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from scheduler.api import Node, Pod, Taint
from scheduler.api.events import HintIndex, Offer, WantedKey
from scheduler.plugins.shared.label_keys import ANY, changed_keys, demanded, offered
from scheduler.plugins.topology_spread.constraints import ConstraintError, Constraints

__all__ = ["index_of_nodes", "index_of_pods"]

_NODES = "nodes"


def index_of_pods(constraints_of: Callable[[Pod], Constraints]) -> HintIndex:
    """Return the index for events about pods; ``constraints_of`` gives hard constraints or raises ConstraintError."""

    def wanted(pod: Pod) -> Iterable[WantedKey] | None:
        constraints, namespace = _own(pod, constraints_of), pod.metadata.namespace
        if constraints is None:
            return None
        things = {thing for constraint in constraints for thing in demanded(constraint.selector)}
        return [(pod.metadata.uid, ANY), *((namespace, thing) for thing in things)]

    return HintIndex(wanted, _offered_by_pods)


def index_of_nodes(constraints_of: Callable[[Pod], Constraints]) -> HintIndex:
    """Return the index for events about nodes."""

    def wanted(pod: Pod) -> Iterable[WantedKey] | None:
        constraints = _own(pod, constraints_of)
        return None if constraints is None else [(_NODES, key) for key in constraints.keys]

    return HintIndex(wanted, _offered_by_nodes)


def _own(pod: Pod, constraints_of: Callable[[Pod], Constraints]) -> Constraints | None:
    """Return the constraints that stay the same while the pod waits; those of the profile follow services."""
    if not pod.spec.topology_spread_constraints:
        return None
    try:
        return constraints_of(pod) or None
    except ConstraintError:
        return None


def _offered_by_pods(old: object | None, new: object | None) -> Iterable[Offer] | None:
    pods = [pod for pod in (old, new) if isinstance(pod, Pod)]
    if not pods:
        return None
    offers: list[Offer] = []
    for pod in pods:
        offers.append((pod.metadata.uid, (ANY,)))
        if pod.spec.node_name or pod.status.nominated_node_name:
            offers.append((pod.metadata.namespace, offered(pod.metadata.labels)))
    return offers


def _offered_by_nodes(old: object | None, new: object | None) -> Iterable[Offer] | None:
    before, after = _labels(old), _labels(new)
    if before is None or after is None:
        labels = after if before is None else before
        return None if labels is None else [(_NODES, labels)]
    changed = changed_keys(before, after)
    return [(_NODES, changed if _taints(old) == _taints(new) else changed.union(after))]


def _labels(node: object) -> Mapping[str, str] | None:
    return node.metadata.labels if isinstance(node, Node) else None


def _taints(node: object) -> Sequence[Taint]:
    return node.spec.taints if isinstance(node, Node) else ()
