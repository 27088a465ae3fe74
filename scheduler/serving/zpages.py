"""/flagz and /statusz: what this process was started with and how it does (``config.k8s.io/v1beta1``, or text)."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from aiohttp import web

from scheduler.serving.server import json_answer, text_answer

__all__ = ["API_VERSION", "Component", "flagz", "statusz"]

API_VERSION: Final = "config.k8s.io/v1beta1"
_WARNING = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is "
    "for debugging purposes only."
)


@dataclass(frozen=True, slots=True)
class Component:
    """Who we are.

    Attributes:
        name: ``podium``.
        version: of the program.
        emulated: the Kubernetes version whose behaviour it has, e.g. ``1.36``.
        started: when the process started.
        now: wall clock.
    """

    name: str
    version: str
    emulated: str
    started: datetime
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


def _wants_json(accept: str) -> bool:
    types = [part.split(";", 1)[0].strip() for part in accept.split(",")]
    return "application/json" in types and "text/plain" not in types[: types.index("application/json")]


def _json(component: Component, kind: str, fields: Mapping[str, Any]) -> web.Response:
    body = {"kind": kind, "apiVersion": API_VERSION, "metadata": {"name": component.name}, **fields}
    return json_answer(msgspec.json.encode(body))


def flagz(component: Component, flags: Mapping[str, str], accept: str) -> web.Response:
    """Return all flags and their values."""
    ordered = dict(sorted(flags.items()))
    if _wants_json(accept):
        return _json(component, "Flagz", {"flags": ordered})
    lines = [f"{name}={value}" for name, value in ordered.items()]
    return text_answer("\n".join(["", f"{component.name} flagz", _WARNING, *lines, ""]))


def statusz(component: Component, paths: Sequence[str], accept: str) -> web.Response:
    """Return age, versions and paths."""
    up_s = int((component.now() - component.started).total_seconds())
    python = platform.python_version()
    if _wants_json(accept):
        fields = {
            "startTime": component.started.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "uptimeSeconds": up_s,
            "goVersion": f"python{python}",
            "binaryVersion": component.version,
            "emulationVersion": component.emulated,
            "paths": paths,
        }
        return _json(component, "Statusz", fields)
    lines = [
        "",
        f"{component.name} statusz",
        _WARNING,
        "",
        f"Started: {component.started.astimezone(UTC):%a %b %e %H:%M:%S UTC %Y}",
        f"Up: {up_s // 3600} hr {up_s // 60 % 60:02d} min {up_s % 60:02d} sec",
        f"Python version: {python}",
        f"Binary version: {component.version}",
        f"Emulation version: {component.emulated}",
        f"Paths: {' '.join(paths)}",
        "",
    ]
    return text_answer("\n".join(lines))
