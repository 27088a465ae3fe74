"""The default plugins: their order, their weights and the extension points they take part in.

Order and weights: ``pkg/scheduler/apis/config/v1/default_plugins.go`` 1.36. Names of plugins are facts of the
configuration here; the classes that implement them are found by ``framework.registry``.
"""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.config.gates import FeatureGates
from scheduler.config.types import PluginRef, Plugins, PluginSet

__all__ = ["KNOWN_POINTS", "default_plugins"]

_DEFAULTS = (
    PluginRef("SchedulingGates"),
    PluginRef("PrioritySort"),
    PluginRef("NodeUnschedulable"),
    PluginRef("NodeName"),
    PluginRef("TaintToleration", 3),
    PluginRef("NodeAffinity", 2),
    PluginRef("NodePorts"),
    PluginRef("NodeResourcesFit", 1),
    PluginRef("VolumeRestrictions"),
    PluginRef("NodeVolumeLimits"),
    PluginRef("VolumeBinding"),
    PluginRef("VolumeZone"),
    PluginRef("PodTopologySpread", 2),
    PluginRef("InterPodAffinity", 2),
    # before DefaultPreemption: freeing an idle claim is better than evicting a pod
    PluginRef("DynamicResources", 2),
    PluginRef("DefaultPreemption"),
    PluginRef("NodeResourcesBalancedAllocation", 1),
    PluginRef("ImageLocality", 1),
    PluginRef("DefaultBinder"),
)

KNOWN_POINTS: Mapping[str, frozenset[str]] = {
    name: frozenset(points.split())
    for name, points in {
        "SchedulingGates": "pre_enqueue",
        "PrioritySort": "queue_sort",
        "NodeUnschedulable": "filter",
        "NodeName": "filter",
        "TaintToleration": "filter pre_score score",
        "NodeAffinity": "pre_filter filter pre_score score",
        "NodePorts": "pre_filter filter",
        "NodeResourcesFit": "pre_filter filter pre_score score",
        "VolumeRestrictions": "pre_filter filter",
        "NodeVolumeLimits": "pre_filter filter",
        "VolumeBinding": "pre_filter filter pre_score score reserve pre_bind",
        "VolumeZone": "pre_filter filter",
        "PodTopologySpread": "pre_filter filter pre_score score",
        "InterPodAffinity": "pre_filter filter pre_score score",
        "DynamicResources": "pre_enqueue pre_filter filter post_filter score reserve pre_bind",
        "DefaultPreemption": "pre_enqueue post_filter",
        "NodeResourcesBalancedAllocation": "pre_score score",
        "ImageLocality": "score",
        "DefaultBinder": "bind",
        "NodeDeclaredFeatures": "pre_filter filter",
    }.items()
}
"""Plugins of Kubernetes that Podium has, with their extension points: enough to check a file without an engine."""


def default_plugins(gates: FeatureGates) -> Plugins:
    """Return the plugins of a profile that says nothing about plugins: all of them in ``multi_point``."""
    declared = (PluginRef("NodeDeclaredFeatures"),) if gates.enabled("NodeDeclaredFeatures") else ()
    # differs: upstream appends GangScheduling and the placement plugins behind their alpha gates; Podium has neither
    return Plugins(multi_point=PluginSet(enabled=_DEFAULTS + declared))
