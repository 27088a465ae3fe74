"""Registry: plugin names and where the plugins come from.

In-tree plugins are handed in as a table. Third-party plugins are entry points of the group ``podium.plugins`` of
installed distributions (``MyPlugin = my_package.plugin:MyPlugin``); reading their names imports nothing, an entry point
is loaded when a profile names it. A name that two sources offer is refused at start, with both sources, because
nothing says which one was meant.

A factory is any callable ``factory(args, handle) -> Plugin``; a plugin class with such a constructor is one.
"""

from __future__ import annotations

import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from scheduler.api import API_VERSION, Handle, Plugin, PluginArgs, PluginFactory
from scheduler.framework.plugin_args import decode_args, loose_part
from scheduler.telemetry.logging import get_logger

__all__ = ["ENTRY_POINT_GROUP", "HANDED_IN", "IN_TREE", "Origin", "Registry", "RegistryError"]

ENTRY_POINT_GROUP = "podium.plugins"
IN_TREE = "podium (in-tree)"
HANDED_IN = "this process"

_log = get_logger(__name__)


class RegistryError(Exception):
    """A plugin cannot be had: offered twice, not importable, its factory failed, or it is no plugin."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a plugin comes from.

    Attributes:
        distribution: name of the installed distribution, ``IN_TREE``, or ``HANDED_IN`` (a test's own).
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

    def __init__(
        self,
        in_tree: Mapping[str, PluginFactory],
        entry_points: Iterable[metadata.EntryPoint] = (),
        *,
        handed_in: Mapping[str, PluginFactory] | None = None,
    ) -> None:
        """Take note of what there is.

        Args:
            in_tree: Podium's own plugins.
            entry_points: those of installed distributions.
            handed_in: a third party's plugins that are not installed; they take the place of installed ones.
        """
        handed_in = handed_in or {}
        self._in_tree = frozenset(in_tree) - handed_in.keys()
        self._given: dict[str, PluginFactory] = {**in_tree, **handed_in}
        self._loaded: dict[str, PluginFactory] = {}
        self._made: dict[str, type[Plugin] | None] = {}
        self._origins: dict[str, list[Origin]] = {name: [Origin(IN_TREE)] for name in in_tree}
        self._origins |= {name: [Origin(HANDED_IN)] for name in handed_in}
        self._entry_points: dict[str, metadata.EntryPoint] = {}
        self._failed: dict[str, RegistryError] = {}
        for entry_point in entry_points:
            if entry_point.name not in handed_in:
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

    @property
    def conflicts(self) -> list[str]:
        """Return a sentence for every name that more than one source offers."""
        return [_conflict(name, self._origins[name]) for name in self.names if len(self._origins[name]) > 1]

    def is_in_tree(self, name: str) -> bool:
        """Say whether the plugin is one of Podium's own."""
        return name in self._in_tree

    def origin(self, name: str) -> Origin:
        """Return where the plugin comes from.

        Raises:
            RegistryError: nobody offers the name, or more than one does.
        """
        origins = self._origins.get(name, [])
        if not origins:
            raise RegistryError(f'plugin "{name}" does not exist')
        if len(origins) > 1:
            raise RegistryError(_conflict(name, origins))
        return origins[0]

    def load(self, name: str) -> PluginFactory:
        """Return the plugin's factory, importing it if need be.

        Raises:
            RegistryError: it cannot be had, or was written for another version of the interface.
        """
        origin = self.origin(name)
        if name in self._failed:
            raise self._failed[name]
        factory = self._loaded.get(name)
        if factory is None:
            factory = self._given.get(name) or self._import(name, origin)
            made = _class_made_by(factory)
            if made is not None:
                _check_class(name, made, origin)
            self._loaded[name], self._made[name] = factory, made
        return factory

    def made(self, name: str) -> type[Plugin] | None:
        """Return the class of a plugin; None if its factory is a function that does not say.

        Raises:
            RegistryError: the plugin cannot be had.
        """
        self.load(name)
        return self._made[name]

    def is_loaded(self, name: str) -> bool:
        """Say whether nothing is left to be imported for the plugin; so it is for unknown ones."""
        return name not in self or name in self._given or name in self._loaded

    def preload(self, name: str) -> None:
        """Import what the plugin needs, which may take long; any thread.

        If that fails, it is remembered for ``make`` to say, so that this does not try again itself.
        """
        self._failed.pop(name, None)
        try:
            self.load(name)
        except RegistryError as error:
            if name in self:
                self._failed[name] = error

    def args(self, name: str, args: Any) -> Any:
        """Return the plugin's arguments as the type that it names; as they are if it names none.

        Raises:
            RegistryError: the plugin cannot be had.
            ArgsError: they do not fit.
        """
        kind = getattr(self.made(name), "Args", None)
        return args if kind is None or isinstance(args, kind) else decode_args(kind, args)

    def make(self, name: str, args: Any, handle: Handle) -> Plugin:
        """Load the plugin if need be, and make an instance for one profile.

        Raises:
            RegistryError: the text says what is wrong and which distribution it is about.
            ArgsError: the arguments do not fit.
        """
        factory, decoded = self.load(name), self.args(name, args)
        try:
            plugin = factory(decoded, handle)
        except Exception as error:
            raise RegistryError(f'initializing plugin "{name}": {_shown(error)}') from error
        return _checked(name, plugin, self.origin(name))

    def _import(self, name: str, origin: Origin) -> PluginFactory:
        try:
            loaded = self._entry_points[name].load()
        except (Exception, SystemExit) as error:  # a package may call sys.exit() when it is imported
            raise RegistryError(f'loading plugin "{name}" of {origin}: {_shown(error)}') from error
        if not callable(loaded):
            raise RegistryError(f'plugin "{name}" of {origin}: a {type(loaded).__name__} is no plugin factory')
        _log.info("plugin loaded", plugin=name, distribution=origin.distribution, version=origin.version)
        factory: PluginFactory = loaded
        return factory


def _class_made_by(factory: PluginFactory) -> type[Plugin] | None:
    """Return the class of the plugins that a factory makes, or None if a function does not say."""
    made: object = factory
    if not isinstance(factory, type):
        try:
            made = typing.get_type_hints(factory).get("return")
        except (NameError, TypeError, AttributeError):  # annotations that mean something else
            return None
    return made if isinstance(made, type) and issubclass(made, Plugin) else None


def _conflict(name: str, origins: Iterable[Origin]) -> str:
    sources = " and ".join(str(origin) for origin in origins)
    return f'a plugin named "{name}" is offered by {sources}: uninstall all but one'


def _check_class(name: str, made: type[Plugin], origin: Origin) -> None:
    about = f'plugin "{name}" of {origin}'
    if made.api_version != API_VERSION:
        raise RegistryError(
            f"{about} was written for version {made.api_version!r} of scheduler.api, this is version {API_VERSION}: "
            "install a version of it, or of Podium, that goes with the other"
        )
    if made.Args is None:
        return
    if not (isinstance(made.Args, type) and issubclass(made.Args, PluginArgs)):
        raise RegistryError(f"{about}: its Args must inherit from scheduler.api.PluginArgs")
    try:
        loose = loose_part(made.Args)
    except Exception as error:  # types that are imported for type checkers only, or that msgspec does not know
        raise RegistryError(f"{about}: the types in its Args cannot be read: {_shown(error)}") from error
    if loose is not None:
        raise RegistryError(f"{about}: {loose} in its Args must inherit from scheduler.api.PluginArgs")


def _checked(name: str, plugin: object, origin: Origin) -> Plugin:
    if not isinstance(plugin, Plugin):
        raise RegistryError(
            f'initializing plugin "{name}": the factory of {origin} made a {type(plugin).__name__}, '
            "which does not inherit from scheduler.api.Plugin"
        )
    own_name = getattr(plugin, "name", None)
    if own_name != name:
        raise RegistryError(f'initializing plugin "{name}": the plugin of {origin} calls itself {own_name!r}')
    _check_class(name, type(plugin), origin)
    return plugin


def _shown(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
