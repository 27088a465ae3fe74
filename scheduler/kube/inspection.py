"""Inspection: what a person would look up with kubectl to see how a cluster stands. Every call is one look."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from scheduler.kube.election import Record, record_of
from scheduler.kube.errors import ApiError, ProtocolError
from scheduler.kube.paging import PAGE_SIZE, all_pages
from scheduler.kube.transport import Response, Transport, raise_for_status

__all__ = ["LeaseSeen", "ServerVersion", "lease_seen", "own_name", "pending_pods", "server_version"]

T = TypeVar("T")

_PENDING = "spec.nodeName=,status.phase!=Succeeded,status.phase!=Failed"


@dataclass(frozen=True, slots=True)
class ServerVersion:
    """What ``/version`` says, e.g. ``v1.36.3`` and (1, 36)."""

    name: str
    number: tuple[int, int]


@dataclass(frozen=True, slots=True)
class LeaseSeen:
    """A lease at the moment of one answer.

    Attributes:
        record: what it says.
        age_s: since the last renewal, by the API server's clock; None if it was never renewed.
    """

    record: Record
    age_s: float | None

    @property
    def is_held(self) -> bool:
        """Say whether it names a holder and has not run out."""
        return bool(self.record.holder) and self.age_s is not None and self.age_s <= self.record.duration_s


class _Version(msgspec.Struct, rename="camel"):
    major: str
    minor: str
    git_version: str


class _UserInfo(msgspec.Struct):
    username: str


class _SelfStatus(msgspec.Struct, rename="camel"):
    user_info: _UserInfo


class _SelfReview(msgspec.Struct):
    status: _SelfStatus


class _PodMeta(msgspec.Struct, rename="camel"):
    deletion_timestamp: str | None = None


class _PodSpec(msgspec.Struct, rename="camel"):
    scheduler_name: str = ""
    node_name: str = ""


class _Pod(msgspec.Struct):
    metadata: _PodMeta
    spec: _PodSpec


class _ListMeta(msgspec.Struct):
    token: str = msgspec.field(name="continue", default="")


class _PodPage(msgspec.Struct):
    metadata: _ListMeta
    items: list[_Pod] | None = None

    @property
    def continue_token(self) -> str:
        return self.metadata.token


async def server_version(transport: Transport, *, timeout_s: float) -> ServerVersion:
    """Return the API server's version.

    Raises:
        KubeError: there is no answer, or another one.
    """
    response = raise_for_status(await transport.request("GET", "/version", timeout_s=timeout_s))
    found = _decode(response, _Version, "/version")
    digits = ["".join(filter(str.isdigit, text)) for text in (found.major, found.minor)]  # some say "36+"
    if not all(digits):
        raise ProtocolError(f"/version was answered with major {found.major!r} and minor {found.minor!r}")
    return ServerVersion(found.git_version, (int(digits[0]), int(digits[1])))


async def own_name(transport: Transport, *, timeout_s: float) -> str:
    """Return the user for whom the API server takes us (SelfSubjectReview).

    Raises:
        KubeError: it does not say; servers before 1.28 need not know this review.
    """
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    body = msgspec.json.encode({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
    response = raise_for_status(await transport.request("POST", path, body=body, timeout_s=timeout_s))
    return _decode(response, _SelfReview, "SelfSubjectReview").status.user_info.username


async def lease_seen(
    transport: Transport,
    namespace: str,
    name: str,
    *,
    timeout_s: float,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> LeaseSeen | None:
    """Return a lease, or None if it does not exist.

    Args:
        transport: to the API server.
        namespace: of the lease.
        name: of the lease.
        timeout_s: for the answer.
        now: the time if the answer does not have that of the API server.

    Raises:
        KubeError: it cannot be read, or understood.
    """
    path = f"/apis/coordination.k8s.io/v1/namespaces/{quote(namespace, safe='')}/leases/{quote(name, safe='')}"
    try:
        response = raise_for_status(await transport.request("GET", path, timeout_s=timeout_s))
    except ApiError as error:
        if error.status == 404:
            return None
        raise
    lease = _decode(response, dict[str, Any], f"Lease {namespace}/{name}")
    try:
        record = record_of(lease)
        renewed = datetime.fromisoformat(record.renew_time) if record.renew_time else None
        # A second's part is missing in the header; a renewal in that second is not one in the future.
        age_s = None if renewed is None else max(0.0, (_time_of(response, now) - renewed).total_seconds())
    except (ValueError, TypeError) as error:  # TypeError: a time without its zone
        raise ProtocolError(f"Lease {namespace}/{name} cannot be understood: {error}") from error
    return LeaseSeen(record, age_s)


async def pending_pods(transport: Transport, *, timeout_s: float) -> Counter[str]:
    """Return how many pods wait for a node, by the ``schedulerName`` that they ask for.

    Pods that are being deleted and pods that have ended do not count; those with scheduling gates do.

    Raises:
        KubeError: they cannot be listed.
    """

    async def read(limit: int, token: str) -> _PodPage:
        query = {"fieldSelector": _PENDING} | ({"limit": str(limit)} if limit else {})
        path = f"/api/v1/pods?{urlencode(query | ({'continue': token} if token else {}))}"
        response = raise_for_status(await transport.request("GET", path, timeout_s=timeout_s))
        return _decode(response, _PodPage, "the list of pods")

    found: Counter[str] = Counter()
    async with aclosing(all_pages(read, PAGE_SIZE)) as pages:
        async for is_first, page in pages:
            if is_first:
                found.clear()
            found.update(
                pod.spec.scheduler_name
                for pod in page.items or ()
                if not pod.spec.node_name and pod.metadata.deletion_timestamp is None
            )
    return found


def _time_of(response: Response, now: Callable[[], datetime]) -> datetime:
    """Return the API server's time, which is nearer to that of the holder than a workstation's."""
    date = response.headers.get("date")
    return parsedate_to_datetime(date) if date else now()


def _decode(response: Response, kind: type[T], what: str) -> T:
    try:
        return msgspec.json.decode(response.body, type=kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ProtocolError(f"{what} was answered with something else: {error}") from None
