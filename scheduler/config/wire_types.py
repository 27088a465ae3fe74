"""The configuration as a file has it: everything optional, nothing defaulted, args still raw.

`WireConfiguration` is what the decoder fills; `CompletedProfile` is a profile between defaulting and validation, when
``pluginConfig`` is still a list because repeated entries have to be found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from scheduler.config.types import ClientConnection, Extender, LeaderElection, Plugins
from scheduler.config.wire import Int32, Int64, Part, Raw

__all__ = ["CompletedPluginConfig", "CompletedProfile", "WireConfiguration", "WirePluginConfig", "WireProfile"]


class WirePluginConfig(Part, frozen=True):
    """One ``pluginConfig`` entry."""

    name: str = ""
    args: Raw = None


class WireProfile(Part, frozen=True):
    """One ``profiles`` entry."""

    scheduler_name: str | None = None
    percentage_of_nodes_to_score: Int32 | None = None
    plugins: Plugins | None = None
    plugin_config: tuple[WirePluginConfig, ...] = ()


class WireConfiguration(Part, frozen=True):
    """The file without ``apiVersion`` and ``kind``."""

    parallelism: Int32 | None = None
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: bool | None = None
    enable_contention_profiling: bool | None = None
    percentage_of_nodes_to_score: Int32 | None = None
    pod_initial_backoff_seconds: Int64 | None = None
    pod_max_backoff_seconds: Int64 | None = None
    profiles: tuple[WireProfile, ...] = ()
    extenders: tuple[Extender, ...] = ()
    delay_cache_until_active: bool = False


@dataclass(frozen=True, slots=True)
class CompletedPluginConfig:
    """A plugin's decoded and completed args."""

    name: str
    args: Any

    def shown_args(self) -> object:
        """Return the args as plain data, for messages."""
        return msgspec.to_builtins(self.args) if isinstance(self.args, msgspec.Struct) else self.args


@dataclass(frozen=True, slots=True)
class CompletedProfile:
    """A profile with all defaults filled in."""

    scheduler_name: str
    percentage_of_nodes_to_score: int | None
    plugins: Plugins
    plugin_config: tuple[CompletedPluginConfig, ...]
