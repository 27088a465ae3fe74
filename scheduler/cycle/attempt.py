"""Attempt: the working record of one scheduling attempt, filled in from top to bottom by the cycle's steps.

Explain and simulate get it through the engine's observer, so it keeps what they ask for in its cheapest form: columns
and closures. It is valid while its cycle runs, because the snapshot's rows may mean other nodes in the next.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scheduler.api import BoolColumn, CycleState, NodesView, Pod, Status
from scheduler.framework.diagnosis import Diagnosis
from scheduler.framework.filtering import FilterOutcome
from scheduler.framework.prefilter import PreFilterOutcome
from scheduler.framework.runtime import Framework
from scheduler.framework.scoring import Scores
from scheduler.framework.standing import Answers

__all__ = ["Attempt", "Searched"]


class Searched(NamedTuple):
    """A part of the cluster that was filtered.

    Attributes:
        outcome: the verdicts.
        rows: snapshot row of each of the outcome's rows; None: they are the same.
        visited: rows that count as looked at; None: all.
    """

    outcome: FilterOutcome
    rows: NDArray[np.intp] | None
    visited: BoolColumn | None


class Attempt:
    """One attempt.

    Attributes:
        framework: the profile.
        state: what the plugins tell one another.
        pod: the pod.
        nodes: the snapshot.
        diagnosis: why nodes were rejected; call ``explain`` before reading statuses.
        answers: what need not be asked, because it is known from an earlier attempt; None: everything is asked.
        pre_filter: what PreFilter said, or None if it was not reached.
        is_nominated_first: the nominated node passed, so no other was looked at.
        searched: filtered parts whose rejections are not in the diagnosis yet.
        feasible: rows of ``nodes`` that the pod can run on.
        num_evaluated: nodes looked at.
        scores: the scores; None if there was no need to score.
        best: positions in ``feasible`` among which the choice was made.
        node_name: the chosen node, or "".
        status: why the attempt failed, or None.
    """

    __slots__ = (
        "answers",
        "best",
        "diagnosis",
        "feasible",
        "framework",
        "is_nominated_first",
        "node_name",
        "nodes",
        "num_evaluated",
        "pod",
        "pre_filter",
        "scores",
        "searched",
        "state",
        "status",
    )

    def __init__(self, framework: Framework, state: CycleState, pod: Pod, nodes: NodesView) -> None:
        self.framework = framework
        self.state = state
        self.pod = pod
        self.nodes = nodes
        self.diagnosis = Diagnosis(nodes)
        self.answers: Answers | None = None
        self.pre_filter: PreFilterOutcome | None = None
        self.is_nominated_first = False
        self.searched: list[Searched] = []
        self.feasible = self.best = _NO_ROWS
        self.num_evaluated = 0
        self.scores: Scores | None = None
        self.node_name = ""
        self.status: Status | None = None

    @property
    def feasible_nodes(self) -> list[str]:
        """Return the names of the nodes that the pod can run on."""
        names = self.nodes.names
        return [names[row] for row in self.feasible.tolist()]

    @property
    def best_nodes(self) -> list[str]:
        """Return the names of the nodes among which the choice was made."""
        names = self.nodes.names
        return [names[row] for row in self.feasible[self.best].tolist()]

    def explain(self) -> Status | None:
        """Work the reasons of all rejections out and put them into the diagnosis; returns an Error if that fails."""
        searched, self.searched = self.searched, []
        for outcome, rows, visited in searched:
            groups = outcome.explain(visited)
            if isinstance(groups, Status):
                return groups
            for status, some in groups:
                self.diagnosis.add_group(status, some if rows is None else rows[some])
        return None


_NO_ROWS: NDArray[np.intp] = np.empty(0, np.intp)
