"""Both event loops that connections are made on."""

import asyncio

import pytest
import uvloop


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request):
    """Run a coroutine on one of the loops."""

    def run(coroutine):
        with asyncio.Runner(loop_factory=request.param) as runner:
            return runner.run(coroutine)

    return run
