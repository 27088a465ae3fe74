"""A plugin's arguments: from the plain values of ``pluginConfig`` to the struct that the plugin named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from scheduler.api import PluginArgs

__all__ = ["ArgsError", "decode_args", "loose_part"]

_HEADER = ("apiVersion", "kind")


class ArgsError(ValueError):
    """Arguments do not fit.

    Attributes:
        path: where, from the arguments' root: ``.zones[0].weight``; "" for the arguments as a whole.
    """

    def __init__(self, path: str, text: str) -> None:
        super().__init__(text)
        self.path = path


def decode_args(kind: type[PluginArgs], args: Any) -> PluginArgs:
    """Return ``args`` as a ``kind``; ``apiVersion`` and ``kind``, which files from elsewhere carry, are left out.

    Raises:
        ArgsError: the first thing that does not fit.
    """
    if isinstance(args, Mapping):
        wanted = kind.__struct_encode_fields__
        args = {key: value for key, value in args.items() if key not in _HEADER or key in wanted}
    try:
        return msgspec.convert({} if args is None else args, kind)
    except msgspec.ValidationError as error:
        text, _, path = str(error).partition(" - at `$")
        raise ArgsError(path.removesuffix("`"), text) from error


def loose_part(kind: type[PluginArgs]) -> str | None:
    """Return the name of a struct inside ``kind`` that would let unknown fields pass, or None."""
    return next((part.__name__ for part in _structs(msgspec.inspect.type_info(kind)) if _is_loose(part)), None)


def _is_loose(part: type[msgspec.Struct]) -> bool:
    return not part.__struct_config__.forbid_unknown_fields


def _structs(root: msgspec.inspect.Type) -> list[type[msgspec.Struct]]:
    found: dict[type[msgspec.Struct], None] = {}
    left: list[Any] = [root]
    while left:
        info = left.pop()
        if isinstance(info, msgspec.inspect.StructType):
            if info.cls in found:
                continue
            found[info.cls] = None
            left += [field.type for field in info.fields]
        for name in ("type", "item_type", "key_type", "value_type"):
            inner = getattr(info, name, None)
            if isinstance(inner, msgspec.inspect.Type):
                left.append(inner)
        for name in ("types", "item_types"):
            left += getattr(info, name, ())
    return list(found)
