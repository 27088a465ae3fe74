"""Logs: structlog's processors, text or JSON, one line an event, data in keys.

``configure`` is called once by the process; before that, info and above go to standard error as text. Modules hold
their logger from import time on, so a logger is a name and nothing else: level, format and output belong to the
process and may change while it runs (``set_verbosity``). A call below the level costs one comparison.

The standard library's loggers (kopf, aiohttp, urllib3, asyncio) end in the same output. An error or warning that
repeats is shown 20 times in 10 s per logger and message, afterwards counted and said once (``suppressed``).

Verbosity: 0-2 info, 3-4 debug, 5 and more also the debug lines of dependencies.
"""

from __future__ import annotations

import logging as stdlib_logging
import sys
import time
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, Final, Literal, Protocol

import structlog

from scheduler.telemetry.log_format import cut_texts, redact, render_json, render_text, timestamp
from scheduler.telemetry.log_writer import LogWriter, TextStream

__all__ = [
    "Format",
    "Logger",
    "configure",
    "debug_enabled",
    "get_logger",
    "lines_dropped",
    "set_verbosity",
    "start_writer",
    "stop_writer",
    "verbosity",
]

Format = Literal["text", "json"]

DEBUG: Final = 10
INFO: Final = 20
WARNING: Final = 30
ERROR: Final = 40
_DEBUG_FROM = 3
_DEPENDENCIES_FROM = 5
_REPEAT_LIMIT = 20
_REPEAT_WINDOW_S = 10.0
_REPEAT_KEYS = 1_000


class Logger(Protocol):
    """What the code calls; messages are short lower-case sentences in the past tense, data goes in keywords."""

    def debug(self, event: str, **fields: Any) -> Any: ...
    def info(self, event: str, **fields: Any) -> Any: ...
    def warning(self, event: str, **fields: Any) -> Any: ...
    def error(self, event: str, **fields: Any) -> Any: ...


class _Output:
    """The process's one output. ``threshold`` is read at each call, so a new level counts at once."""

    def __init__(self) -> None:
        self.threshold = INFO
        self.verbosity = 0
        self.writer: LogWriter | None = None

    def write(self, line: str) -> None:
        if self.writer is not None:
            self.writer.write(line)
        else:
            sys.stderr.write(f"{line}\n")


_output = _Output()


class _NamedLogger:
    """A logger: a name in front of the process's output."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def debug(self, event: str, **fields: Any) -> None:
        if _output.threshold <= DEBUG:
            _emit("debug", self._name, event, fields)

    def info(self, event: str, **fields: Any) -> None:
        if _output.threshold <= INFO:
            _emit("info", self._name, event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        _emit("warning", self._name, event, fields)

    def error(self, event: str, **fields: Any) -> None:
        _emit("error", self._name, event, fields)


def _emit(method: str, name: str, event: str, fields: Mapping[str, Any]) -> None:
    """Run structlog's chain; taken from its configuration, so that ``structlog.testing.capture_logs`` works."""
    entry: Any = {"event": event, "logger": name, **fields}
    try:
        for processor in structlog.get_config()["processors"]:
            entry = processor(None, method, entry)
    except structlog.DropEvent:
        return
    _output.write(str(entry))


def get_logger(name: str) -> Logger:
    """Return the logger of a module; cheap, and valid before ``configure``."""
    return _NamedLogger(name)


def debug_enabled() -> bool:
    """Tell whether debug lines are wanted; for hot paths that would compute fields in vain."""
    return _output.threshold <= DEBUG


def verbosity() -> int:
    """Return the current ``-v``."""
    return _output.verbosity


def set_verbosity(level: int) -> None:
    """Change ``-v`` while the process runs; any thread."""
    _output.verbosity = level
    _output.threshold = DEBUG if level >= _DEBUG_FROM else INFO
    stdlib_logging.getLogger().setLevel(DEBUG if level >= _DEPENDENCIES_FROM else INFO)


def configure(
    format: Format = "text",  # noqa: A002  the flag is called --logging-format
    verbosity: int = 0,
    stream: TextStream | None = None,
    *,
    wall_s: Callable[[], float] = time.time,  # noqa: TID251  a log line shows the wall clock
    monotonic_s: Callable[[], float] = time.monotonic,
) -> None:
    """Set the format, level and output of all logs of the process, those of dependencies included.

    Args:
        format: ``text`` or ``json``.
        verbosity: ``-v``.
        stream: standard error if None (parity: klog).
        wall_s: seconds since the epoch, for ``ts``.
        monotonic_s: for the limit on repeated lines.
    """
    stop_writer()
    render = render_json if format == "json" else render_text
    processors: list[Any] = [
        structlog.contextvars.merge_contextvars,
        _RepeatLimit(monotonic_s),
        _Stamp(wall_s),
        structlog.processors.format_exc_info,
        lambda _logger, _method, event: redact(event),
        lambda _logger, _method, event: cut_texts(event),
        lambda _logger, _method, event: render(event),
    ]
    structlog.configure(processors=processors, cache_logger_on_first_use=False)
    _output.writer = LogWriter(sys.stderr if stream is None else stream)
    stdlib_logging.captureWarnings(capture=True)
    root = stdlib_logging.getLogger()
    root.handlers[:] = [_StdlibHandler()]
    set_verbosity(verbosity)


def start_writer() -> None:
    """Write lines on a thread of their own from now on, so that a blocked output blocks nobody."""
    if _output.writer is not None:
        _output.writer.start()


def stop_writer(timeout_s: float = 2.0) -> None:
    """Write what is queued, for at most ``timeout_s``; later lines are written at once."""
    if _output.writer is not None:
        _output.writer.stop(timeout_s)


def lines_dropped() -> int:
    """Return how many lines were lost so far."""
    return _output.writer.dropped if _output.writer is not None else 0


class _Stamp:
    """Renames structlog's ``event`` and adds time and level."""

    def __init__(self, wall_s: Callable[[], float]) -> None:
        self._wall_s = wall_s

    def __call__(self, _logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        event["ts"] = timestamp(self._wall_s())
        event["level"] = method
        event["msg"] = event.pop("event", "")
        return event


class _RepeatLimit:
    """Shows a repeating warning or error 20 times in 10 s, then counts; bounded by 1,000 different messages."""

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._seen: dict[tuple[str, str], list[float]] = {}

    def __call__(self, _logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        if method not in {"warning", "error"}:
            return event
        now_s = self._monotonic_s()
        key = (str(event.get("logger", "")), str(event.get("event", "")))
        window = self._seen.get(key)
        if window is None or now_s - window[0] >= _REPEAT_WINDOW_S:
            self._open(key, now_s)
            suppressed = int(window[1]) - _REPEAT_LIMIT if window is not None else 0
            if suppressed > 0:
                event["suppressed"] = suppressed
            return event
        window[1] += 1
        if window[1] > _REPEAT_LIMIT:
            raise structlog.DropEvent
        return event

    def _open(self, key: tuple[str, str], now_s: float) -> None:
        if len(self._seen) >= _REPEAT_KEYS:
            self._seen.clear()
        self._seen[key] = [now_s, 1]


class _StdlibHandler(stdlib_logging.Handler):
    """Takes the log records of dependencies."""

    def emit(self, record: stdlib_logging.LogRecord) -> None:
        method = "error" if record.levelno >= ERROR else "warning" if record.levelno >= WARNING else "info"
        if record.levelno < INFO:
            method = "debug"
        try:
            message = record.getMessage()
        except (TypeError, ValueError):  # a dependency's wrong format arguments
            message = str(record.msg)
        fields = {"exc_info": record.exc_info} if record.exc_info else {}
        _emit(method, record.name, message, fields)
