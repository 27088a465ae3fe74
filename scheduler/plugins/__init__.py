"""The in-tree plugins; IN_TREE is the one table of them."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.api import PluginFactory
from scheduler.plugins import (
    default_binder,
    default_preemption,
    image_locality,
    inter_pod_affinity,
    node_affinity,
    node_declared_features,
    node_name,
    node_ports,
    node_unschedulable,
    node_volume_limits,
    priority_sort,
    scheduling_gates,
    taint_toleration,
    topology_spread,
    volume_binding,
    volume_restrictions,
    volume_zone,
)
from scheduler.plugins.fail_safe import FAIL_SAFE
from scheduler.plugins.node_resources import balanced, fit

__all__ = ["IN_TREE"]

IN_TREE: Mapping[str, PluginFactory] = {
    scheduling_gates.NAME: scheduling_gates.new,
    priority_sort.NAME: priority_sort.new,
    node_unschedulable.NAME: node_unschedulable.new,
    node_name.NAME: node_name.new,
    taint_toleration.NAME: taint_toleration.new,
    node_affinity.NAME: node_affinity.new,
    node_ports.NAME: node_ports.new,
    fit.NAME: fit.new,
    balanced.NAME: balanced.new,
    image_locality.NAME: image_locality.new,
    topology_spread.NAME: topology_spread.new,
    inter_pod_affinity.NAME: inter_pod_affinity.new,
    volume_restrictions.NAME: volume_restrictions.new,
    node_volume_limits.NAME: node_volume_limits.new,
    volume_binding.NAME: volume_binding.new,
    volume_zone.NAME: volume_zone.new,
    default_preemption.NAME: default_preemption.new,
    default_binder.NAME: default_binder.new,
    node_declared_features.NAME: node_declared_features.new,
    **FAIL_SAFE,
}
"""Kubernetes-style name -> factory."""
