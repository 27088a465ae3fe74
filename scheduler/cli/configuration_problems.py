"""What else keeps the daemon from starting with a configuration that could be read: its election and its plugins.

A module of its own since it loads every plugin and NumPy: what is wrong with a file that cannot be read is said without
them, in a third of the time.
"""

from __future__ import annotations

from collections.abc import Iterator

from scheduler.config.default_plugins import KNOWN_POINTS
from scheduler.config.errors import ConfigError, Problem
from scheduler.config.expand import expand
from scheduler.config.types import LeaderElection, Profile, SchedulerConfiguration
from scheduler.framework.plugin_args import ArgsError
from scheduler.framework.points import takes_part_in
from scheduler.framework.profile import args_problem
from scheduler.framework.registry import ENTRY_POINT_GROUP as PLUGIN_GROUP
from scheduler.framework.registry import Registry, RegistryError
from scheduler.kube.lease import LeaseConfig, LeaseConfigError
from scheduler.plugins import IN_TREE

__all__ = ["configuration_problems", "installed_plugins"]


def installed_plugins() -> Registry:
    """Return Podium's plugins and those that installed distributions offer; imports none of the latter."""
    return Registry.installed(IN_TREE)


def configuration_problems(configuration: SchedulerConfiguration, registry: Registry) -> Iterator[Problem]:
    """Yield everything that the daemon would end with, of a configuration whose fields are valid.

    Args:
        configuration: as it was read.
        registry: holds the plugins that could be loaded; those that the configuration names are.
    """
    yield from _election_problems(configuration.leader_election)
    yield from _plugin_problems(configuration, registry)


def _election_problems(election: LeaderElection) -> Iterator[Problem]:
    """Yield what kube-scheduler's checks of a file let pass, and the elector refuses at the start."""
    if not election.leader_elect:
        return
    try:
        LeaseConfig(
            identity="check-config",
            lease_duration_s=election.lease_duration_s,
            renew_deadline_s=election.renew_deadline_s,
            retry_period_s=election.retry_period_s,
        )
    except LeaseConfigError as error:
        yield Problem("leaderElection", f"leaderElection: {error}")


def _plugin_problems(configuration: SchedulerConfiguration, registry: Registry) -> Iterator[Problem]:
    """Load what every profile names, decode its arguments and expand the profile, as the daemon will."""
    yield from (Problem("", text) for text in registry.conflicts)
    for index, profile in enumerate(configuration.profiles):
        found = list(_load_problems(profile, index, registry))
        yield from found
        if not found:
            try:
                expand(profile, lambda point, name: _implements(registry, point, name))
            except ConfigError as error:
                if all(_points_are_known(registry, name) for name in profile.plugins.names()):
                    path = f"profiles[{index}].plugins"
                    yield Problem(path, f"{path}: {error.problems[0]}")


def _load_problems(profile: Profile, index: int, registry: Registry) -> Iterator[Problem]:
    path = f"profiles[{index}].plugins"
    for name in dict.fromkeys(profile.plugins.names()):
        if name in KNOWN_POINTS:
            continue
        if name not in registry:
            text = f'plugin "{name}" is neither part of Podium nor offered by an installed package ({PLUGIN_GROUP})'
            yield Problem(path, f"{path}: {text}")
            continue
        try:
            registry.args(name, profile.plugin_config.get(name))
        except ArgsError as error:
            yield args_problem(profile, f"profiles[{index}]", name, error)
        except RegistryError as error:
            yield Problem(path, f"{path}: {error}")


def _points_are_known(registry: Registry, name: str) -> bool:
    return name in KNOWN_POINTS or registry.made(name) is not None


def _implements(registry: Registry, point: str, name: str) -> bool:
    """Say whether the plugin takes part; of one whose class nobody knows before it is made the best is assumed."""
    if name in KNOWN_POINTS:
        return point in KNOWN_POINTS[name]
    made = registry.made(name)
    return made is None or takes_part_in(made, point)
