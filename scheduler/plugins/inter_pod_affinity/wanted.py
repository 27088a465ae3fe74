"""Wanted: which events the hints need not be asked about (``HintIndex``).

A pod waits for all of its affinity terms to select a pod that comes, or all of its anti-affinity terms one that goes.
One term of each kind suffices to find it by, and the one that selects the fewest pods is taken.

    where             what
    (NEAR, "shop")    ("app", "web")    a pod with the label comes to the namespace
    (NEAR, None)      ("app", "web")    the same in whatever namespace, where a selector chooses the namespaces
    NEAR_IN           ("team", "red")   any pod comes to a namespace with the label
    (APART, …), …                       the same of a pod that goes, to keep apart from
    REPELLED          "shop"            a pod goes that repelled pods of the namespace
    SELF              uid               the waiting pod's own labels change
    NODES             "zone", ANY       a node comes with the topology key, or with another value of it; any node comes

The labels of namespaces change while pods wait, so they are looked at when the event comes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from scheduler.api import Node, Pod
from scheduler.api.events import Offer, WantedKey
from scheduler.model.affinity import AffinityTerm
from scheduler.model.selectors import label_selector_matches
from scheduler.plugins.inter_pod_affinity.namespaces import Namespaces
from scheduler.plugins.shared.label_keys import ANY, Thing, changed_keys, commonness, demanded, offered

__all__ = ["offered_by_nodes", "offered_by_pods", "wanted_of_nodes", "wanted_of_pods"]

_NEAR, _APART = "near", "apart"
_NEAR_IN, _APART_IN = "near in", "apart in"
_REPELLED, _SELF, _NODES = "repelled", "self", "nodes"

_NO_LABELS: Mapping[str, str] = {}


def wanted_of_pods(pod: Pod) -> Iterable[WantedKey] | None:
    """Return what the pod wants of events about pods."""
    terms = pod.affinity_terms
    if terms.problem is not None:
        return None
    return [
        (_SELF, pod.metadata.uid),
        (_REPELLED, pod.metadata.namespace),
        *_selecting(_NEAR, _NEAR_IN, terms.required_affinity),
        *_selecting(_APART, _APART_IN, terms.required_anti_affinity),
    ]


def offered_by_pods(namespaces: Namespaces, old: object | None, new: object | None) -> Iterable[Offer] | None:
    """Return what a pod's coming, change of labels or going offers."""
    before, after = old if isinstance(old, Pod) else None, new if isinstance(new, Pod) else None
    if before is None and after is None:
        return None
    offers: list[Offer] = []
    if after is not None:
        offers += _of_pod(_NEAR, _NEAR_IN, after, namespaces)
    if before is not None:
        offers += _of_pod(_APART, _APART_IN, before, namespaces)
        if after is not None:
            offers.append((_SELF, (after.metadata.uid,)))
        elif before.affinity_terms.required_anti_affinity:
            names = _repelled(before)
            if names is None:
                return None
            offers.append((_REPELLED, names))
    return offers


def wanted_of_nodes(pod: Pod) -> Iterable[WantedKey] | None:
    """Return what the pod wants of events about nodes."""
    terms = pod.affinity_terms
    if terms.problem is not None:
        return None
    keys = {term.topology_key for term in (*terms.required_affinity, *terms.required_anti_affinity)}
    if terms.required_anti_affinity:
        keys.add(ANY)
    return [(_NODES, key) for key in keys]


def offered_by_nodes(old: object | None, new: object | None) -> Iterable[Offer] | None:
    """Return what a node's coming or its change of labels offers."""
    if not isinstance(new, Node):
        return None
    labels = new.metadata.labels
    return [(_NODES, changed_keys(old.metadata.labels, labels) if isinstance(old, Node) else (*labels, ANY))]


def _selecting(near: str, near_in: str, terms: Sequence[AffinityTerm]) -> Iterator[WantedKey]:
    """Yield what a pod that all of the terms select offers; nothing if there can be no such pod."""
    demands = [demanded(term.selector) for term in terms]
    if not demands or not all(demands):
        return
    best = min(range(len(demands)), key=lambda i: commonness(demands[i]))
    term, things = terms[best], demands[best]
    for name in term.namespaces:
        yield from (((near, name), thing) for thing in things)
    selector = term.namespace_selector
    if selector is None:
        return
    if ANY in things and not label_selector_matches(selector, _NO_LABELS):
        yield from ((near_in, thing) for thing in demanded(selector))
    else:
        yield from (((near, None), thing) for thing in things)


def _of_pod(near: str, near_in: str, pod: Pod, namespaces: Namespaces) -> Sequence[Offer]:
    if not (pod.spec.node_name or pod.status.nominated_node_name):
        return ()
    namespace = pod.metadata.namespace
    things: list[Thing] = offered(pod.metadata.labels)
    return ((near, namespace), things), ((near, None), things), (near_in, _of_namespace(namespaces, namespace))


def _of_namespace(namespaces: Namespaces, name: str) -> Iterator[Thing]:
    """Yield what a namespace's labels offer; a generator, as hardly ever anybody wants it."""
    yield from offered(namespaces.labels(name))


def _repelled(pod: Pod) -> Iterable[str] | None:
    """Return the namespaces whose pods alone are repelled by a pod with anti-affinity; None: there may be others."""
    terms = pod.affinity_terms.required_anti_affinity
    return min((term.namespaces for term in terms if term.namespace_selector is None), key=len, default=None)
