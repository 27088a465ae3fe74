"""Differences from kube-scheduler that are kept on purpose: each a named rule with its reason.

A rule looks at what differs about one pod, and at the case. Where it applies, the rest of the case is not compared, since
later pods find another cluster; the case itself stays in the golden files. docs/conformance.md lists the rules, which a
test checks, and the figures count the cases that they touch.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from scheduler.model.quantity import MAX_INT64, NANO, parse_quantity_nano

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of difference.

    Attributes:
        name: as in the figures.
        reason: what kube-scheduler does, what Podium does, and why it stays so.
        applies: gets kube-scheduler's result for a pod, Podium's, and the case.
    """

    name: str
    reason: str
    applies: Callable[[Json, Json, Json], bool]


def rule_for(want: Json, got: Json, case: Json) -> str:
    """Return the name of the rule that excludes the difference between two results, or ""."""
    return next((rule.name for rule in RULES if rule.applies(want, got, case)), "")


def _is_victim_order(want: Json, got: Json, case: Json) -> bool:
    """Say whether the two chose other victims on a node where their order is open."""
    del case
    mine = (want.get("preemption") or {}).get("candidates") or {}
    theirs = (got.get("preemption") or {}).get("candidates") or {}
    return any(found.get("orderTies") and found != theirs.get(node) for node, found in mine.items())


def _is_shared_port(want: Json, got: Json, case: Json) -> bool:
    """Say whether the difference is about ports, and two pods of the cluster have the same one."""
    return "NodePorts" in json.dumps((want, got)) and _has_shared_port(case)


def _has_shared_port(case: Json) -> bool:
    taken: Counter[tuple[str, ...]] = Counter()
    for pod in (*(case.get("objects") or ()), *(case.get("pods") or ())):
        node = pod.get("spec", {}).get("nodeName")
        if node and pod.get("kind", "Pod") == "Pod":
            taken.update({(node, *port) for port in _host_ports(pod["spec"])})
    return any(count > 1 for count in taken.values())


def _host_ports(spec: Json) -> Iterator[tuple[str, str, str]]:
    sidecars = (c for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always")
    for container in (*spec["containers"], *sidecars):
        for port in container.get("ports") or ():
            number = port.get("hostPort") or (port["containerPort"] if spec.get("hostNetwork") else 0)
            if number:
                yield port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", str(number)


def _is_beyond_int64(want: Json, got: Json, case: Json) -> bool:
    """Say whether a pod of the case asks for more of something than int64 holds."""
    del want, got
    pods = (pod for pod in (*(case.get("objects") or ()), *(case.get("pods") or ())) if pod.get("kind", "Pod") == "Pod")
    return any(_asks_beyond_int64(pod.get("spec") or {}) for pod in pods)


def _asks_beyond_int64(spec: Json) -> bool:
    asked: Counter[str] = Counter()
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        for name, text in ((container.get("resources") or {}).get("requests") or {}).items():
            nano = parse_quantity_nano(text) if text is not None else 0
            asked[name] += nano * 1_000 if name == "cpu" else nano
    return any(nano >= MAX_INT64 * NANO for nano in asked.values())


def _has_too_many_terms(want: Json, got: Json, case: Json) -> bool:
    """Say whether Podium refused a pod because of the number of its affinity terms."""
    del want, case
    return "podium evaluates at most" in json.dumps(got)


RULES = (
    Rule(
        "victim order",
        "Two potential victims on a node have the same priority and start time. kube-scheduler leaves their order to an "
        "unstable sort, so that either may have to go; Podium takes them in the order in which they came to the node.",
        _is_victim_order,
    ),
    Rule(
        "shared host port",
        "Two pods run on one node with the same host port, which no scheduler does, and preemption is at work. "
        "kube-scheduler keeps ports as a set and takes the port for free once one of the two is gone, although the other "
        "holds it still; Podium counts.",
        _is_shared_port,
    ),
    Rule(
        "amount beyond int64",
        "A pod asks for more of a resource than int64 holds (cpu in thousandths), which the API server accepts. "
        "kube-scheduler's arithmetic wraps around: such a pod counts as asking for nothing, or for less than nothing, and "
        "may be bound, or fails with an invalid score. For Podium it asks for the largest amount, which fits nowhere.",
        _is_beyond_int64,
    ),
    Rule(
        "too many affinity terms",
        "A pod has more than 512 affinity and anti-affinity terms. kube-scheduler evaluates any number, each of which is a "
        "question about all pods; Podium refuses the pod with a reason, so that others need not wait.",
        _has_too_many_terms,
    ),
)
