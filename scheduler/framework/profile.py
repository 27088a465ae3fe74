"""Profiles: from a configuration to one Framework for each schedulerName.

Every plugin that a profile enables anywhere is made once, then the multiPoint rules (``config.expand``) decide at which
points it runs, asking the instances' base classes. All profiles share one queue, so they must agree on its order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from scheduler.api import Handle, Plugin
from scheduler.config.errors import ConfigError
from scheduler.config.expand import ExpandedPlugins, expand
from scheduler.config.types import Profile, SchedulerConfiguration
from scheduler.framework.binding import RunBlocking, run_inline
from scheduler.framework.guard import DEFAULT_BUDGET_S
from scheduler.framework.metrics import FrameworkMetrics
from scheduler.framework.points import takes_part_in
from scheduler.framework.registry import Registry, RegistryError
from scheduler.framework.runtime import Framework
from scheduler.framework.waiting import WaitingPods

__all__ = ["MakeHandle", "build_profiles"]

MakeHandle = Callable[[str], Handle]
"""``make_handle(profile_name)``."""


def build_profiles(
    configuration: SchedulerConfiguration,
    registry: Registry,
    make_handle: MakeHandle,
    *,
    waiting: WaitingPods,
    perf_counter: Callable[[], float],
    metrics: FrameworkMetrics | None = None,
    run_blocking: RunBlocking = run_inline,
    budget_s: float = DEFAULT_BUDGET_S,
) -> dict[str, Framework]:
    """Make the plugins and frameworks of all profiles.

    Raises:
        ConfigError: with the problems of all profiles; plugins made so far have been closed.
    """
    frameworks: dict[str, Framework] = {}
    problems: list[str] = []
    for profile in configuration.profiles:
        name = profile.scheduler_name
        try:
            plugins = _make_plugins(profile, registry, make_handle(name))
            expanded = _expand(profile, plugins)
        except ConfigError as error:
            problems += error.problems
            continue
        frameworks[name] = Framework(
            name,
            plugins,
            {point: [ref.name for ref in refs] for point, refs in expanded.points.items()},
            weights={ref.name: ref.weight for ref in expanded.points["score"]},
            waiting=waiting,
            perf_counter=perf_counter,
            metrics=metrics,
            run_blocking=run_blocking,
            percentage_of_nodes_to_score=profile.percentage_of_nodes_to_score,
            has_extenders=bool(configuration.extenders),
            budget_s=budget_s,
        )
    problems += _different_queue_orders(configuration, frameworks)
    if not configuration.profiles:
        problems.append("at least one profile is required")
    if problems:
        for framework in frameworks.values():
            framework.close()
        raise ConfigError(problems)
    return frameworks


def _make_plugins(profile: Profile, registry: Registry, handle: Handle) -> dict[str, Plugin]:
    """Make every plugin that the profile enables anywhere; unknown names are left to ``expand`` to report."""
    plugins: dict[str, Plugin] = {}
    try:
        for name in profile.plugins.names():
            if name not in plugins and name in registry:
                plugins[name] = registry.make(name, profile.plugin_config.get(name), handle)
    except RegistryError as error:
        _close(plugins)
        text = f"initializing profiles: creating profile for scheduler name {profile.scheduler_name}: {error}"
        raise ConfigError([text]) from error
    return plugins


def _expand(profile: Profile, plugins: Mapping[str, Plugin]) -> ExpandedPlugins:
    def implements(point: str, name: str) -> bool | None:
        plugin = plugins.get(name)
        return None if plugin is None else takes_part_in(plugin, point)

    try:
        return expand(profile, implements)
    except ConfigError:
        _close(plugins)
        raise


def _close(plugins: Mapping[str, Plugin]) -> None:
    for plugin in plugins.values():
        plugin.close()


def _different_queue_orders(configuration: SchedulerConfiguration, frameworks: Mapping[str, Framework]) -> list[str]:
    problems: list[str] = []
    first: tuple[str, Any] | None = None
    for profile in configuration.profiles:
        framework = frameworks.get(profile.scheduler_name)
        if framework is None:
            continue
        plugin = framework.points["queue_sort"][0]
        args = profile.plugin_config.get(plugin)
        if first is None:
            first = (plugin, args)
        elif first[0] != plugin:
            problems.append(
                f"initializing profiles: different queue sort plugins for profile "
                f'"{profile.scheduler_name}": "{plugin}", first: "{first[0]}"'
            )
        elif first[1] != args:
            problems.append(
                f'initializing profiles: different queue sort plugin args for profile "{profile.scheduler_name}"'
            )
    return problems
