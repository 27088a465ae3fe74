"""CarbonAware: nodes score by how clean the electricity of their zone is just now.

The figures are read in the background, so no decision waits for them, and change between two decisions. Without fresh
figures all nodes score alike.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Mapping
from typing import Annotated

import msgspec
import numpy as np

from podium_carbon_aware.source import SourceError, read_intensities
from scheduler.api import (
    MAX_NODE_SCORE,
    CycleState,
    Handle,
    IntColumn,
    NodesView,
    NodeView,
    PluginArgs,
    Pod,
    PreScorePlugin,
    ScorePlugin,
    Status,
)

__all__ = ["CarbonAware", "CarbonAwareArgs"]

_log = logging.getLogger(__name__)
_UNKNOWN = -1
_Positive = Annotated[float, msgspec.Meta(gt=0)]


class CarbonAwareArgs(PluginArgs):
    """What ``pluginConfig`` may say.

    Attributes:
        source: a path, or a URL of http or https, of a JSON object: zone → grams of CO2 per kWh.
        refresh_seconds: how often it is read.
        stale_after_seconds: figures older than this count for nothing.
        timeout_seconds: longest wait for the server.
        zone_label: the node label that holds the zone.
    """

    source: Annotated[str, msgspec.Meta(min_length=1)]
    refresh_seconds: Annotated[float, msgspec.Meta(ge=0.1)] = 60.0
    stale_after_seconds: _Positive = 600.0
    timeout_seconds: _Positive = 5.0
    zone_label: str = "topology.kubernetes.io/zone"


class CarbonAware(PreScorePlugin, ScorePlugin):
    """See the module."""

    name = "CarbonAware"
    api_version = 1
    Args = CarbonAwareArgs

    def __init__(self, args: CarbonAwareArgs, handle: Handle) -> None:
        """Make it; the first figures come soon."""
        self._args = args
        self._handle = handle
        self._figures: Mapping[str, float] = {}
        self._version = 0
        self._read_at_s: float | None = None
        self._reads = handle.metrics.counter("carbon_aware_reads_total", "Reads of the figures, by result.", ["result"])
        self._stale = handle.metrics.gauge("carbon_aware_stale", "1 while there are no fresh figures.")
        self._stale.set(1)
        handle.run_in_background(self._refresh, every_s=args.refresh_seconds)

    # --- in the background -------------------------------------------------------------------------------------------

    def _refresh(self) -> None:
        try:
            figures = read_intensities(self._args.source, self._args.timeout_seconds)
        except SourceError as error:
            self._reads.labels("failed").inc()
            _log.warning("carbon figures could not be read: %s", error)
            self._handle.call_soon_threadsafe(self._look_at_the_clock)
        else:
            self._reads.labels("ok").inc()
            self._handle.call_soon_threadsafe(lambda: self._take(figures))

    # --- between two decisions ---------------------------------------------------------------------------------------

    def _take(self, figures: Mapping[str, float]) -> None:
        self._read_at_s = self._handle.clock.now()
        self._stale.set(0)
        if figures != self._figures:
            self._figures = figures
            self._version += 1

    def _look_at_the_clock(self) -> None:
        """Forget figures that are too old."""
        is_old = self._read_at_s is None or (
            self._handle.clock.now() - self._read_at_s >= self._args.stale_after_seconds
        )
        if is_old and self._figures:
            self._figures = {}
            self._version += 1
            self._stale.set(1)

    # --- decisions ---------------------------------------------------------------------------------------------------

    def node_signature(self, pod: Pod) -> Hashable | None:
        """Say that all pods see the same until the figures change."""
        del pod
        return self._version

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodesView) -> Status | None:
        """Step aside without fresh figures."""
        del state, pod, nodes
        return None if self._figures else Status.skip()

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        """Return the grams of the node's zone."""
        del state, pod
        grams = self._figures.get(node.labels.get(self._args.zone_label, ""))
        return _UNKNOWN if grams is None else round(grams)

    def normalize(self, state: CycleState, pod: Pod, nodes: NodesView, scores: IntColumn) -> IntColumn:
        """Give the cleanest node 100, the dirtiest 0, and the middle to those of unknown zones."""
        del state, pod, nodes
        known = scores[scores != _UNKNOWN]
        if not len(known):
            return np.full_like(scores, MAX_NODE_SCORE // 2)
        lowest, highest = int(known.min()), int(known.max())
        scaled = MAX_NODE_SCORE * (highest - scores) // max(highest - lowest, 1)
        return np.where(scores == _UNKNOWN, MAX_NODE_SCORE // 2, scaled)
