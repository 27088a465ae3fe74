"""Bound claims: a node must reach their volumes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from scheduler.api import BoolColumn, Lister, NodesView
from scheduler.model.storage import CSINode, PersistentVolume
from scheduler.plugins.shared.volume_affinity import is_reachable, reachable_rows
from scheduler.plugins.volume_binding.decisions import REASON_NODE_CONFLICT, REASON_VOLUME_GONE, BindingError
from scheduler.plugins.volume_binding.migration import can_have_moved, has_moved, reach_on, translated_reach

__all__ = ["BoundVolumes"]


class BoundVolumes:
    """The volumes of a pod's bound claims; a volume that does not exist is None."""

    __slots__ = ("_csi_nodes", "_volumes")

    def __init__(self, volumes: Sequence[PersistentVolume | None], csi_nodes: Lister[CSINode]) -> None:
        self._volumes = volumes
        self._csi_nodes = csi_nodes

    def problem(self, node_name: str, labels: Mapping[str, str]) -> str | None:
        """Return the reason against a node; None if it reaches all volumes.

        Raises:
            BindingError: a volume cannot be seen as the node sees it.
        """
        csi_node = self._csi_nodes.get(node_name)
        for volume in self._volumes:
            if volume is None:
                return REASON_VOLUME_GONE
            if not is_reachable(reach_on(volume, csi_node), labels):
                return REASON_NODE_CONFLICT
        return None

    def problems(self, nodes: NodesView) -> tuple[list[str | BindingError | None], NDArray[np.intp]]:
        """Return ``problem`` for each row, as a list of answers and the answer of each row."""
        answers: list[str | BindingError | None] = [None]
        codes = np.zeros(len(nodes), np.intp)
        undecided = np.ones(len(nodes), np.bool_)

        def decide(rows: BoolColumn, answer: str | BindingError) -> None:
            answers.append(answer)
            codes[undecided & rows] = len(answers) - 1
            undecided[rows] = False

        for volume in self._volumes:
            if volume is None:
                decide(undecided.copy(), REASON_VOLUME_GONE)
                break
            reaching = reachable_rows(volume.spec.node_affinity, nodes)
            moved = self._moved_rows(volume, nodes)
            if moved is not None:
                try:
                    reaching[moved] = reachable_rows(translated_reach(volume), nodes)[moved]
                except BindingError as error:
                    decide(moved, error)
            decide(~reaching, REASON_NODE_CONFLICT)
        return answers, codes

    def _moved_rows(self, volume: PersistentVolume, nodes: NodesView) -> BoolColumn | None:
        """Return the rows that see the volume as a CSI volume; None if no node can."""
        if not can_have_moved(volume):
            return None
        moved = np.zeros(len(nodes), np.bool_)
        for csi_node in self._csi_nodes.list():
            row = nodes.row(csi_node.name) if has_moved(volume, csi_node) else None
            if row is not None:
                moved[row] = True
        return moved
