"""One instant query to a Prometheus server: a number for each node."""

from __future__ import annotations

import urllib.parse
import urllib.request
from collections.abc import Mapping
from math import isfinite
from typing import Literal

import msgspec

__all__ = ["QueryError", "query_by_node"]

_MAX_BYTES = 16_000_000


class QueryError(Exception):
    """The server could not be asked, refused, or answered something else than a vector."""


class _Sample(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str]


class _Vector(msgspec.Struct, rename="camel"):
    result_type: Literal["vector"]
    result: list[_Sample]


class _Answer(msgspec.Struct):
    status: Literal["success"]
    data: _Vector


def query_by_node(url: str, query: str, node_label: str, timeout_s: float) -> Mapping[str, float]:
    """Return the query's values by the value of ``node_label``; series without it, or without a number, are left out.

    Raises:
        QueryError: with the reason.
    """
    address = f"{url.rstrip('/')}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
    try:
        with urllib.request.urlopen(address, timeout=timeout_s) as response:  # noqa: S310  the arguments were checked
            answer = msgspec.json.decode(response.read(_MAX_BYTES), type=_Answer)
        values = {s.metric[node_label]: float(s.value[1]) for s in answer.data.result if node_label in s.metric}
    except (OSError, ValueError) as error:  # HTTP errors are OSErrors, what cannot be decoded is a ValueError
        raise QueryError(f"{url}: {error}") from error
    return {node: value for node, value in values.items() if isfinite(value)}
