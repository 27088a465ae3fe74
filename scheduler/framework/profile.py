"""Profiles: from a configuration to one Framework for each schedulerName.

Every plugin that a profile enables anywhere is made once, then the multiPoint rules (``config.expand``) decide at which
points it runs, asking the instances' base classes. All profiles share one queue, so they must agree on its order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from scheduler.api import Handle, Plugin
from scheduler.config.errors import ConfigError, Problem
from scheduler.config.expand import ExpandedPlugins, expand
from scheduler.config.options import PluginFaults
from scheduler.config.types import Profile, SchedulerConfiguration
from scheduler.framework.binding import RunBlocking, run_inline
from scheduler.framework.guard import DEFAULT_BUDGET_S
from scheduler.framework.metrics import FrameworkMetrics, NullFrameworkMetrics
from scheduler.framework.plugin_args import ArgsError
from scheduler.framework.points import takes_part_in
from scheduler.framework.registry import Registry, RegistryError
from scheduler.framework.runtime import Framework, PluginLife
from scheduler.framework.shielded import Shields
from scheduler.framework.waiting import WaitingPods

__all__ = ["MakeHandle", "Resolved", "Workshop", "args_problem", "build_profiles"]


class OwnHandle(Handle, PluginLife, Protocol):
    """The handle of one plugin of one profile."""


MakeHandle = Callable[[str, str], OwnHandle]
"""``make_handle(profile_name, plugin_name)``."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """The plugins of a profile as they run.

    Attributes:
        points: plugin names by extension point (snake case), in order; points without a plugin are left out.
        weights: of the Score plugins.
    """

    points: Mapping[str, tuple[str, ...]]
    weights: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """What all frameworks of a process are made with."""

    registry: Registry
    waiting: WaitingPods
    perf_counter: Callable[[], float]
    metrics: FrameworkMetrics | None = None
    run_blocking: RunBlocking = run_inline
    has_extenders: bool = False
    budget_s: float = DEFAULT_BUDGET_S
    faults_of: Callable[[str], PluginFaults] = lambda profile: PluginFaults()  # noqa: ARG005  alike for all

    def build(self, profile: Profile, make_handle: MakeHandle, root: str) -> Framework:
        """Make the plugins of one profile and its framework, which is yet to be started.

        Args:
            profile: completed and validated.
            make_handle: makes the handles of its plugins.
            root: how the reader of a problem finds the profile, as ``profiles[0]``.

        Raises:
            ConfigError: with all problems of the profile; plugins made so far have been closed.
        """
        name = profile.scheduler_name
        handles = {plugin: make_handle(name, plugin) for plugin in profile.plugins.names()}
        plugins = _make_plugins(profile, root, self.registry, handles)
        expanded = _expand(profile, plugins)
        self._announce(plugins)
        return Framework(
            name,
            plugins,
            {point: [ref.name for ref in refs] for point, refs in expanded.points.items()},
            weights={ref.name: ref.weight for ref in expanded.points["score"]},
            waiting=self.waiting,
            perf_counter=self.perf_counter,
            metrics=self.metrics,
            run_blocking=self.run_blocking,
            percentage_of_nodes_to_score=profile.percentage_of_nodes_to_score,
            has_extenders=self.has_extenders,
            budget_s=self.budget_s,
            handles=list(handles.values()),
            shields=self._shields(name, handles),
        )

    def _shields(self, profile: str, handles: Mapping[str, OwnHandle]) -> Shields:
        foreign = {name: handle for name, handle in handles.items() if not self.registry.is_in_tree(name)}
        return Shields(profile, foreign, self.faults_of(profile), self.metrics or NullFrameworkMetrics())

    def _announce(self, plugins: Mapping[str, Plugin]) -> None:
        """Say of each third-party plugin in use where it comes from."""
        for name, plugin in plugins.items():
            if self.metrics is not None and not self.registry.is_in_tree(name):
                origin = self.registry.origin(name)
                self.metrics.plugin_info(name, origin.distribution, origin.version, plugin.api_version)


def build_profiles(
    configuration: SchedulerConfiguration, workshop: Workshop, make_handle: MakeHandle
) -> dict[str, Framework]:
    """Make the plugins and frameworks of all profiles.

    Raises:
        ConfigError: with the problems of all profiles; plugins made so far have been closed.
    """
    frameworks: dict[str, Framework] = {}
    problems = [Problem("", text) for text in workshop.registry.conflicts]
    for index, profile in enumerate(configuration.profiles):
        name = profile.scheduler_name
        try:
            frameworks[name] = workshop.build(profile, make_handle, f"profiles[{index}]")
        except ConfigError as error:
            problems += error.details
    problems += [Problem("", text) for text in _different_queue_orders(configuration, frameworks)]
    if not configuration.profiles:
        problems.append(Problem("", "at least one profile is required"))
    if problems:
        for framework in frameworks.values():
            framework.close()
        raise ConfigError(problems)
    for framework in frameworks.values():
        framework.start()
    return frameworks


def _make_plugins(profile: Profile, root: str, registry: Registry, handles: Mapping[str, Handle]) -> dict[str, Plugin]:
    """Make every plugin that the profile enables anywhere; unknown names are left to ``expand`` to report."""
    plugins: dict[str, Plugin] = {}
    problems: list[Problem] = []
    names = dict.fromkeys(profile.plugins.names())
    for name in names:
        if name in registry:
            try:
                plugins[name] = registry.make(name, profile.plugin_config.get(name), handles[name])
            except ArgsError as error:
                problems.append(args_problem(profile, root, name, error))
            except RegistryError as error:
                problems.append(_in_profile(profile, str(error)))
    if problems:
        _close(plugins)
        raise ConfigError([*problems, *(_in_profile(profile, _unknown(n)) for n in names if n not in registry)])
    return plugins


def args_problem(profile: Profile, root: str, name: str, error: ArgsError) -> Problem:
    """Say where the arguments of a plugin do not fit; ``root`` is the path of the profile."""
    given = list(profile.plugin_config)  # what the file has comes first, in its order
    entry = f"[{given.index(name)}].args{error.path}" if name in given else ""
    path = f"{root}.pluginConfig{entry}"
    return Problem(path, f"{path}: plugin {name}: {error}")


def _unknown(name: str) -> str:
    return f'plugin "{name}" does not exist'


def _in_profile(profile: Profile, problem: str) -> Problem:
    return Problem(
        "", f"initializing profiles: creating profile for scheduler name {profile.scheduler_name}: {problem}"
    )


def _expand(profile: Profile, plugins: Mapping[str, Plugin]) -> ExpandedPlugins:
    def implements(point: str, name: str) -> bool | None:
        plugin = plugins.get(name)
        return None if plugin is None else takes_part_in(plugin, point)

    try:
        return expand(profile, implements)
    except ConfigError as error:
        _close(plugins)
        # parity: upstream names the first problem only; other plugins that do not exist are named besides
        known = error.details[0]
        others = [name for name in dict.fromkeys(profile.plugins.names()) if name not in plugins]
        raise ConfigError(
            [known, *(_in_profile(profile, _unknown(name)) for name in others if f'"{name}"' not in known.text)]
        ) from None


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
