"""An independent judge of placements: reads the API server's JSON and does its own arithmetic.

It shares no code with the scheduler on purpose; an error that both make would have to be made twice. It knows the hard
rules only: capacity (with the number of pods), taints, cordons, node selectors and required node affinity, host ports,
and pods that name their node. Scores are not judged.

Quantities are exact fractions; sums of requests follow KEP-753 (sidecars) and KEP-2837 (pod-level requests).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

Json = Mapping[str, Any]
Amounts = dict[str, Fraction]

_QUANTITY = re.compile(r"^([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E))?$")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_POD_LEVEL = ("cpu", "memory")


def quantity(text: str | float) -> Fraction:
    """Return the exact value of a quantity.

    Raises:
        ValueError: it is none.

    """
    found = _QUANTITY.match(str(text))
    if found is None:
        raise ValueError(f"not a quantity: {text!r}")
    number, exponent, suffix = found.groups()
    value = Fraction(number)
    if exponent:
        return value * Fraction(10) ** int(exponent[1:])
    if suffix in _BINARY:
        return value * 2 ** _BINARY[suffix]
    return value * Fraction(10) ** _DECIMAL[suffix] if suffix else value


# --- judging a whole cluster -----------------------------------------------------------------------------------------


def violations(nodes: Sequence[Json], pods: Sequence[Json], ours: Iterable[str]) -> list[str]:
    """Return every rule that the present placements break.

    Args:
        nodes: all nodes.
        pods: all pods; finished ones hold nothing.
        ours: schedulerNames that are answerable: pods of others take room but are not judged.
    """
    by_name = {node["metadata"]["name"]: node for node in nodes}
    responsible = set(ours)
    found: list[str] = []
    on_node: dict[str, list[Json]] = defaultdict(list)
    for pod in filter(is_live, pods):
        if name := pod["spec"].get("nodeName"):
            on_node[name].append(pod)
    for name, here in on_node.items():
        judged = [pod for pod in here if pod["spec"]["schedulerName"] in responsible]
        if not judged:
            continue
        if name not in by_name:
            found.append(f"{_names(judged)} are on {name}, which does not exist")
            continue
        found += (f"{_name(pod)} on {name}: {why}" for pod in judged for why in static_reasons(by_name[name], pod))
        found += (f"{name}: {why}" for why in crowding(by_name[name], here))
    return found


def nodes_that_fit(pod: Json, nodes: Sequence[Json], pods: Sequence[Json]) -> list[str]:
    """Return the nodes on which this unbound pod could run now, beside the pods that are bound."""
    fitting = []
    for node in nodes:
        name = node["metadata"]["name"]
        here = [other for other in pods if is_live(other) and other["spec"].get("nodeName") == name]
        if not static_reasons(node, pod) and not _lack(node, pod, here):
            fitting.append(name)
    return fitting


# --- one pod, one node -----------------------------------------------------------------------------------------------


def static_reasons(node: Json, pod: Json) -> list[str]:
    """Return why the node is wrong for the pod whoever else is there."""
    spec, reasons = pod["spec"], []
    if node["spec"].get("unschedulable") and not _tolerated(
        {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}, spec
    ):
        reasons.append("cordoned")
    for taint in node["spec"].get("taints", ()):
        if taint["effect"] in ("NoSchedule", "NoExecute") and not _tolerated(taint, spec):
            reasons.append(f"taint {taint['key']} not tolerated")
    labels = node["metadata"].get("labels", {})
    wanted = spec.get("nodeSelector", {})
    if any(labels.get(key) != value for key, value in wanted.items()):
        reasons.append("nodeSelector does not match")
    if not _affinity_matches(node, spec):
        reasons.append("required node affinity does not match")
    return reasons


def _tolerated(taint: Json, spec: Json) -> bool:
    return any(_tolerates(toleration, taint) for toleration in spec.get("tolerations", ()))


def _tolerates(toleration: Json, taint: Json) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Exists":
        return True
    # An empty key with Equal matches nothing but an empty key, which no taint has.
    return bool(toleration.get("key")) and toleration.get("value", "") == taint.get("value", "")


def _affinity_matches(node: Json, spec: Json) -> bool:
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    return any(_term_matches(term, node) for term in required["nodeSelectorTerms"])


def _term_matches(term: Json, node: Json) -> bool:
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    labels = node["metadata"].get("labels", {})
    by_field = {"metadata.name": node["metadata"]["name"]}
    return all(_holds(e, labels) for e in expressions) and all(_holds(e, by_field) for e in fields)


def _holds(expression: Json, values: Mapping[str, str]) -> bool:
    operator, wanted = expression["operator"], expression.get("values") or []
    value = values.get(expression["key"])
    if operator == "DoesNotExist":
        return value is None
    if operator == "NotIn":
        return value is None or value not in wanted
    if value is None:
        return False
    if operator == "In":
        return value in wanted
    if operator in ("Gt", "Lt"):
        try:
            left, right = int(value), int(wanted[0])
        except ValueError:
            return False
        return left > right if operator == "Gt" else left < right
    return operator == "Exists"


# --- one node, many pods ---------------------------------------------------------------------------------------------


def crowding(node: Json, pods: Sequence[Json]) -> list[str]:
    """Return what is taken more than once or beyond what the node has."""
    allocatable = _allocatable(node)
    used = _sum(map(requests, pods))
    reasons = [
        f"{float(amount):g} of {resource} requested, {float(allocatable.get(resource, Fraction())):g} there"
        for resource, amount in used.items()
        if amount > allocatable.get(resource, Fraction())
    ]
    if len(pods) > allocatable.get("pods", Fraction()):
        reasons.append(f"{len(pods)} pods on a node for {allocatable.get('pods')}")
    with_ports = [pod for pod in pods if host_ports(pod)]
    for index, pod in enumerate(with_ports):
        for other in with_ports[index + 1 :]:
            if _ports_clash(pod, other):
                reasons.append(f"{_names([pod, other])} want the same host port")
    return reasons


def _lack(node: Json, pod: Json, here: Sequence[Json]) -> bool:
    allocatable, used = _allocatable(node), _sum(map(requests, here))
    if len(here) + 1 > allocatable.get("pods", Fraction()):
        return True
    zero = Fraction()
    wanted = requests(pod)
    if any(v > 0 and used.get(r, zero) + v > allocatable.get(r, zero) for r, v in wanted.items()):
        return True
    return any(_ports_clash(pod, other) for other in here)


def requests(pod: Json) -> Amounts:
    """Return what the pod asks for in total."""
    spec = pod["spec"]
    running = _sum(_container_requests(container) for container in spec["containers"])
    peak: Amounts = {}
    sidecars: Amounts = {}
    for container in spec.get("initContainers", ()):
        asked = _container_requests(container)
        if container.get("restartPolicy") == "Always":
            sidecars = _sum([sidecars, asked])
            asked = sidecars
        else:
            asked = _sum([sidecars, asked])
        peak = _larger(peak, asked)
    total = _larger(_sum([running, sidecars]), peak)
    for resource, text in ((spec.get("resources") or {}).get("requests") or {}).items():
        if resource in _POD_LEVEL or resource.startswith("hugepages-"):
            total[resource] = quantity(text)
    return _sum([total, {r: quantity(text) for r, text in (spec.get("overhead") or {}).items()}])


def _container_requests(container: Json) -> Amounts:
    asked = (container.get("resources") or {}).get("requests") or {}
    return {resource: quantity(text) for resource, text in asked.items()}


def _allocatable(node: Json) -> Amounts:
    return {resource: quantity(text) for resource, text in node["status"].get("allocatable", {}).items()}


def _sum(parts: Iterable[Mapping[str, Fraction]]) -> Amounts:
    total: Amounts = {}
    for part in parts:
        for resource, amount in part.items():
            total[resource] = total.get(resource, Fraction()) + amount
    return total


def _larger(a: Mapping[str, Fraction], b: Mapping[str, Fraction]) -> Amounts:
    zero = Fraction()
    return {resource: max(a.get(resource, zero), b.get(resource, zero)) for resource in {*a, *b}}


def _ports_clash(a: Json, b: Json) -> bool:
    return any(_same_port(p, q) for p in host_ports(a) for q in host_ports(b))


def host_ports(pod: Json) -> list[tuple[str, str, int]]:
    spec = pod["spec"]
    sidecars = [c for c in spec.get("initContainers", ()) if c.get("restartPolicy") == "Always"]
    return [
        (port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", port["hostPort"])
        for container in [*spec["containers"], *sidecars]
        for port in container.get("ports", ())
        if port.get("hostPort")
    ]


def _same_port(p: tuple[str, str, int], q: tuple[str, str, int]) -> bool:
    return p[1:] == q[1:] and (p[0] == q[0] or "0.0.0.0" in (p[0], q[0]))


def is_live(pod: Json) -> bool:
    return pod["status"].get("phase") not in ("Succeeded", "Failed")


def _name(pod: Json) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _names(pods: Iterable[Json]) -> str:
    return ", ".join(map(_name, pods))
