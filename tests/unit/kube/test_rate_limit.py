"""qps and burst."""

import asyncio

import pytest

from scheduler.kube.rate_limit import TokenBucket


def test_burst_then_rate():
    """``burst`` calls pass at once, then one every 1/qps seconds, in order."""
    now, slept = [0.0], []

    async def sleep(seconds):
        slept.append(seconds)

    bucket = TokenBucket(10.0, 3, monotonic=lambda: now[0], sleep=sleep)
    assert [bucket.reserve() for _ in range(5)] == pytest.approx([0.0, 0.0, 0.0, 0.1, 0.2])
    now[0] = 0.3
    asyncio.run(bucket.take())
    assert slept == []
    asyncio.run(bucket.take())
    assert slept == pytest.approx([0.1])


def test_a_long_pause_saves_no_more_than_a_burst():
    """Tokens do not pile up."""
    now = [0.0]
    bucket = TokenBucket(10.0, 2, monotonic=lambda: now[0], sleep=asyncio.sleep)
    now[0] = 1000.0
    assert [bucket.reserve() for _ in range(3)] == pytest.approx([0.0, 0.0, 0.1])


def test_turn_that_would_come_too_late_is_not_taken():
    """Who cannot wait takes no token from those who can."""
    bucket = TokenBucket(10.0, 1, monotonic=lambda: 0.0, sleep=asyncio.sleep)
    assert [bucket.reserve(0.15) for _ in range(4)] == pytest.approx([0.0, 0.1, None, None])
    assert bucket.reserve() == pytest.approx(0.2)
    assert asyncio.run(bucket.take(0.1)) is None


def test_nonsense_is_refused():
    """A rate of zero would stop everything."""
    with pytest.raises(ValueError, match="qps"):
        TokenBucket(0.0, 1, monotonic=lambda: 0.0, sleep=asyncio.sleep)
