"""Profiles: from a configuration to one Framework for each schedulerName.

Every plugin that a profile enables anywhere is made once, then the multiPoint rules (``config.expand``) decide at which
points it runs, asking the instances' base classes. All profiles share one queue, so they must agree on its order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from scheduler.api import Handle, Plugin
from scheduler.config.errors import ConfigError, Problem
from scheduler.config.expand import ExpandedPlugins, expand
from scheduler.config.types import Profile, SchedulerConfiguration
from scheduler.framework.binding import RunBlocking, run_inline
from scheduler.framework.guard import DEFAULT_BUDGET_S
from scheduler.framework.metrics import FrameworkMetrics
from scheduler.framework.plugin_args import ArgsError
from scheduler.framework.points import takes_part_in
from scheduler.framework.registry import Registry, RegistryError
from scheduler.framework.runtime import Framework, PluginLife
from scheduler.framework.waiting import WaitingPods

__all__ = ["MakeHandle", "args_problem", "build_profiles"]


class OwnHandle(Handle, PluginLife, Protocol):
    """The handle of one plugin of one profile."""


MakeHandle = Callable[[str, str], OwnHandle]
"""``make_handle(profile_name, plugin_name)``."""


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
    problems = [Problem("", text) for text in registry.conflicts]
    for index, profile in enumerate(configuration.profiles):
        name = profile.scheduler_name
        own: dict[str, OwnHandle] = {plugin: make_handle(name, plugin) for plugin in profile.plugins.names()}
        try:
            plugins = _make_plugins(profile, index, registry, own)
            expanded = _expand(profile, plugins)
        except ConfigError as error:
            problems += error.details
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
            handles=list(own.values()),
        )
    problems += [Problem("", text) for text in _different_queue_orders(configuration, frameworks)]
    if not configuration.profiles:
        problems.append(Problem("", "at least one profile is required"))
    if problems:
        for framework in frameworks.values():
            framework.close()
        raise ConfigError(problems)
    _announce(registry, frameworks, metrics)
    for framework in frameworks.values():
        framework.start()
    return frameworks


def _make_plugins(profile: Profile, index: int, registry: Registry, handles: Mapping[str, Handle]) -> dict[str, Plugin]:
    """Make every plugin that the profile enables anywhere; unknown names are left to ``expand`` to report."""
    plugins: dict[str, Plugin] = {}
    problems: list[Problem] = []
    for name in dict.fromkeys(profile.plugins.names()):
        if name in registry:
            try:
                plugins[name] = registry.make(name, profile.plugin_config.get(name), handles[name])
            except ArgsError as error:
                problems.append(args_problem(profile, index, name, error))
            except RegistryError as error:
                where = f"initializing profiles: creating profile for scheduler name {profile.scheduler_name}"
                problems.append(Problem("", f"{where}: {error}"))
    if problems:
        _close(plugins)
        raise ConfigError(problems)
    return plugins


def args_problem(profile: Profile, index: int, name: str, error: ArgsError) -> Problem:
    """Say where in the file the arguments of a plugin do not fit."""
    given = list(profile.plugin_config)  # what the file has comes first, in its order
    entry = f"[{given.index(name)}].args{error.path}" if name in given else ""
    path = f"profiles[{index}].pluginConfig{entry}"
    return Problem(path, f"{path}: plugin {name}: {error}")


def _announce(registry: Registry, frameworks: Mapping[str, Framework], metrics: FrameworkMetrics | None) -> None:
    """Say of each third-party plugin in use where it comes from."""
    if metrics is None:
        return
    for framework in frameworks.values():
        for name, plugin in framework.plugins.items():
            if not registry.is_in_tree(name):
                origin = registry.origin(name)
                metrics.plugin_info(name, origin.distribution, origin.version, plugin.api_version)


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
