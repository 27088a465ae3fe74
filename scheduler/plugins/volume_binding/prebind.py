"""PreBind: writes the decisions and waits until the volume controller and provisioners have carried them out.

    write volumes ─▶ write claims ─▶ check once a second ─▶ all bound
         │                │                  │
         └─ refused ──────┴─ gone, undone, or too late ──▶ error: the pod is scheduled anew

Written is only what changes, under the version the decision was made from, so a volume that anybody touched meanwhile
is refused. What was written stays written when the pod fails. What is checked is what the watch shows, not the assume
caches, for those may hold the next pod's assumptions already.
Source: ``BindPodVolumes``, ``bindAPIUpdate``, ``checkBindings``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from scheduler.api import Clock, Lister, Node, Pod, Status
from scheduler.model.meta import KubeObject
from scheduler.model.storage import CSINode, PersistentVolume, PersistentVolumeClaim
from scheduler.plugins.shared.storage import is_fully_bound
from scheduler.plugins.shared.volume_affinity import affinity_problem
from scheduler.plugins.volume_binding.binder import BOUND_BY_CONTROLLER, Caches
from scheduler.plugins.volume_binding.decisions import BindingError, PodVolumes
from scheduler.plugins.volume_binding.delayed import SELECTED_NODE
from scheduler.plugins.volume_binding.migration import reach_on

__all__ = ["TIMED_OUT", "PreBind"]

TIMED_OUT = "context deadline exceeded"

_POLL_S = 1.0

Patch = Callable[[KubeObject, Mapping[str, Any]], Awaitable[KubeObject | Status]]


@dataclass(slots=True)
class _Written:
    """The objects as the API server has them after our writes."""

    volumes: list[tuple[PersistentVolumeClaim, KubeObject]]
    claims: list[KubeObject]


@dataclass(frozen=True, slots=True)
class PreBind:
    """Carries out reserved decisions.

    Attributes:
        caches: with the reservations.
        pods: as watched.
        nodes: as watched.
        csi_nodes: as watched.
        patch: sends a merge patch; answers with the new object or an Error.
        clock: measures the wait.
        sleep: waits.
        timeout_s: longest wait for the volumes to be bound.
    """

    caches: Caches
    pods: Lister[Pod]
    nodes: Lister[Node]
    csi_nodes: Lister[CSINode]
    patch: Patch
    clock: Clock
    sleep: Callable[[float], Awaitable[None]]
    timeout_s: float

    async def run(self, pod: Pod, node_name: str, decided: PodVolumes) -> Status | None:
        """Write and wait; returns an Error if the pod has to be scheduled anew."""
        written = await self._write(decided)
        if isinstance(written, Status):
            return written
        try:
            await self._wait(pod, node_name, written)
        except BindingError as error:
            return Status.error(f"binding volumes: {error}")
        return None

    # --- writing -----------------------------------------------------------------------------------------------------

    async def _write(self, decided: PodVolumes) -> _Written | Status:
        written = _Written([], [])
        try:
            for binding in decided.bindings:
                answer = await self.patch(binding.volume, _volume_patch(binding.volume, binding.claim))
                if isinstance(answer, Status):
                    return answer
                written.volumes.append((binding.claim, answer))
            for provision in decided.provisions:
                answer = await self.patch(provision.claim, _claim_patch(provision.claim))
                if isinstance(answer, Status):
                    return answer
                written.claims.append(answer)
            return written
        finally:
            # What was not written is free again at once; what was written, the watch will show.
            left = PodVolumes(decided.bindings[len(written.volumes) :], decided.provisions[len(written.claims) :])
            self.caches.revert(left)

    # --- waiting -----------------------------------------------------------------------------------------------------

    async def _wait(self, pod: Pod, node_name: str, written: _Written) -> None:
        deadline_s = self.clock.now() + self.timeout_s
        while True:
            left_s = deadline_s - self.clock.now()
            await self.sleep(min(_POLL_S, max(left_s, 0.0)))
            if left_s < _POLL_S:
                raise BindingError(TIMED_OUT)
            if self._is_done(pod, node_name, written):
                return

    def _is_done(self, pod: Pod, node_name: str, written: _Written) -> bool:
        """Say whether everything is bound.

        Raises:
            BindingError: it will never be, for a reason that the text tells.
        """
        node = self.nodes.get(node_name)
        if node is None:
            raise BindingError(f'failed to get node "{node_name}": node "{node_name}" not found')
        if self.pods.get(pod.pod_key) is None:
            raise BindingError(f'pod does not exist any more: pod "{pod.name}" not found')
        # parity: the first claim that is still on its way ends the round
        return all(self._is_volume_bound(node, claim, volume) for claim, volume in written.volumes) and all(
            self._is_provisioned(node, claim) for claim in written.claims
        )

    def _is_volume_bound(self, node: Node, written_claim: PersistentVolumeClaim, written: KubeObject) -> bool:
        volumes, claims = self.caches.volumes, self.caches.claims
        volume, claim = volumes.get_watched(written.key), claims.get_watched(written_claim.key)
        if volume is None:
            raise BindingError(f"failed to check binding: {volumes.not_found(written.key)}")
        if claim is None:
            raise BindingError(f"failed to check binding: {claims.not_found(written_claim.key)}")
        if _is_older(volume, written):
            return False
        self._check_reach(volume, node, "failed to translate pv to csi: ")
        if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
            raise BindingError(f'ClaimRef got reset for pv "{volume.name}"')
        return is_fully_bound(claim)

    def _is_provisioned(self, node: Node, written: KubeObject) -> bool:
        claims = self.caches.claims
        claim = claims.get_watched(written.key)
        if claim is None:
            raise BindingError(f"failed to check provisioning pvc: {claims.not_found(written.key)}")
        if _is_older(claim, written):
            return False
        if not claim.annotations:
            raise BindingError(f'selectedNode annotation reset for PVC "{claim.name}"')
        if claim.annotations.get(SELECTED_NODE, "") != node.name:
            # A provisioner that fails takes the annotation away, which asks for another node.
            raise BindingError(f'provisioning failed for PVC "{claim.name}"')
        if claim.spec.volume_name:
            volume = self.caches.volumes.get_watched(claim.spec.volume_name)
            if volume is None:
                return False  # the watch of volumes may lag behind that of claims
            self._check_reach(volume, node, "")
        return is_fully_bound(claim)

    def _check_reach(self, volume: PersistentVolume, node: Node, prefix: str) -> None:
        try:
            affinity = reach_on(volume, self.csi_nodes.get(node.name))
        except BindingError as error:
            raise BindingError(f"{prefix}{error}") from error
        problem = affinity_problem(affinity, node.labels)
        if problem is not None:
            raise BindingError(f'pv "{volume.name}" node affinity doesn\'t match node "{node.name}": {problem}')


def _is_older(shown: KubeObject, written: KubeObject) -> bool:
    """Say whether the watch has not reached our own write yet."""
    return _version(shown) < _version(written)


def _version(obj: KubeObject) -> int:
    version = obj.metadata.resource_version
    return int(version) if version.isascii() and version.isdigit() else 0


def _volume_patch(volume: PersistentVolume, claim: PersistentVolumeClaim) -> dict[str, Any]:
    """Return the merge patch that binds the volume to the claim; refused if the volume has changed since."""
    metadata: dict[str, Any] = {"resourceVersion": volume.metadata.resource_version}
    if BOUND_BY_CONTROLLER in volume.annotations:
        metadata["annotations"] = {BOUND_BY_CONTROLLER: volume.annotations[BOUND_BY_CONTROLLER]}
    ref = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": claim.namespace,
        "name": claim.name,
        "uid": claim.uid,
        "resourceVersion": claim.metadata.resource_version,
    }
    return {"metadata": metadata, "spec": {"claimRef": ref}}


def _claim_patch(claim: PersistentVolumeClaim) -> dict[str, Any]:
    """Return the merge patch that asks for a volume on the selected node; refused if the claim has changed since."""
    annotations = {SELECTED_NODE: claim.annotations[SELECTED_NODE]}
    return {"metadata": {"resourceVersion": claim.metadata.resource_version, "annotations": annotations}}
