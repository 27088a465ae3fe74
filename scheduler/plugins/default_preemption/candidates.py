"""Candidates: the nodes on which evicting pods would help.

Only nodes that were rejected with plain Unschedulable are worth a dry run. It begins at a random one of them and ends
once enough candidates are found, one of them without a violated budget; on large clusters that is far from all.
Source: ``findCandidates``, ``DryRunPreemption``, ``calculateNumCandidates``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from scheduler.api import Code, NodesView, NodeView, Random, StateKey, Status, Victims
from scheduler.config.args import DefaultPreemptionArgs
from scheduler.framework.diagnosis import NodeStatuses
from scheduler.plugins.default_preemption.victims import NO_VICTIMS, DryRun

__all__ = ["SEARCH", "Search", "num_candidates", "potential_rows", "search"]


@dataclass(slots=True)
class Search:
    """What the dry runs found; kept in the cycle state for those who explain a decision.

    Attributes:
        candidates: node -> who would have to go; those without violations first, else in the order of the search.
        rejected: why others would not help -> rows of the snapshot.
        ties: the nodes among which the choice was made by chance; empty if there was only one.
        chosen: the node that the pod was nominated to, or "".
    """

    candidates: dict[str, Victims] = field(default_factory=dict)
    rejected: dict[Status, list[int]] = field(default_factory=dict)
    ties: list[str] = field(default_factory=list)
    chosen: str = ""

    @property
    def errors(self) -> list[str]:
        """Return the texts of what went wrong, each once."""
        return list(dict.fromkeys(status.message for status in self.rejected if status.code is Code.ERROR))


SEARCH: StateKey[Search] = StateKey("DefaultPreemptionSearch")


def potential_rows(statuses: Mapping[str, Status], nodes: NodesView) -> NDArray[np.intp]:
    """Return the rows of the nodes where evicting pods may help: those rejected with plain Unschedulable."""
    if isinstance(statuses, NodeStatuses):
        return statuses.rows_with(Code.UNSCHEDULABLE)
    rows = (nodes.row(name) for name, status in statuses.items() if status.code is Code.UNSCHEDULABLE)
    return np.array(sorted(row for row in rows if row is not None), np.intp)


def num_candidates(args: DefaultPreemptionArgs, num_nodes: int) -> int:
    """Return how many candidates are enough."""
    wanted = max(num_nodes * args.min_candidate_nodes_percentage // 100, args.min_candidate_nodes_absolute)
    return min(wanted, num_nodes)


def search(dry_run: DryRun, nodes: NodesView, rows: NDArray[np.intp], wanted: int, random: Random) -> Search:
    """Try the ``rows`` (at least one) of ``nodes``, from a random one on, until there are enough candidates."""
    found = Search()
    violating: dict[str, Victims] = {}
    infos = nodes.infos
    in_order = np.roll(rows, -random.randrange(len(rows)))
    # Most often it is a pod like all others that does not fit: such nodes are not worth a look one by one.
    has_victims = nodes.lowest_priority[in_order] < dry_run.pod.priority
    if not has_victims.all():
        found.rejected[NO_VICTIMS] = in_order[~has_victims].tolist()
    for row in in_order[has_victims].tolist():
        node = infos[row]
        answer = _try(dry_run, node)
        if isinstance(answer, Status):
            found.rejected.setdefault(answer, []).append(row)
            continue
        (violating if answer.num_pdb_violations else found.candidates)[node.name] = answer
        if found.candidates and len(found.candidates) + len(violating) >= wanted:
            break
    found.candidates.update(violating)
    return found


def _try(dry_run: DryRun, node: NodeView) -> Victims | Status:
    answer = dry_run.on(node)
    if isinstance(answer, Victims) and not answer.pods:
        return Status.error(f'expected at least one victim pod on node "{node.name}"')
    return answer
