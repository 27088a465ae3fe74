"""Transport: how requests reach the API server. A Protocol, so that everything above can be tested without sockets.

``request`` returns every complete answer as a value, failures included (``raise_for_status`` turns them into errors);
only the absence of a complete answer is an exception. ``stream`` is for watches: it raises before the first chunk if
the server says no, and afterwards hands out the body in whatever pieces arrive.

``kube.http_transport`` is the implementation for the daemon.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from scheduler.kube.errors import api_error

__all__ = [
    "JSON",
    "MERGE_PATCH",
    "STRATEGIC_MERGE_PATCH",
    "RequestObserver",
    "Response",
    "Transport",
    "raise_for_status",
]

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"


@dataclass(frozen=True, slots=True)
class Response:
    """A complete answer.

    Attributes:
        status: HTTP status code.
        headers: names in lower case; of repeated headers the first value.
        body: the whole body.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes


class RequestObserver(Protocol):
    """Called after each request; must be cheap and callable from any thread."""

    def __call__(
        self,
        method: str,
        host: str,
        code: str,
        duration_s: float,
        /,
        *,
        waited_s: float,
        sent_bytes: int,
        received_bytes: int | None,
    ) -> None:
        """Take note of one request.

        Args:
            method: in capitals.
            host: with port.
            code: HTTP status, or "<error>" without an answer.
            duration_s: until the end of the answer; of a stream until its beginning.
            waited_s: how long our own rate limit held it back before.
            sent_bytes: body of the request.
            received_bytes: body of the answer; None without a whole one, and for streams.
        """


class Transport(Protocol):
    """A connection pool to one API server, with its credentials. All methods belong to one event loop."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        content_type: str = JSON,
        accept: str = JSON,
        timeout_s: float,
    ) -> Response:
        """Send one request and return the whole answer, whatever its status.

        Args:
            method: HTTP method in capitals.
            path: absolute path with query, already quoted.
            body: the body, or None.
            content_type: of the body.
            accept: media types that the answer may have.
            timeout_s: total time, from asking for a connection to the last byte of the answer.

        Raises:
            TransportError: there was no complete answer; look at ``sent``.
        """

    def stream(self, path: str, *, connect_timeout_s: float) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Open a GET whose answer has no known end; leaving the context closes it.

        Args:
            path: absolute path with query, already quoted.
            connect_timeout_s: until the answer's headers; there is no limit afterwards, the caller watches the pauses.

        Raises:
            ApiError: the answer is not 200.
            TransportError: there was no answer, or (from the iterator) the body was cut.
        """

    async def close(self) -> None:
        """Close all connections."""


def raise_for_status(response: Response) -> Response:
    """Return ``response`` if it says success, else raise the ApiError it stands for."""
    if 200 <= response.status < 300:
        return response
    raise api_error(response.status, response.headers, response.body)
