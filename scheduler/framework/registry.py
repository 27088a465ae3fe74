"""Registry: plugin names and where the plugins come from.

In-tree plugins are handed in as a table. Third-party plugins are entry points of the group ``podium.plugins`` of
installed distributions (``MyPlugin = my_package.plugin:MyPlugin``); reading their names imports nothing, an entry point
is loaded when a profile names it. A name that two sources offer is refused when a profile names it, with both sources,
because nothing says which one was meant.

A factory is any callable ``factory(args, handle) -> Plugin``; a plugin class with such a constructor is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from scheduler.api import Handle, Plugin, PluginFactory
from scheduler.telemetry.logging import get_logger

__all__ = ["ENTRY_POINT_GROUP", "IN_TREE", "Origin", "Registry", "RegistryError"]

ENTRY_POINT_GROUP = "podium.plugins"
IN_TREE = "podium (in-tree)"

_log = get_logger(__name__)


class RegistryError(Exception):
    """A plugin cannot be had: offered twice, not importable, its factory failed, or it is no plugin."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a plugin comes from.

    Attributes:
        distribution: name of the installed distribution, or ``IN_TREE``.
        version: its version; "" in-tree.
        target: ``module:attribute``; "" in-tree.
    """

    distribution: str
    version: str = ""
    target: str = ""

    def __str__(self) -> str:
        text = f"{self.distribution} {self.version}".rstrip()
        return f"{text} ({self.target})" if self.target else text


class Registry:
    """Knows every plugin by name, loads only what is asked for."""

    def __init__(self, in_tree: Mapping[str, PluginFactory], entry_points: Iterable[metadata.EntryPoint] = ()) -> None:
        self._factories = dict(in_tree)
        self._origins: dict[str, list[Origin]] = {name: [Origin(IN_TREE)] for name in in_tree}
        self._entry_points: dict[str, metadata.EntryPoint] = {}
        for entry_point in entry_points:
            self._offer(entry_point)

    @classmethod
    def installed(cls, in_tree: Mapping[str, PluginFactory]) -> Registry:
        """Return a registry of the in-tree plugins and of all installed distributions."""
        return cls(in_tree, metadata.entry_points(group=ENTRY_POINT_GROUP))

    def _offer(self, entry_point: metadata.EntryPoint) -> None:
        dist = entry_point.dist
        origin = (
            Origin(dist.name, dist.version, entry_point.value) if dist else Origin("unknown", "", entry_point.value)
        )
        origins = self._origins.setdefault(entry_point.name, [])
        if origin not in origins:  # one distribution may be seen twice, by two entries of sys.path
            origins.append(origin)
        self._entry_points.setdefault(entry_point.name, entry_point)

    def __contains__(self, name: str) -> bool:
        return name in self._origins

    @property
    def names(self) -> list[str]:
        """Return all names on offer, sorted."""
        return sorted(self._origins)

    def origin(self, name: str) -> Origin:
        """Return where the plugin comes from.

        Raises:
            RegistryError: nobody offers the name, or more than one does.
        """
        origins = self._origins.get(name, [])
        if not origins:
            raise RegistryError(f'plugin "{name}" does not exist')
        if len(origins) > 1:
            sources = " and ".join(str(origin) for origin in origins)
            raise RegistryError(f'a plugin named "{name}" is offered by {sources}: uninstall all but one')
        return origins[0]

    def make(self, name: str, args: Any, handle: Handle) -> Plugin:
        """Load the plugin if need be, and make an instance for one profile.

        Raises:
            RegistryError: the text says what is wrong and which distribution it is about.
        """
        origin = self.origin(name)
        factory = self._factory(name, origin)
        try:
            plugin = factory(args, handle)
        except Exception as error:
            raise RegistryError(f'initializing plugin "{name}": {_shown(error)}') from error
        return _checked(name, plugin, origin)

    def _factory(self, name: str, origin: Origin) -> PluginFactory:
        factory = self._factories.get(name)
        if factory is None:
            factory = self._factories[name] = self._load(name, origin)
        return factory

    def _load(self, name: str, origin: Origin) -> PluginFactory:
        try:
            loaded = self._entry_points[name].load()
        except Exception as error:
            raise RegistryError(f'loading plugin "{name}" of {origin}: {_shown(error)}') from error
        if not callable(loaded):
            raise RegistryError(f'plugin "{name}" of {origin}: a {type(loaded).__name__} is no plugin factory')
        _log.info("plugin loaded", plugin=name, distribution=origin.distribution, version=origin.version)
        factory: PluginFactory = loaded
        return factory


def _checked(name: str, plugin: object, origin: Origin) -> Plugin:
    if not isinstance(plugin, Plugin):
        raise RegistryError(
            f'initializing plugin "{name}": the factory of {origin} made a {type(plugin).__name__}, '
            "which does not inherit from scheduler.api.Plugin"
        )
    own_name = getattr(plugin, "name", None)
    if own_name != name:
        raise RegistryError(f'initializing plugin "{name}": the plugin of {origin} calls itself {own_name!r}')
    return plugin


def _shown(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
