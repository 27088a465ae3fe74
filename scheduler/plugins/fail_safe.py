"""Fail-safe stand-ins for default plugins that are not built yet.

A rule that Podium does not know must not be treated as if it did not exist: a pod that depends on one stays pending
with a reason that says so. A stand-in carries the name of its plugin, so that configuration files that name it load,
rejects exactly the pods that the real plugin would have had a say about, and says to all others what the real one says.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import ClassVar

import numpy as np

from scheduler.api import (
    CycleState,
    EventRegistration,
    Handle,
    IntColumn,
    NodesView,
    NodeView,
    PluginFactory,
    Pod,
    PostFilterPlugin,
    PostFilterResult,
    PreFilterPlugin,
    PreFilterResult,
    ScorePlugin,
    StateKey,
    Status,
)

__all__ = ["FAIL_SAFE", "NOTHING_TO_DEALLOCATE", "NOT_SCHEDULABLE", "NO_STATE", "DynamicResources", "not_built"]

NOTHING_TO_DEALLOCATE = "no new claims to deallocate"
NOT_SCHEDULABLE = "still not schedulable"
NO_STATE = "not found"

_LOOKED_AT: StateKey[bool] = StateKey("PreFilterDynamicResources")


def not_built(plugin: str, need: str) -> str:
    """Return the reason for a pod that needs a plugin that does not exist yet."""
    return f"podium has no {plugin} yet and the pod {need}"


class DynamicResources(PreFilterPlugin, PostFilterPlugin, ScorePlugin):
    """Stands in for resource claims (spec §4.19)."""

    name: ClassVar[str] = "DynamicResources"
    reads_pods: ClassVar[bool] = False
    __slots__ = ()

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodesView) -> tuple[PreFilterResult | None, Status | None]:
        del nodes
        state.write(_LOOKED_AT, True)
        if not pod.spec.resource_claims:
            return None, Status.skip()
        return None, Status.unresolvable(not_built(self.name, "has resource claims"))

    def post_filter(
        self, state: CycleState, pod: Pod, statuses: Mapping[str, Status]
    ) -> tuple[PostFilterResult | None, Status | None]:
        # parity: the text stands in front of preemption's in the message of every pod that fits nowhere.
        del statuses
        if state.get(_LOOKED_AT) is None:
            # parity: if another plugin's PreFilter has ended the attempt, the real one misses its state, and preemption
            # is not asked any more.
            return None, Status.error(NO_STATE)
        return None, Status.unschedulable(NOT_SCHEDULABLE if pod.spec.resource_claims else NOTHING_TO_DEALLOCATE)

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        del state, pod, node
        return 0  # parity: nodes differ only in how well they serve claims

    def score_all(self, state: CycleState, pod: Pod, nodes: NodesView) -> IntColumn:
        del state, pod
        return np.zeros(len(nodes), np.int64)

    def node_signature(self, pod: Pod) -> Hashable | None:
        return None if pod.spec.resource_claims else ()

    def events(self) -> Sequence[EventRegistration]:
        # What a pod asks for by its own fields stays so as long as it is pending.
        return ()


def _new(args: object, handle: Handle) -> DynamicResources:
    del args, handle
    return DynamicResources()


FAIL_SAFE: Mapping[str, PluginFactory] = {DynamicResources.name: _new}
"""Name -> factory of every default plugin that is not built yet."""
