"""G5: what a scheduler believes equals what the API server has.

A scheduler logs its cache and queue on SIGUSR2; here the log is read back and held against the observer's record.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from typing import Any

from tests.faults.history.record import Belief, History, Violation, key_of
from tests.integration.checker import is_live, quantity

_END = "scheduling queue"
_MOST = 2**63 - 1
"""What no amount exceeds (int64)."""


def read_belief(scheduler: str, log: str, profiles: Iterable[str]) -> Belief | None:
    """Return the last complete dump in a log of JSON lines; None if there is none."""
    nodes: dict[str, frozenset[str]] = {}
    allocatable: dict[str, dict[str, int]] = {}
    found = None
    for line in _lines(log):
        if line["msg"] == "cached node":
            pods = frozenset(pod.rpartition(" ")[0] for pod in line["pods"])
            if pods or not line["deleted"]:
                nodes[line["node"]] = pods
                if not line["deleted"]:
                    allocatable[line["node"]] = {name: amount for name, amount in line["allocatable"].items() if amount}
        elif line["msg"] == _END:
            found = Belief(scheduler, nodes, frozenset(line["pending"]), frozenset(profiles), allocatable)
            nodes, allocatable = {}, {}
    return found


def dumps(log: str) -> int:
    """Return how many complete dumps a log has."""
    return sum(line["msg"] == _END for line in _lines(log))


def drift(history: History) -> list[Violation]:
    """G5: whoever should say what it believes has said so: every node with its pods and what it offers, every pending pod."""
    offers = {node["metadata"]["name"]: _allocatable(node) for node in history.latest("Node").values()}
    nodes = {node["metadata"]["name"]: set[str]() for node in history.latest("Node").values()}
    pending: dict[str, str] = {}
    for uid, pod in history.latest("Pod").items():
        if not is_live(pod):
            continue
        if name := pod["spec"].get("nodeName"):
            nodes.setdefault(name, set()).add(f"{key_of(pod)} {uid}")
        elif not pod["metadata"].get("deletionTimestamp"):
            pending[key_of(pod)] = pod["spec"]["schedulerName"]
    wrong = [
        what
        for belief in history.beliefs
        for what in _differences(belief, nodes, {key for key, name in pending.items() if name in belief.profiles})
    ]
    wrong += [what for belief in history.beliefs for what in _other_offers(belief, offers)]
    return [Violation("G5", what) for what in (*history.unheard, *wrong)]


def _differences(belief: Belief, nodes: dict[str, set[str]], pending: set[str]) -> Iterator[str]:
    who = belief.scheduler
    for name in sorted({*nodes, *belief.nodes}):
        if name not in belief.nodes:
            yield f"{who} does not know {name}"
        elif name not in nodes:
            yield f"{who} believes in {name}, which does not exist"
        else:
            for pod in sorted(nodes[name] - belief.nodes[name]):
                yield f"{who} does not know that {pod} is on {name}"
            for pod in sorted(belief.nodes[name] - nodes[name]):
                yield f"{who} believes that {pod} is on {name}"
    for pod in sorted(pending - belief.pending):
        yield f"{who} has forgotten that {pod} is pending"
    for pod in sorted(belief.pending - pending):
        yield f"{who} believes that {pod} is pending"


def _other_offers(belief: Belief, offers: dict[str, dict[str, int]]) -> Iterator[str]:
    for name, believed in belief.allocatable.items():
        true = offers.get(name, believed)
        if believed != true:
            yield f"{belief.scheduler} believes that {name} offers {dict(believed)}, and it offers {true}"


def _allocatable(node: dict[str, Any]) -> dict[str, int]:
    """Return what a node offers, as the scheduler counts it (rounded up, as upstream does)."""
    offered = {name: quantity(text) for name, text in (node["status"].get("allocatable") or {}).items()}
    amounts = {name: math.ceil(amount * 1000 if name == "cpu" else amount) for name, amount in offered.items()}
    return {name: min(amount, _MOST) for name, amount in amounts.items() if amount}


def _lines(log: str) -> Iterable[dict[str, Any]]:
    """Return the lines that may be part of a dump."""
    for text in log.splitlines():
        if '"cached node"' in text or f'"{_END}"' in text:
            try:
                line = json.loads(text)
            except ValueError:
                continue  # the last line may be half written
            if line.get("msg") in ("cached node", _END):
                yield line
