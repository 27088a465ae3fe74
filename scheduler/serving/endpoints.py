"""The paths that kube-scheduler serves, built from callbacks (parity: ``cmd/kube-scheduler/app/server.go``).

Whoever wires the process fills ``Endpoints``; this module knows neither the scheduler's state nor its configuration.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from scheduler.serving.health import HealthAnswer, HealthChecks
from scheduler.serving.server import Request, Route, json_answer, text_answer
from scheduler.serving.zpages import Component, flagz, statusz
from scheduler.telemetry.exposition import CONTENT_TYPE, MetricsRegistry, Rows, render_rows
from scheduler.telemetry.logging import set_verbosity

__all__ = ["METRICS_RESET", "Endpoints", "routes"]

METRICS_RESET: Final = "metrics reset\n"
_PUT = frozenset({"PUT"})
_WITH_DELETE = frozenset({"GET", "HEAD", "DELETE"})
_MAX_VERBOSITY = 10

Handler = Callable[[Request], Awaitable[web.Response]]


@dataclass(frozen=True, slots=True)
class Endpoints:
    """What the paths show.

    Attributes:
        component: name and versions, for /flagz and /statusz.
        healthz: checks of /healthz.
        livez: checks of /livez.
        readyz: checks of /readyz.
        metrics: /metrics.
        slis: /metrics/slis.
        resources: rows of /metrics/resources; awaited on the service loop, asked only when leading.
        is_leader: tells whether this process schedules; always true without leader election.
        configz: the completed configuration as JSON.
        flags: flag name → value; values must not hold secrets.
        debug_flags: serve ``PUT /debug/flags/v``.
    """

    component: Component
    healthz: HealthChecks
    livez: HealthChecks
    readyz: HealthChecks
    metrics: MetricsRegistry
    slis: MetricsRegistry
    resources: Callable[[], Awaitable[Rows]]
    is_leader: Callable[[], bool]
    configz: Callable[[], bytes]
    flags: Callable[[], Mapping[str, str]]
    debug_flags: bool = True


def routes(endpoints: Endpoints) -> dict[str, Route]:
    """Return path → route."""
    table: dict[str, Route] = {
        "/metrics": Route(_metrics(endpoints.metrics), _WITH_DELETE),
        "/metrics/slis": Route(_metrics(endpoints.slis), _WITH_DELETE),
        "/metrics/resources": Route(_resources(endpoints)),
        "/configz": Route(_configz(endpoints)),
        "/flagz": Route(_flagz(endpoints)),
    }
    for checks in (endpoints.healthz, endpoints.livez, endpoints.readyz):
        table[f"/{checks.kind}"] = Route(_health(checks))
        for name in checks.names:
            table[f"/{checks.kind}/{name}"] = Route(_one_check(checks, name))
    if endpoints.debug_flags:
        table["/debug/flags/v"] = Route(_verbosity, _PUT)
    table["/statusz"] = Route(_statusz(endpoints, sorted([*table, "/statusz"])))
    return table


def _health(checks: HealthChecks) -> Handler:
    async def answer(request: Request) -> web.Response:
        excluded = request.query.get("exclude", [])
        return _health_answer(checks.answer(is_verbose="verbose" in request.query, excluded=excluded))

    return answer


def _one_check(checks: HealthChecks, name: str) -> Handler:
    async def answer(_request: Request) -> web.Response:
        return _health_answer(checks.answer_one(name))

    return answer


def _health_answer(answer: HealthAnswer) -> web.Response:
    return text_answer(answer.text, answer.status)


def _metrics(registry: MetricsRegistry) -> Handler:
    async def answer(request: Request) -> web.Response:
        if request.method == "DELETE":
            registry.reset()
            return text_answer(METRICS_RESET)
        return text_answer(registry.render(), content_type=CONTENT_TYPE)

    return answer


def _resources(endpoints: Endpoints) -> Handler:
    async def answer(_request: Request) -> web.Response:
        if not endpoints.is_leader():
            return text_answer("")
        rows = await endpoints.resources()
        # Tens of thousands of pods take a while to render; the loop also keeps the lease alive.
        return text_answer(await asyncio.to_thread(render_rows, rows), content_type=CONTENT_TYPE)

    return answer


def _configz(endpoints: Endpoints) -> Handler:
    async def answer(_request: Request) -> web.Response:
        return json_answer(endpoints.configz())

    return answer


def _flagz(endpoints: Endpoints) -> Handler:
    async def answer(request: Request) -> web.Response:
        return flagz(endpoints.component, endpoints.flags(), request.accept)

    return answer


def _statusz(endpoints: Endpoints, paths: list[str]) -> Handler:
    async def answer(request: Request) -> web.Response:
        return statusz(endpoints.component, paths, request.accept)

    return answer


async def _verbosity(request: Request) -> web.Response:
    text = request.body.decode("ascii", "replace").strip()
    if not text.isdecimal() or not text.isascii() or len(text) > 3 or int(text) > _MAX_VERBOSITY:
        return text_answer(f"failed set klog.logging.verbosity {text[:32]}: not a number from 0 to 10\n", 400)
    set_verbosity(int(text))
    return text_answer(f"successfully set klog.logging.verbosity to {text}\n")
