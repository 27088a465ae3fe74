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
)
