"""Connecting: the way to the API server as configured, and how many binds may be on it."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable

from scheduler.config.flags import CompletedConfig
from scheduler.kube.credentials import Credentials
from scheduler.kube.http_transport import HttpTransport
from scheduler.kube.rate_limit import TokenBucket
from scheduler.kube.starting import PatientTransport
from scheduler.kube.transport import Transport
from scheduler.kube.writes import WRITE_TIMEOUT_S
from scheduler.telemetry.metrics import Metrics

__all__ = ["bind_limit", "connect_by_http"]

_DEFAULT_BURST = 100


def connect_by_http(
    completed: CompletedConfig, credentials: Credentials, metrics: Metrics, may_write: Callable[[float], bool]
) -> Transport:
    """Return the way over HTTP, under our own rate limit if there is one.

    Whoever writes asks ``may_write``, the lease's gate, first, and decides what follows from a no. It is asked once
    more at the socket: with more requests at a time than connections one may have waited for seconds.
    """
    connection = completed.configuration.client_connection
    limiter = None
    if connection.qps is not None and connection.qps > 0:
        burst = connection.burst or _DEFAULT_BURST
        limiter = TokenBucket(connection.qps, burst, monotonic=time.monotonic, sleep=asyncio.sleep)
    may_change = functools.partial(may_write, WRITE_TIMEOUT_S)
    return PatientTransport(
        HttpTransport(credentials, limiter=limiter, observe=metrics.rest_request, may_change=may_change)
    )


def bind_limit(completed: CompletedConfig) -> int:
    """Return how many bindings may be under way: under our own rate limit no more than get their turn in time."""
    qps = completed.configuration.client_connection.qps
    limit = completed.options.bind_concurrency
    return min(limit, max(1, int(qps * WRITE_TIMEOUT_S / 2))) if qps is not None and qps > 0 else limit
