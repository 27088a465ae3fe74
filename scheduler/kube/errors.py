"""What can go wrong when we speak to the API server, and what each failure says about the request.

    KubeError
    ├── TransportError      no (complete) answer; ``sent`` says whether the request may have been carried out
    ├── ApiError            the server answered, and the answer is no
    ├── ProtocolError       the server answered with something that is not the Kubernetes API
    └── CredentialsError    we cannot say who we are: kubeconfig, token, certificate

Invariant: ``TransportError.sent`` is False only when the request surely did not leave this process. Callers that write
must look at it; a write whose outcome is unknown is settled by reading the object back.

Bodies of failed requests may hold anything (a proxy's login page, a secret echoed back), so a message is taken from a
body only if it is a Kubernetes ``Status``, and then cut to 256 characters.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

__all__ = [
    "MAX_MESSAGE_CHARS",
    "ApiError",
    "CredentialsError",
    "KubeError",
    "ProtocolError",
    "TransportError",
    "api_error",
    "cut",
    "parse_retry_after",
]

MAX_MESSAGE_CHARS = 256

_MAX_RETRY_AFTER_S = 300.0
_TOO_LARGE = "too large resource version"


class KubeError(Exception):
    """Base of all failures in talking to the API server."""


class CredentialsError(KubeError):
    """The kubeconfig, token or certificate cannot be used; the message names the file and the field."""


class ProtocolError(KubeError):
    """A successful answer whose body is not what the Kubernetes API sends."""


class TransportError(KubeError):
    """The request got no complete answer.

    Attributes:
        sent: False only if the request surely was not carried out (it never left); True means "unknown".
        refused: nothing listens at the server's address, as while the API server restarts.
    """

    def __init__(self, message: str, *, sent: bool, refused: bool = False) -> None:
        super().__init__(message)
        self.sent = sent
        self.refused = refused


class ApiError(KubeError):
    """The server's refusal.

    Attributes:
        status: HTTP status code, or ``Status.code`` of an ERROR line in a watch.
        reason: ``Status.reason``, e.g. ``Conflict``; "" if the body was not a Status.
        message: ``Status.message`` cut to 256 characters; "" if the body was not a Status.
        retry_after_s: seconds the server asks us to wait, or None.
    """

    def __init__(self, status: int, reason: str = "", message: str = "", retry_after_s: float | None = None) -> None:
        super().__init__(f"{status} {reason}: {message}" if reason or message else str(status))
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after_s = retry_after_s

    @property
    def is_expired(self) -> bool:
        """Tell whether a resource version or continue token is too old (parity: both spellings, as client-go)."""
        return self.status == 410 or self.reason in {"Expired", "Gone"}

    @property
    def is_version_too_large(self) -> bool:
        """Tell whether we asked for a version that the server has not reached, e.g. after etcd was restored."""
        return _TOO_LARGE in self.message.lower()

    @property
    def is_overload(self) -> bool:
        """Tell whether the server refused because it has too much to do, without looking at the request."""
        return self.status == 429 or (self.status == 503 and self.retry_after_s is not None)

    @property
    def is_retriable(self) -> bool:
        """Tell whether upstream's ``Retriable`` says so: internal error, service unavailable, conflict."""
        return self.status in {500, 503, 409}


class _StatusDetails(msgspec.Struct, rename="camel"):
    retry_after_seconds: int = 0


class _Status(msgspec.Struct, rename="camel"):
    kind: str = ""
    reason: str | None = None
    message: str | None = None
    details: _StatusDetails | None = None


_decode_status = msgspec.json.Decoder(_Status).decode


def cut(text: str) -> str:
    """Return ``text`` with at most 256 characters."""
    return text if len(text) <= MAX_MESSAGE_CHARS else text[: MAX_MESSAGE_CHARS - 1] + "…"


def parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds in a ``Retry-After`` header, or None; dates are ignored, as in client-go."""
    text = headers.get("retry-after") or headers.get("Retry-After")
    if text is None or not (text.isascii() and text.isdigit()):
        return None
    return min(float(text[:6]), _MAX_RETRY_AFTER_S)


def api_error(status: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    """Return the error that a failed response stands for."""
    retry_after_s = parse_retry_after(headers)
    try:
        parsed = _decode_status(body)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return ApiError(status, retry_after_s=retry_after_s)
    if parsed.kind != "Status":
        return ApiError(status, retry_after_s=retry_after_s)
    if retry_after_s is None and parsed.details is not None and parsed.details.retry_after_seconds > 0:
        retry_after_s = min(float(parsed.details.retry_after_seconds), _MAX_RETRY_AFTER_S)
    return ApiError(status, cut(parsed.reason or ""), cut(parsed.message or ""), retry_after_s)
