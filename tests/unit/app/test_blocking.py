"""Plain functions of plugins beside the loop: results, errors, limits, and an end that waits for nobody."""

import asyncio
import subprocess
import sys
import threading

import pytest

from scheduler.app.blocking import BlockingCalls


def test_results_and_errors_come_back():
    """As if the function had been called; on another thread."""

    async def run():
        calls = BlockingCalls("test")
        assert await calls(lambda: 42) == 42
        assert await calls(threading.get_ident) != threading.get_ident()
        with pytest.raises(KeyError, match="gone"):
            await calls(lambda: {}["gone"])

    asyncio.run(run())


def test_calls_run_beside_one_another_up_to_the_limit():
    """Three threads for three waiting calls; the fourth call waits for a thread, and threads are used again."""

    async def run():
        calls = BlockingCalls("test", max_threads=3)
        gate, seen = threading.Event(), []

        def hold():
            seen.append(threading.current_thread().name)
            assert gate.wait(10)

        held = [asyncio.create_task(calls(hold)) for _ in range(3)]
        while len(seen) < 3:  # noqa: ASYNC110  set by other threads
            await asyncio.sleep(0.001)
        fourth = asyncio.create_task(calls(lambda: threading.current_thread().name))
        await asyncio.sleep(0)
        assert not fourth.done()
        gate.set()
        await asyncio.gather(*held)
        assert await fourth in seen
        assert len(set(seen)) == 3

    asyncio.run(run())


def test_call_that_was_given_up_is_forgotten():
    """Its late result reaches nobody, and the thread goes on to the next."""

    async def run():
        calls = BlockingCalls("test", max_threads=1)
        gate = threading.Event()
        given_up = asyncio.create_task(calls(lambda: gate.wait(10)))
        await asyncio.sleep(0)
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        gate.set()
        assert await calls(lambda: "next") == "next"

    asyncio.run(run())


def test_process_ends_although_a_call_hangs():
    """Regression: asyncio.to_thread kept a daemon with a stuck PreBind alive for ever after SIGTERM."""
    script = """
import asyncio, time
from scheduler.app.blocking import BlockingCalls

async def main():
    task = asyncio.create_task(BlockingCalls("test")(lambda: time.sleep(3600)))
    await asyncio.sleep(0.05)
    task.cancel()

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", script], check=False, timeout=30, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
