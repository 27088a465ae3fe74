"""Watch lines as a bad network or a busy server makes them: in another order, or two of them as one."""

from __future__ import annotations

from typing import Any

import msgspec

__all__ = ["merged", "swapped"]


def swapped(chunk: bytes) -> bytes:
    """Return the lines with neighbours exchanged, where they are about different objects."""
    lines = chunk.splitlines(keepends=True)
    for i in range(0, len(lines) - 1, 2):
        if _key(msgspec.json.decode(lines[i])) != _key(msgspec.json.decode(lines[i + 1])):
            lines[i], lines[i + 1] = lines[i + 1], lines[i]
    return b"".join(lines)


def merged(chunk: bytes) -> bytes:
    """Return the lines with each end of an object, and the beginning of one of the same name, as one change."""
    events = [msgspec.json.decode(line) for line in chunk.splitlines()]
    ended = {}
    for i, event in enumerate(events):
        if event["type"] == "DELETED":
            ended[_key(event)] = i
        elif event["type"] == "ADDED" and _key(event) in ended:
            event["type"] = "MODIFIED"
            events[ended.pop(_key(event))]["type"] = ""
    return b"".join(msgspec.json.encode(event) + b"\n" for event in events if event["type"])


def _key(event: Any) -> tuple[str, str]:
    metadata = event["object"].get("metadata") or {}
    return metadata.get("namespace", ""), metadata.get("name", "")
