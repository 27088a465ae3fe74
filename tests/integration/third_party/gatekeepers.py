"""A third party's plugins for tests: they hold pods at a known point until the test lets them go.

This file is copied into a distribution of its own (see `install`), found through the entry-point group, and runs inside
the daemon; it imports nothing but the public interface.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scheduler.api import (
    ActionType,
    ClusterEvent,
    CycleState,
    EventRegistration,
    EventResource,
    FilterPlugin,
    Handle,
    NodeView,
    PermitPlugin,
    Pod,
    PreBindPlugin,
    ReservePlugin,
    Status,
)

HOLD = "hold"
_POLL_S = 0.02


class HoldPreBind(PreBindPlugin, ReservePlugin):
    """PreBind: a pod labelled `hold` leaves a file `NAME.held` and goes on when `NAME.go` appears.

    `NAME.undone` tells that Unreserve was called.
    """

    name = "HoldPreBind"

    def __init__(self, args: Any, handle: Handle) -> None:
        del handle
        self._directory = Path(args["directory"])

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        del state, node_name
        return None if HOLD in pod.metadata.labels else Status.skip()

    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        del state
        (self._directory / f"{pod.name}.held").write_text(node_name)
        while not (self._directory / f"{pod.name}.go").exists():  # noqa: ASYNC110  the test speaks through files
            await asyncio.sleep(_POLL_S)
        return None

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        del state, pod, node_name
        return None

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        del state
        (self._directory / f"{pod.name}.undone").write_text(node_name)


class GangPermit(PermitPlugin):
    """Permit: pods labelled `gang` wait until `gang-size` of them hold a place; then all go on."""

    name = "GangPermit"

    def __init__(self, args: Any, handle: Handle) -> None:
        self._wait_s = float(args.get("waitSeconds", 60))
        self._handle = handle

    def events(self) -> Sequence[EventRegistration]:
        return (EventRegistration(ClusterEvent(EventResource.POD, ActionType.ADD)),)

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status | None, float]:
        del state, node_name
        gang = pod.metadata.labels.get("gang")
        if gang is None:
            return None, 0.0
        members = [w for w in self._handle.waiting_pods() if w.pod.metadata.labels.get("gang") == gang]
        if len(members) + 1 < int(pod.metadata.labels["gang-size"]):
            return Status.wait(), self._wait_s
        for member in members:
            member.allow(self.name)
        return None, 0.0


class WantsVolumes(FilterPlugin):
    """Filter: asks for persistent volumes and accepts every node."""

    name = "WantsVolumes"

    def __init__(self, args: Any, handle: Handle) -> None:
        from scheduler.model.storage import PersistentVolume

        del args
        self._volumes = handle.lister(PersistentVolume)

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        del state, pod, node
        list(self._volumes.list())
        return None


class Faulty(FilterPlugin):
    """Filter: raises for pods labelled `poison`, accepts every node for all others."""

    name = "Faulty"

    def __init__(self, args: Any, handle: Handle) -> None:
        del args, handle

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        del state, node
        if "poison" in pod.metadata.labels:
            raise RuntimeError("poisoned pod")
        return None


class HangingFilter(FilterPlugin):
    """Filter: never comes back for a pod labelled `hang`."""

    name = "HangingFilter"

    def __init__(self, args: Any, handle: Handle) -> None:
        del args, handle

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        import time

        del state, node
        if "hang" in pod.metadata.labels:
            time.sleep(3600)
        return None
