"""What a loop cannot hand to anybody is logged, unless it is the echo of a connection that was given up."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from scheduler.kube.loop_errors import take_loop_error

ECHO = "unable to perform operation on <TCPTransport closed=True reading=False 0x7f2c>; the handler is closed"


@pytest.mark.parametrize(
    ("context", "is_told"),
    [
        pytest.param({"exception": RuntimeError(ECHO)}, False, id="given up in its handshake"),
        pytest.param({"exception": RuntimeError("a bug in a callback")}, True, id="a bug"),
        pytest.param({"exception": ValueError(ECHO)}, True, id="another error of these words"),
        pytest.param({}, True, id="no exception"),
    ],
)
def test_only_the_echo_of_a_closed_connection_is_dropped(
    caplog: pytest.LogCaptureFixture, context: dict[str, Any], is_told: bool
) -> None:
    """uvloop calls it a fatal error of the TLS protocol; tests/faults (28) makes it happen."""
    loop = asyncio.new_event_loop()
    take_loop_error(loop, {"message": "Fatal error on SSL protocol"} | context)
    loop.close()
    assert bool([record for record in caplog.records if record.name == "asyncio"]) is is_told
