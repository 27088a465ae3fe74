"""Logging as the process uses it: formats, levels at run time, dependencies, repeats."""

import io
import json
import logging as stdlib_logging

import pytest
import structlog

from scheduler.telemetry import logging as telemetry
from tests.configured_logs import configured


@pytest.fixture
def monotonic():
    return [1_000.0]


@pytest.fixture
def output(monotonic):
    """A configured process; afterwards everything is as before."""
    with configured(wall_s=lambda: 1769847300.0, monotonic_s=lambda: monotonic[0]) as stream:
        yield stream


def entries(stream):
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_line_carries_time_level_message_logger_and_fields(output):
    telemetry.get_logger("scheduler.x").info("pod bound", pod="shop/web", attempt=2)
    assert entries(output) == [
        {
            "ts": "2026-01-31T08:15:00.000Z",
            "level": "info",
            "msg": "pod bound",
            "logger": "scheduler.x",
            "pod": "shop/web",
            "attempt": 2,
        }
    ]


@pytest.mark.parametrize(("verbosity", "expected"), [(0, False), (2, False), (3, True), (5, True)])
def test_verbosity_decides_about_debug_lines_at_run_time(output, verbosity, expected):
    """Loggers made before the change follow it."""
    logger = telemetry.get_logger("scheduler.x")
    telemetry.set_verbosity(verbosity)
    logger.debug("looked closely")
    assert bool(entries(output)) is expected
    assert telemetry.debug_enabled() is expected
    assert telemetry.verbosity() == verbosity


def test_dependencies_end_in_the_same_output(output):
    stdlib_logging.getLogger("aiohttp.server").error("broke on %s", "x", exc_info=ValueError("bad"))
    [entry] = entries(output)
    assert (entry["logger"], entry["level"], entry["msg"]) == ("aiohttp.server", "error", "broke on x")
    assert "ValueError: bad" in entry["exception"]


def test_debug_lines_of_dependencies_need_verbosity_five(output):
    logger = stdlib_logging.getLogger("urllib3")
    telemetry.set_verbosity(4)
    logger.debug("no")
    telemetry.set_verbosity(5)
    logger.debug("yes")
    assert [entry["msg"] for entry in entries(output)] == ["yes"]


def test_wrong_format_arguments_of_a_dependency_do_not_hurt(output):
    record = stdlib_logging.LogRecord("kopf", stdlib_logging.WARNING, "", 0, "%d", ("x",), None)
    telemetry._StdlibHandler().emit(record)
    assert entries(output)[0]["msg"] == "%d"


def test_repeating_errors_are_counted_instead_of_shown(output, monotonic):
    """20 in 10 s are shown; the next window tells how many were not."""
    logger = telemetry.get_logger("scheduler.x")
    for _ in range(50):
        logger.error("watch failed")
    logger.error("something else")
    assert len(entries(output)) == 21
    monotonic[0] += 10
    logger.error("watch failed")
    assert entries(output)[-1]["suppressed"] == 30


def test_information_is_never_suppressed(output):
    logger = telemetry.get_logger("scheduler.x")
    for _ in range(30):
        logger.info("pod bound")
    assert len(entries(output)) == 30


def test_secrets_never_reach_the_output(output):
    telemetry.get_logger("x").error(
        "call failed", headers={"Authorization": "x"}, err=RuntimeError("Bearer abcdefghij")
    )
    assert "abcdefghij" not in output.getvalue()
    assert entries(output)[0]["headers"] == "[redacted]"


def test_capture_logs_of_structlog_works(output):
    """Tests of other parts may look at what was logged."""
    with structlog.testing.capture_logs() as captured:
        telemetry.get_logger("x").warning("oh", pod="a/b")
    assert captured == [{"event": "oh", "logger": "x", "pod": "a/b", "log_level": "warning"}]


def test_text_is_the_default_format(output):
    stream = io.StringIO()
    telemetry.configure(stream=stream, wall_s=lambda: 1769847300.0)
    telemetry.get_logger("x").info("hello")
    assert stream.getvalue() == "2026-01-31T08:15:00.000Z INFO    hello  [x]\n"


def test_writer_thread_takes_over_and_stops(output):
    telemetry.start_writer()
    telemetry.get_logger("x").info("hello")
    telemetry.stop_writer()
    assert entries(output)[0]["msg"] == "hello"
    assert telemetry.lines_dropped() == 0
