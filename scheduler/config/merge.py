"""How a profile's plugins change the default ones (spec section 5.3), as pure functions.

For each extension point by itself, ``multi_point`` being one of them: what the profile disables goes (``*``: all), what
it re-enables keeps the default's place with the profile's weight, the rest of what it enables comes after. So a plugin
is moved by disabling and enabling it.
"""

from __future__ import annotations

from scheduler.config.types import WIRE_POINTS, PluginRef, Plugins, PluginSet

__all__ = ["merge_plugin_set", "merge_plugins"]

ALL = "*"


def merge_plugins(defaults: Plugins, custom: Plugins | None) -> Plugins:
    """Return the defaults as ``custom`` changes them; None changes nothing."""
    if custom is None:
        return defaults
    return Plugins(**{point: merge_plugin_set(defaults.at(point), custom.at(point)) for point in WIRE_POINTS})


def merge_plugin_set(defaults: PluginSet, custom: PluginSet) -> PluginSet:
    """Merge one extension point; a plugin enabled twice stays so, expansion refuses it."""
    disabled = tuple(PluginRef(ref.name) for ref in custom.disabled + defaults.disabled)
    gone = {ref.name for ref in disabled}
    replacements = {ref.name: index for index, ref in enumerate(custom.enabled)}
    used: set[int] = set()
    enabled: list[PluginRef] = []
    for ref in () if ALL in gone else defaults.enabled:
        if ref.name in gone:
            continue
        index = replacements.get(ref.name)
        if index is not None:
            used.add(index)
        enabled.append(ref if index is None else custom.enabled[index])
    enabled += [ref for index, ref in enumerate(custom.enabled) if index not in used]
    return PluginSet(tuple(enabled), disabled)
