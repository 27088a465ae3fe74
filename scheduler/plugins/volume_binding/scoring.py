"""Scoring by storage: how full chosen volumes, or the places of new ones, would be (gate StorageCapacityScoring).

For each storage class the requested share of the capacity goes through the configured shape; the classes' mean is the
score. Source: ``volumebinding/scorer.go`` and ``VolumeBinding.Score``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from scheduler.api import MAX_NODE_SCORE
from scheduler.config.args import UtilizationShapePoint
from scheduler.model.quantity import parse_quantity_nano, value
from scheduler.plugins.shared.broken_line import line_value
from scheduler.plugins.shared.storage import claim_class, storage_nano
from scheduler.plugins.volume_binding.decisions import PodVolumes

__all__ = ["Shape", "score_volumes", "shape_of"]

Shape = tuple[tuple[int, int], ...]
"""(utilization in per cent, score 0..100), utilization rising."""

_CONFIG_MAX_SCORE = 10
_FULL = 100

_Usage = dict[str, tuple[int, int]]  # storage class -> bytes requested, bytes of capacity


def shape_of(points: Sequence[UtilizationShapePoint]) -> Shape:
    """Return the shape with scores of 0..100 instead of the configuration's 0..10."""
    scale = MAX_NODE_SCORE // _CONFIG_MAX_SCORE
    return tuple((point.utilization, point.score * scale) for point in points)


def score_volumes(shape: Shape, volumes: PodVolumes) -> int:
    """Return 0..100 for the decisions on one node; 0 if there is nothing to judge."""
    usage = _of_bindings(volumes) if volumes.bindings else _of_provisions(volumes)
    if not usage:
        return 0
    total = sum(line_value(shape, _utilization(*amounts)) for amounts in usage.values())
    return math.floor(total / len(usage) + 0.5)  # parity: math.Round, and scores are not negative


def _of_bindings(volumes: PodVolumes) -> _Usage:
    usage: _Usage = {}
    for binding in volumes.bindings:
        name = binding.volume.spec.storage_class_name
        requested, capacity = usage.get(name, (0, 0))
        usage[name] = (
            requested + value(storage_nano(binding.claim.spec.resources.requests)),
            capacity + value(storage_nano(binding.volume.spec.capacity)),
        )
    return usage


def _of_provisions(volumes: PodVolumes) -> _Usage:
    """Return usage by class; all volumes of a class come from the one place that was found."""
    usage: _Usage = {}
    for provision in volumes.provisions:
        if provision.capacity is None:
            continue
        # differs: upstream crashes on a claim that names its class by annotation, or a place without a capacity
        name = claim_class(provision.claim)
        requested, _ = usage.get(name, (0, 0))
        capacity = value(parse_quantity_nano(provision.capacity.capacity or 0))
        usage[name] = requested + value(storage_nano(provision.claim.spec.resources.requests)), capacity
    return usage


def _utilization(requested: int, capacity: int) -> int:
    return _FULL if capacity == 0 or requested > capacity else requested * _FULL // capacity
