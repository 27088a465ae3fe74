"""What becomes of the schedulers' log lines: a history makes hundreds, and one that tells of a bug is a violation."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

import structlog

__all__ = ["bugs_heard", "silence"]

_BUG = " broke"
"""Supervisors say so of an exception that nobody had foreseen; they do not say it of anything else."""


def silence() -> None:
    """Drop every log line from now on."""
    structlog.configure(processors=[_drop])


@contextmanager
def bugs_heard() -> Iterator[list[str]]:
    """Collect the lines within that tell of a bug, whatever else is done with them."""
    heard: list[str] = []

    def listen(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        if _BUG in event["event"]:
            heard.append(" ".join(f"{key}={value}" for key, value in event.items()))
        return event

    processors = structlog.get_config()["processors"]
    processors.insert(0, listen)
    try:
        yield heard
    finally:
        processors.remove(listen)


def _drop(_logger: object, _method: str, _event: object) -> str:
    raise structlog.DropEvent
