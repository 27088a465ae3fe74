"""Originals: the JSON of objects as the API server sent it, for those who must be shown whole objects.

The typed values hold only what scheduling reads. Extenders get whole pods and nodes, so where extenders are configured,
the text of the objects that they may be shown is kept beside the value (``KubeObject.original``). As in kube-scheduler,
``managedFields`` are left out: they are long and say nothing about scheduling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from scheduler.model.delta import Rejected
from scheduler.model.kinds import KINDS
from scheduler.model.meta import KubeObject

__all__ = ["Originals"]


class _RawItems(msgspec.Struct):
    items: list[msgspec.Raw] | None = None


class _RawEvent(msgspec.Struct):
    object: msgspec.Raw


_decode_items = msgspec.json.Decoder(_RawItems).decode
_decode_event = msgspec.json.Decoder(_RawEvent).decode


class Originals:
    """Keeps the originals of one kind."""

    def __init__(self, kind: type[KubeObject], is_wanted: Callable[[Any], bool]) -> None:
        """Keep what ``is_wanted`` says yes to."""
        info = KINDS[kind]
        self._identity = {"apiVersion": info.api_version, "kind": info.kind}
        self._is_wanted = is_wanted

    def of_page(self, items: Iterable[KubeObject | Rejected], body: bytes) -> None:
        """Keep the originals of the objects of a list; ``body`` is what they were decoded from."""
        for obj, raw in zip(items, _decode_items(body).items or (), strict=True):
            self._keep(obj, raw)

    def of_line(self, obj: KubeObject | Rejected | None, line: bytes) -> None:
        """Keep the original of the object of a watch line."""
        if obj is not None:
            self._keep(obj, _decode_event(line).object)

    def _keep(self, obj: KubeObject | Rejected, raw: msgspec.Raw) -> None:
        if isinstance(obj, Rejected) or not self._is_wanted(obj):
            return
        whole = msgspec.json.decode(raw)
        whole["metadata"].pop("managedFields", None)
        obj.__dict__["original_json"] = msgspec.json.encode(self._identity | whole)
