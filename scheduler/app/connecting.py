"""Connecting: the way to the API server as configured, and how many binds may be on it."""

from __future__ import annotations

import asyncio
import time

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


def connect_by_http(completed: CompletedConfig, credentials: Credentials, metrics: Metrics) -> Transport:
    """Return the way over HTTP, under our own rate limit if there is one."""
    connection = completed.configuration.client_connection
    limiter = None
    if connection.qps is not None and connection.qps > 0:
        burst = connection.burst or _DEFAULT_BURST
        limiter = TokenBucket(connection.qps, burst, monotonic=time.monotonic, sleep=asyncio.sleep)
    return PatientTransport(HttpTransport(credentials, limiter=limiter, observe=metrics.rest_request))


def bind_limit(completed: CompletedConfig) -> int:
    """Return how many bindings may be under way: under our own rate limit no more than get their turn in time."""
    qps = completed.configuration.client_connection.qps
    limit = completed.options.bind_concurrency
    return min(limit, max(1, int(qps * WRITE_TIMEOUT_S / 2))) if qps is not None and qps > 0 else limit
