"""All pods of a gang get their nodes, or none does."""

from podium_gang.plugin import Gang, GangArgs

__all__ = ["Gang", "GangArgs"]
