"""Line: one event of a watch on its way to the client."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any

from tests.faults.proxy.rules import Handle

__all__ = ["Line"]


class Line:
    """One event.

    Attributes:
        raw: without its newline.
        due_s: it goes on then (time.monotonic).
        held_by: the rule that holds it; it goes on at once when that is out of use.
    """

    def __init__(self, raw: bytes, due_s: float = 0.0) -> None:
        self.raw = raw
        self.due_s = due_s
        self.held_by: Handle | None = None

    @cached_property
    def event(self) -> dict[str, Any]:
        decoded = json.loads(self.raw)
        return decoded if isinstance(decoded, dict) else {}

    @property
    def type(self) -> str:
        return str(self.event.get("type", ""))

    @property
    def metadata(self) -> dict[str, Any]:
        found = self.event.get("object", {}).get("metadata")
        return found if isinstance(found, dict) else {}

    @property
    def key(self) -> tuple[str, str]:
        """Return namespace and name of the object."""
        return self.metadata.get("namespace", ""), self.metadata.get("name", "")

    @property
    def uid(self) -> str:
        return str(self.metadata.get("uid", ""))

    def with_event(self, **fields: Any) -> Line:
        """Return a line with other values for ``type`` or ``object``."""
        return self.with_raw(json.dumps({**self.event, **fields}).encode())

    def with_raw(self, raw: bytes) -> Line:
        made = Line(raw, self.due_s)
        made.held_by = self.held_by
        return made

    def __str__(self) -> str:
        return f"{self.type} {'/'.join(self.key).lstrip('/')} {self.metadata.get('resourceVersion', '')}"
