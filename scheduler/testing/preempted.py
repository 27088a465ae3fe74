"""Preempted: what an attempt's preemption looks like in the answer to a case (see ``cases``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from scheduler.api import NodesView, NodeView, Pod, Status
from scheduler.cycle.attempt import Attempt
from scheduler.plugins.default_preemption.candidates import SEARCH, Search

__all__ = ["Preempted", "shown_status"]

Json = dict[str, Any]


def shown_status(status: Status) -> Json:
    """Return a status as answers show it."""
    shown: Json = {"code": str(status.code), "reasons": sorted(status.reasons)}
    if status.plugin:
        shown["plugin"] = status.plugin
    return shown


class Preempted:
    """Taken when the attempt ends, before the victims are gone.

    Attributes:
        victims: the chosen node's victims, sorted.
        details: the dry runs by node; None if there were none.
    """

    def __init__(self, attempt: Attempt) -> None:
        found = attempt.state.get(SEARCH)
        self.victims: list[str] = []
        self.details: Json | None = None
        if found is not None and (found.candidates or found.rejected):
            self.details = _details(found, attempt)
            if found.chosen in found.candidates:
                self.victims = _keys(found.candidates[found.chosen].pods)

    def report(self, result: Json, evicted: Iterable[Pod]) -> None:
        """Fill in the answer; ``evicted`` are the pods that the attempt had deleted."""
        result["victims"] = self.victims
        deleted = _keys(evicted)
        if deleted and deleted != self.victims:
            result["deleted"] = deleted
        if self.details is not None:
            result["preemption"] = self.details


def _details(found: Search, attempt: Attempt) -> Json:
    nodes = attempt.nodes
    candidates: Json = {}
    for name, victims in found.candidates.items():
        shown = {"victims": _keys(victims.pods), "pdbViolations": victims.num_pdb_violations}
        candidates[name] = shown | ({"orderTies": True} if _has_order_ties(_node(nodes, name), attempt.pod) else {})
    names = nodes.names
    rejected = {names[row]: shown_status(status) for status, rows in found.rejected.items() for row in rows}
    details = {"candidates": candidates, "rejected": rejected, "ties": found.ties}
    return {field: value for field, value in details.items() if value}


def _node(nodes: NodesView, name: str) -> NodeView:
    row = nodes.row(name)
    assert row is not None
    return nodes.infos[row]


def _has_order_ties(node: NodeView, pod: Pod) -> bool:
    """Say whether two potential victims are equally important, so that it is open which of them goes first."""
    keys = [(other.priority, other.status.start_time) for other in node.pods if other.priority < pod.priority]
    return len(set(keys)) < len(keys)


def _keys(pods: Iterable[Pod]) -> list[str]:
    return sorted(pod.pod_key for pod in pods)
