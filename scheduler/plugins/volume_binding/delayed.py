"""Delayed claims: for each node, which volumes the claims take, and for which of them volumes are made there.

Claims are matched in ascending order of size, so that small ones do not take large volumes; a claim that matches no
volume, or has a node selected for it already, is provisioned. What one claim knows about volumes and capacities is
worked out at its first use and serves all nodes of the attempt. Source: ``FindPodVolumes``.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from scheduler.api import NodesView
from scheduler.model.storage import PersistentVolumeClaim
from scheduler.plugins.shared.rowwise import group_rows
from scheduler.plugins.shared.storage import claim_class, storage_nano
from scheduler.plugins.shared.volume_affinity import affinity_keys
from scheduler.plugins.volume_binding.claims import PodClaims
from scheduler.plugins.volume_binding.decisions import REASON_NO_VOLUME, PodVolumes, Provision, StaticBinding
from scheduler.plugins.volume_binding.provisioning import Provisioner, Provisioning
from scheduler.plugins.volume_binding.static_matching import Candidates

__all__ = ["SELECTED_NODE", "DelayedClaims"]

SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""Annotation of a claim: the node on which its volume is to be made."""


class DelayedClaims:
    """The delayed claims of one pod."""

    __slots__ = ("_candidates", "_claims", "_provisioners", "_provisioning", "_selected", "_unselected")

    def __init__(self, claims: PodClaims, provisioning: Provisioning) -> None:
        self._claims = claims
        self._provisioning = provisioning
        self._selected = [claim for claim in claims.delayed if SELECTED_NODE in claim.annotations]
        unselected = [claim for claim in claims.delayed if SELECTED_NODE not in claim.annotations]
        self._unselected = sorted(unselected, key=lambda claim: storage_nano(claim.spec.resources.requests))
        self._candidates: dict[str, Candidates] = {}
        self._provisioners: dict[str, Provisioner] = {}

    def place(self, node_name: str, labels: Mapping[str, str]) -> PodVolumes | str:
        """Return the decisions for a node, or the reason against it.

        Raises:
            BindingError: a claim cannot be understood, or its class is gone.
        """
        if any(claim.annotations[SELECTED_NODE] != node_name for claim in self._selected):
            return REASON_NO_VOLUME
        bindings: list[StaticBinding] = []
        unmatched: list[PersistentVolumeClaim] = []
        taken: set[str] = set()
        for claim in self._unselected:
            volume = self._candidates_of(claim).choose(labels, taken)
            if volume is None:
                unmatched.append(claim)
            else:
                taken.add(volume.name)
                bindings.append(StaticBinding(claim, volume))
        provisions: list[Provision] = []
        for claim in (*self._selected, *unmatched):
            planned = self._provisioner_of(claim).plan(labels)
            if isinstance(planned, str):
                return planned
            provisions.append(planned)
        return PodVolumes(tuple(bindings), tuple(provisions))

    def groups(self, nodes: NodesView) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Sort rows into groups for which ``place`` says the same; returns first rows, and the group of each row."""
        keys: set[str] = set()
        for volumes in self._claims.volumes.values():
            for volume in volumes:
                keys |= affinity_keys(volume.spec.node_affinity)
        for name in {claim_class(claim) for claim in self._claims.delayed}:
            keys |= self._provisioning.label_keys(name)
        selected = {claim.annotations[SELECTED_NODE] for claim in self._selected}
        return group_rows(nodes, keys, [_is_named(name, nodes) for name in sorted(selected)])

    def _candidates_of(self, claim: PersistentVolumeClaim) -> Candidates:
        known = self._candidates.get(claim.key)
        if known is None:
            known = self._candidates[claim.key] = Candidates(claim, self._claims.volumes[claim_class(claim)])
        return known

    def _provisioner_of(self, claim: PersistentVolumeClaim) -> Provisioner:
        known = self._provisioners.get(claim.key)
        if known is None:
            known = self._provisioners[claim.key] = self._provisioning.provisioner(claim)
        return known


def _is_named(name: str, nodes: NodesView) -> NDArray[np.int32]:
    column = np.zeros(len(nodes), np.int32)
    row = nodes.row(name)
    if row is not None:
        column[row] = 1
    return column
