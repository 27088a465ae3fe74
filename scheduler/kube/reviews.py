"""Reviews: asking the API server who a caller is (TokenReview) and what they may do (SubjectAccessReview), or we may.

Answers, yes and no alike, are kept for 10 s in bounded caches; failures are not kept. A review that cannot be made is
a ``ReviewUnavailableError``, and callers deny. Tokens are never stored: a cache knows them by a keyed hash whose key
lives as long as the process, so neither a dump of the cache nor a chosen token tells anything.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import msgspec

from scheduler.kube.errors import KubeError
from scheduler.kube.transport import Transport, raise_for_status

__all__ = [
    "CACHE_TTL_S",
    "Access",
    "AccessReviewer",
    "NonResource",
    "Resource",
    "ReviewUnavailableError",
    "TokenReviewer",
    "User",
    "own_access",
]

CACHE_TTL_S: Final = 10.0
_TIMEOUT_S = 5.0
_MAX_ENTRIES = 1_000
_MAX_TOKEN_CHARS = 16_384

V = TypeVar("V")


class ReviewUnavailableError(Exception):
    """The API server did not answer a review; the caller must be refused."""


@dataclass(frozen=True, slots=True)
class User:
    """Who is calling. ``extra`` holds pairs of key and values, sorted."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class NonResource:
    """Access to a path of our own server; ``verb`` is the HTTP method in lower case."""

    path: str
    verb: str

    def manifest(self) -> dict[str, Any]:
        """Return the part of the review's spec."""
        return {"nonResourceAttributes": {"path": self.path, "verb": self.verb}}


@dataclass(frozen=True, slots=True)
class Resource:
    """Access to objects of the cluster, such as ``get pods`` in a namespace."""

    verb: str
    resource: str
    group: str = ""
    namespace: str = ""
    name: str = ""
    version: str = "v1"
    subresource: str = ""

    def manifest(self) -> dict[str, Any]:
        """Return the part of the review's spec."""
        fields = {
            "verb": self.verb,
            "group": self.group,
            "version": self.version,
            "resource": self.resource,
            "subresource": self.subresource,
            "namespace": self.namespace,
            "name": self.name,
        }
        return {"resourceAttributes": {key: value for key, value in fields.items() if value}}


@dataclass(frozen=True, slots=True)
class Access:
    """The answer of a SubjectAccessReview, or of a SelfSubjectAccessReview."""

    is_allowed: bool
    reason: str = ""


class _TtlCache(Generic[V]):
    """Values with an age limit; the oldest entry goes first when it is full."""

    def __init__(self, ttl_s: float, now_s: Callable[[], float]) -> None:
        self._ttl_s = ttl_s
        self._now_s = now_s
        self._entries: OrderedDict[object, tuple[float, V]] = OrderedDict()

    def get(self, key: object) -> V | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        until_s, value = entry
        if until_s <= self._now_s():
            del self._entries[key]
            return None
        return value

    def put(self, key: object, value: V, ttl_s: float | None = None) -> None:
        self._entries[key] = (self._now_s() + (self._ttl_s if ttl_s is None else ttl_s), value)
        self._entries.move_to_end(key)
        if len(self._entries) > _MAX_ENTRIES:
            self._entries.popitem(last=False)


class _TokenUser(msgspec.Struct):
    username: str = ""
    uid: str = ""
    groups: list[str] = msgspec.field(default_factory=list)
    extra: dict[str, list[str]] = msgspec.field(default_factory=dict)


class _TokenStatus(msgspec.Struct):
    authenticated: bool = False
    user: _TokenUser | None = None
    error: str = ""


class _TokenReview(msgspec.Struct):
    status: _TokenStatus | None = None


class _AccessStatus(msgspec.Struct):
    allowed: bool = False
    denied: bool = False
    reason: str = ""


class _AccessReview(msgspec.Struct):
    status: _AccessStatus | None = None


async def _review(
    transport: Transport, path: str, kind: str, spec: Mapping[str, Any], timeout_s: float = _TIMEOUT_S
) -> bytes:
    group_version = path.removeprefix("/apis/").rpartition("/")[0]
    body = msgspec.json.encode({"apiVersion": group_version, "kind": kind, "spec": spec})
    try:
        answer = raise_for_status(await transport.request("POST", path, body=body, timeout_s=timeout_s))
    except KubeError as error:
        msg = f"{kind} could not be made: {error}"
        raise ReviewUnavailableError(msg) from error
    return answer.body


def _access_in(answer: bytes, kind: str) -> Access:
    try:
        status = msgspec.json.decode(answer, type=_AccessReview).status
    except msgspec.MsgspecError as error:
        raise ReviewUnavailableError(f"{kind} was answered with something else") from error
    if status is None:
        raise ReviewUnavailableError(f"{kind} was answered without a status")
    return Access(status.allowed and not status.denied, status.reason)


async def own_access(transport: Transport, attributes: NonResource | Resource, *, timeout_s: float) -> Access:
    """Return whether the identity behind ``transport`` may do this; asked anew each time.

    Raises:
        ReviewUnavailableError: the API server did not answer.
    """
    path, kind = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "SelfSubjectAccessReview"
    return _access_in(await _review(transport, path, kind, attributes.manifest(), timeout_s), kind)


class TokenReviewer:
    """Turns bearer tokens into users. All calls on the transport's loop."""

    def __init__(
        self, transport: Transport, *, ttl_s: float = CACHE_TTL_S, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._transport = transport
        self._key = secrets.token_bytes(32)
        # A missing user is a value of its own: "this token is nobody's".
        self._cache: _TtlCache[tuple[User | None]] = _TtlCache(ttl_s, now_s)

    async def user_of(self, token: str) -> User | None:
        """Return whose token it is, or None if it is nobody's.

        Raises:
            ReviewUnavailableError: the API server did not answer.
        """
        if not token or len(token) > _MAX_TOKEN_CHARS:
            return None
        key = hmac.digest(self._key, token.encode("utf-8", "surrogateescape"), hashlib.sha256)
        cached = self._cache.get(key)
        if cached is None:
            cached = (await self._ask(token),)
            self._cache.put(key, cached)
        return cached[0]

    async def _ask(self, token: str) -> User | None:
        path = "/apis/authentication.k8s.io/v1/tokenreviews"
        answer = await _review(self._transport, path, "TokenReview", {"token": token})
        try:
            status = msgspec.json.decode(answer, type=_TokenReview).status
        except msgspec.MsgspecError as error:
            raise ReviewUnavailableError("TokenReview was answered with something else") from error
        if status is None or not status.authenticated or status.user is None:
            return None
        user = status.user
        extra = tuple(sorted((key, tuple(values)) for key, values in user.extra.items()))
        return User(user.username, user.uid, tuple(user.groups), extra)


class AccessReviewer:
    """Decides what users may do. All calls on the transport's loop."""

    def __init__(
        self,
        transport: Transport,
        *,
        allowed_ttl_s: float = CACHE_TTL_S,
        denied_ttl_s: float = CACHE_TTL_S,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._transport = transport
        self._denied_ttl_s = denied_ttl_s
        self._cache: _TtlCache[Access] = _TtlCache(allowed_ttl_s, now_s)

    async def access(self, user: User, attributes: NonResource | Resource) -> Access:
        """Return whether the user may do this.

        Raises:
            ReviewUnavailableError: the API server did not answer.
        """
        key = (user, attributes)
        cached = self._cache.get(key)
        if cached is None:
            cached = await self._ask(user, attributes)
            self._cache.put(key, cached, None if cached.is_allowed else self._denied_ttl_s)
        return cached

    async def _ask(self, user: User, attributes: NonResource | Resource) -> Access:
        spec = {
            "user": user.name,
            "uid": user.uid,
            "groups": user.groups,
            "extra": dict(user.extra),
            **attributes.manifest(),
        }
        path, kind = "/apis/authorization.k8s.io/v1/subjectaccessreviews", "SubjectAccessReview"
        return _access_in(await _review(self._transport, path, kind, spec), kind)
