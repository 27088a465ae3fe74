"""What an event loop could not hand to anybody: real errors are logged, the echo of connections given up is not."""

from __future__ import annotations

import asyncio
from typing import Any

from scheduler.telemetry.logging import get_logger

__all__ = ["take_loop_error"]

_CLOSED = "the handler is closed"

_log = get_logger(__name__)


def take_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Handle an error of ``loop``; for ``set_exception_handler``.

    A TLS handshake that is given up (its time is over, after a freeze for hundreds of them at once) closes the socket
    below uvloop's TLS, which then still takes the bytes that had come, wants to answer, and calls that a fatal error.
    Who gave the connection up knows; nobody else is concerned. uvloop's transport does not say that it is closing, so
    the text of the error is all there is to tell it by.
    """
    error = context.get("exception")
    if isinstance(error, RuntimeError) and _CLOSED in str(error):
        _log.debug("a connection that had been given up had bytes left", err=str(error))
    else:
        loop.default_exception_handler(context)
