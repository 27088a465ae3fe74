"""From a profile's plugin sets to the plugins of every extension point (spec section 5.4), as a pure function.

The caller says which plugin implements which point; this module knows the rules of precedence, the checks and
upstream's texts for what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from scheduler.config.errors import ConfigError, go_value
from scheduler.config.merge import ALL
from scheduler.config.types import POINTS, WIRE_POINTS, PluginRef, Profile

__all__ = ["ExpandedPlugins", "Implements", "expand"]

Implements = Callable[[str, str], bool | None]
"""``implements(point, plugin_name)``: None if there is no such plugin. ``point`` is one of ``config.types.POINTS``."""

_WEIGHTED_POINTS = ("score", "placement_score")
_MAX_SCORE = 100
_MAX_TOTAL_SCORE = 2**63 - 1


@dataclass(frozen=True, slots=True)
class ExpandedPlugins:
    """The plugins that run.

    Attributes:
        points: for every extension point its plugins in order of execution; for ``score`` with weights of at least
            1 where none was given, elsewhere with weight 0.
    """

    points: Mapping[str, tuple[PluginRef, ...]]

    def names(self) -> frozenset[str]:
        """Return the names of all plugins that run somewhere."""
        return frozenset(ref.name for refs in self.points.values() for ref in refs)


def expand(profile: Profile, implements: Implements) -> ExpandedPlugins:
    """Resolve ``multi_point``, precedence and weights of a profile.

    Raises:
        ConfigError: a plugin is unknown, at the wrong point or there twice, a needed one is missing, or the scores
            could overflow; with upstream's text, which is about the first problem.
    """
    try:
        points = {point: _expand_point(profile, point, implements) for point in _UPSTREAM_ORDER}
        _check_needed(profile, points)
        for point in _WEIGHTED_POINTS:
            points[point] = _weighted(profile, point, points[point], implements)
    except ConfigError as error:
        reason = error.problems[0]
        raise ConfigError(
            [f"initializing profiles: creating profile for scheduler name {profile.scheduler_name}: {reason}"]
        ) from None
    return ExpandedPlugins({point: points[point] for point in POINTS})


# parity: the order in which upstream walks the points decides which problem is named first
_UPSTREAM_ORDER = (
    "pre_filter", "filter", "post_filter", "reserve", "pre_score", "score", "pre_bind", "bind", "post_bind", "permit",
    "pre_enqueue", "queue_sort", "placement_generate", "placement_score",
)  # fmt: skip


def _type_name(point: str) -> str:
    wire = WIRE_POINTS[point]
    return f"{wire[0].upper()}{wire[1:]}Plugin"


def _expand_point(profile: Profile, point: str, implements: Implements) -> tuple[PluginRef, ...]:
    specific = profile.plugins.at(point)
    _check_specific(point, specific.enabled, implements)
    enabled = [ref.name for ref in specific.enabled]
    disabled = {ref.name for ref in specific.disabled}
    if ALL in disabled:
        return tuple(PluginRef(name) for name in enabled)
    overridden, added = _from_multi_point(profile, point, set(enabled), disabled, implements)
    first = [name for name in enabled if name in overridden]
    last = [name for name in enabled if name not in overridden]
    return tuple(PluginRef(name) for name in [*first, *added, *last])


def _check_specific(point: str, enabled: Iterable[PluginRef], implements: Implements) -> None:
    seen: set[str] = set()
    for ref in enabled:
        takes_part = implements(point, ref.name)
        if takes_part is None:
            raise ConfigError([f"{_type_name(point)} {go_value(ref.name)} does not exist"])
        if not takes_part:
            raise ConfigError([f"plugin {go_value(ref.name)} does not extend {_type_name(point)} plugin"])
        if ref.name in seen:
            raise ConfigError([_registered_twice(ref.name, point)])
        seen.add(ref.name)


def _from_multi_point(
    profile: Profile, point: str, enabled: set[str], disabled: set[str], implements: Implements
) -> tuple[set[str], list[str]]:
    overridden: set[str] = set()
    added: list[str] = []
    for ref in profile.plugins.multi_point.enabled:
        takes_part = implements(point, ref.name)
        if takes_part is None:
            raise ConfigError([f"{_type_name(point)} {go_value(ref.name)} does not exist"])
        if not takes_part or ref.name in disabled:
            continue
        if ref.name in enabled:
            overridden.add(ref.name)
        elif ref.name in added:
            raise ConfigError([_registered_twice(ref.name, point)])
        else:
            added.append(ref.name)
    return overridden, added


def _registered_twice(name: str, point: str) -> str:
    return f"plugin {go_value(name)} already registered as {go_value(_type_name(point))}"


def _check_needed(profile: Profile, points: Mapping[str, tuple[PluginRef, ...]]) -> None:
    name = go_value(profile.scheduler_name)
    count = len(points["queue_sort"])
    if count != 1:
        raise ConfigError(
            [f"only one queue sort plugin required for profile with scheduler name {name}, but got {count}"]
        )
    if not points["bind"]:
        raise ConfigError([f"at least one bind plugin is needed for profile with scheduler name {name}"])
    if len(points["placement_generate"]) > 1:
        raise ConfigError([f"at most one placement generate plugin is allowed for profile with scheduler name {name}"])


def _weighted(
    profile: Profile, point: str, refs: tuple[PluginRef, ...], implements: Implements
) -> tuple[PluginRef, ...]:
    """Give each plugin its weight: the point's own entry wins over ``multi_point``, nothing or 0 counts as 1."""
    weights: dict[str, int] = {}
    total = 0
    for ref in profile.plugins.at(point).enabled + profile.plugins.multi_point.enabled:
        if ref.name in weights or not implements(point, ref.name):
            continue
        weights[ref.name] = ref.weight or 1
        if weights[ref.name] * _MAX_SCORE > _MAX_TOTAL_SCORE - total:
            kind = "score plugins" if point == "score" else "placement score plugins"
            raise ConfigError([f"{kind}: total score of Score plugins could overflow"])
        total += weights[ref.name] * _MAX_SCORE
    return tuple(PluginRef(ref.name, weights[ref.name]) for ref in refs)
