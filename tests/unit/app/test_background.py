"""Background threads of the daemon: at once, again and again, until asked to stop."""

import threading

from scheduler.app.background import in_thread


def test_runs_beside_the_caller_until_stopped():
    """The first call comes at once; none begins after the stop."""
    called = threading.Semaphore(0)
    threads = set()

    def work():
        threads.add(threading.current_thread())
        called.release()

    stop = in_thread("Mine", work, 0.001)
    assert called.acquire(timeout=10)
    assert called.acquire(timeout=10)
    stop()
    (thread,) = threads
    thread.join(10)
    assert (thread.is_alive(), thread.daemon, thread.name) == (False, True, "background-Mine")
