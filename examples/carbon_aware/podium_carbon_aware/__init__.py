"""Pods go where electricity is clean just now."""

from podium_carbon_aware.plugin import CarbonAware, CarbonAwareArgs

__all__ = ["CarbonAware", "CarbonAwareArgs"]
