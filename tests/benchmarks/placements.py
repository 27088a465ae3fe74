"""Are all placements of a run valid? The integration tests' independent checker, and the rules between pods beside it.

Works on the API server's JSON and shares no code with the scheduler. It looks at the final state, which is enough for
rules whose truth cannot return once it is broken while pods only come: capacity, host ports, taints, node affinity,
anti-affinity, and the skew of hard spread constraints (a domain's lead over the least one only shrinks while others
fill up). For required pod affinity it asks for one matching pod in the domain, the pod itself included, as upstream
does for the first of a group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.benchmarks.objects import SCHEDULER_NAME
from tests.integration.checker import violations

Object = dict[str, Any]

MOST_PROBLEMS = 20


def problems(nodes: Sequence[Object], pods: Sequence[Object], namespaces: Sequence[Object]) -> list[str]:
    """Return what is wrong with the placements of the pods that have a node, one sentence each; [] if all is well."""
    found = violations(nodes, pods, [SCHEDULER_NAME])
    by_name = {node["metadata"]["name"]: node for node in nodes}
    placed = [pod for pod in pods if pod["spec"].get("nodeName") in by_name]
    labels = {n["metadata"]["name"]: n["metadata"].get("labels", {}) for n in namespaces}
    found += _broken_affinity(by_name, placed, labels)
    found += _skews(by_name, placed)
    return found[:MOST_PROBLEMS]


def _broken_affinity(
    nodes: Mapping[str, Object], pods: Sequence[Object], namespaces: Mapping[str, Mapping[str, str]]
) -> Iterator[str]:
    """Yield broken required affinity and anti-affinity; terms that are equal are counted once."""
    groups: dict[str, tuple[Object, set[str], list[tuple[Object, bool]]]] = {}
    for pod in pods:
        for term, is_anti in _required_terms(pod):
            scope = _scope(term, pod, namespaces)
            key = repr((term, sorted(scope)))
            groups.setdefault(key, (term, scope, []))[2].append((pod, is_anti))
    for term, scope, owners in groups.values():
        counts: Counter[str] = Counter()
        matching: set[str] = set()
        for pod in pods:
            if pod["metadata"]["namespace"] in scope and _selects(term.get("labelSelector"), _labels(pod)):
                matching.add(_key(pod))
                counts[_domain(nodes, pod, term["topologyKey"])] += 1
        for pod, is_anti in owners:
            here = counts[_domain(nodes, pod, term["topologyKey"])]
            if is_anti and here > (_key(pod) in matching):
                yield f"{_key(pod)} shares its {term['topologyKey']} with a pod that it repels"
            if not is_anti and not here:
                yield f"{_key(pod)} has no pod that it needs in its {term['topologyKey']}"


def _required_terms(pod: Object) -> Iterator[tuple[Object, bool]]:
    affinity = pod["spec"].get("affinity", {})
    for kind, is_anti in (("podAffinity", False), ("podAntiAffinity", True)):
        for term in affinity.get(kind, {}).get("requiredDuringSchedulingIgnoredDuringExecution", ()):
            yield term, is_anti


def _scope(term: Object, pod: Object, namespaces: Mapping[str, Mapping[str, str]]) -> set[str]:
    named = set(term.get("namespaces", ()))
    selector = term.get("namespaceSelector")
    if selector is not None:
        named |= {name for name, labels in namespaces.items() if _selects(selector, labels)}
    return named or ({pod["metadata"]["namespace"]} if selector is None else set())


def _skews(nodes: Mapping[str, Object], pods: Sequence[Object]) -> Iterator[str]:
    groups: dict[str, tuple[Object, Object]] = {}
    for pod in pods:
        for constraint in pod["spec"].get("topologySpreadConstraints", ()):
            if constraint["whenUnsatisfiable"] == "DoNotSchedule":
                groups.setdefault(repr((pod["metadata"]["namespace"], constraint)), (pod, constraint))
    for pod, constraint in groups.values():
        key, namespace = constraint["topologyKey"], pod["metadata"]["namespace"]
        counts = {_labels(node)[key]: 0 for node in nodes.values() if key in _labels(node)}
        for other in pods:
            is_counted = other["metadata"]["namespace"] == namespace
            if is_counted and _selects(constraint.get("labelSelector"), _labels(other)):
                domain = _domain(nodes, other, key)
                if domain in counts:
                    counts[domain] += 1
        if counts and max(counts.values()) - min(counts.values()) > constraint["maxSkew"]:
            yield f"pods like {_key(pod)} are spread {counts} over {key}: more than maxSkew {constraint['maxSkew']}"


def _domain(nodes: Mapping[str, Object], pod: Object, key: str) -> str:
    node = nodes[pod["spec"]["nodeName"]]
    return str(_labels(node).get(key, f"(none) {node['metadata']['name']}"))


def _selects(selector: Object | None, labels: Mapping[str, str]) -> bool:
    """Label selector; the workloads use equality only."""
    if selector is None:
        return False
    if selector.get("matchExpressions"):
        raise NotImplementedError("the checker knows matchLabels only")
    return all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())


def _labels(obj: Object) -> Mapping[str, str]:
    labels: Mapping[str, str] = obj["metadata"].get("labels", {})
    return labels


def _key(pod: Object) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
