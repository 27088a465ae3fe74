"""A bug that the product has survived is found in its log."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator

import pytest

from scheduler.app.supervising import keep_running
from tests.configured_logs import configured
from tests.faults.history.logs import unforeseen


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """What the process logs, as the daemons of the bench do."""
    with configured() as stream:
        yield stream


async def _break() -> None:
    raise ValueError("nobody thought of it")


def test_what_a_supervisor_says_of_a_bug_is_found(log: io.StringIO) -> None:
    """It logs no traceback, and starts the helper again."""

    async def run() -> None:
        task = keep_running("comparer", _break)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()

    asyncio.run(run())
    (line,) = unforeseen(log.getvalue())
    assert "nobody thought of it" in line
    assert not list(unforeseen(log.getvalue(), ["nobody thought"])), "it is part of the test"


@pytest.mark.parametrize(
    ("line", "is_bug"),
    [
        pytest.param(
            '{"msg":"x","exc":"Traceback (most recent call last): f() ValueError: no"}', True, id="a traceback"
        ),
        pytest.param('{"msg":"scheduling attempt broke","err":"ValueError()"}', True, id="a decision"),
        pytest.param('{"msg":"reading the newest version broke, listing","err":"E()"}', True, id="a take-over"),
        pytest.param('{"msg":"lost the api server","error":"the connection broke, or so"}', False, id="a connection"),
    ],
)
def test_lines_that_tell_of_bugs(line: str, is_bug: bool) -> None:
    assert list(unforeseen(line)) == [line] * is_bug
