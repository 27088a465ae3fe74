"""A process whose logs are configured as the daemon's are, for the length of a test."""

from __future__ import annotations

import io
import logging as stdlib_logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog

from scheduler.telemetry import logging as telemetry


@contextmanager
def configured(**clocks: Callable[[], float]) -> Iterator[io.StringIO]:
    """Log JSON to what is yielded; afterwards everything is as before. ``clocks`` as for ``logging.configure``."""
    root = stdlib_logging.getLogger()
    handlers, level = root.handlers[:], root.level
    stream = io.StringIO()
    telemetry.configure("json", 0, stream, **clocks)
    try:
        yield stream
    finally:
        structlog.reset_defaults()
        telemetry._output.writer = None
        telemetry.set_verbosity(0)
        stdlib_logging.captureWarnings(capture=False)
        root.handlers[:] = handlers
        root.setLevel(level)
