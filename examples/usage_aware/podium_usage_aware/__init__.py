"""Pods go to nodes that are little used, as a Prometheus server has measured."""

from podium_usage_aware.plugin import UsageAware, UsageAwareArgs

__all__ = ["UsageAware", "UsageAwareArgs"]
