"""PluginArgs: what a plugin's ``pluginConfig`` entry may say, as a typed value."""

from __future__ import annotations

import msgspec

__all__ = ["PluginArgs"]


class PluginArgs(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Base of a plugin's arguments: fields in snake case here are camel case in the file, unknown ones are refused.

    A plugin names its type in ``Plugin.Args``; parts of it that are structs inherit from this class, too. Limits of a
    value are written with ``msgspec.Meta``, rules between values in ``__post_init__``, which raises ValueError::

        class QuietNodesArgs(PluginArgs):
            max_pods: Annotated[int, msgspec.Meta(ge=0)] = 10
    """
