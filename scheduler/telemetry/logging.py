"""Logs: structlog, text or JSON, one line an event, data in keys."""

from __future__ import annotations

from typing import Any, Protocol, cast

import structlog

__all__ = ["Logger", "get_logger"]


class Logger(Protocol):
    """What the code calls; messages are short lower-case sentences in the past tense, data goes in keywords."""

    def debug(self, event: str, **fields: Any) -> Any: ...
    def info(self, event: str, **fields: Any) -> Any: ...
    def warning(self, event: str, **fields: Any) -> Any: ...
    def error(self, event: str, **fields: Any) -> Any: ...


def get_logger(name: str) -> Logger:
    """Return the logger of a module."""
    return cast("Logger", structlog.get_logger(name))
