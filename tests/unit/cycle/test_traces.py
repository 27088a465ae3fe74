"""Slow decisions are logged with their steps."""

import pytest

from scheduler.cycle.traces import Trace


class Log:
    def __init__(self):
        self.lines = []

    def warning(self, event, **fields):
        self.lines.append((event, fields))


@pytest.mark.parametrize(
    ("times", "lines"),
    [
        pytest.param([0.0, 0.05, 0.1], [], id="fast enough"),
        pytest.param(
            [0.0, 0.05, 0.3],
            [("scheduling took long", {"pod": "shop/web", "duration_s": 0.3, "steps": {"filtered": 0.05}})],
            id="slow",
        ),
    ],
)
def test_log_if_long(times, lines):
    """Only what takes longer than 100 ms is worth a line."""
    log = Log()
    ticks = iter(times)
    trace = Trace(lambda: next(ticks))
    trace.step("filtered")
    trace.log_if_long("shop/web", log)
    assert log.lines == lines
