"""Writes: the few changes that a scheduler makes, one function each.

Every function sends prepared JSON and either returns what is certain or raises; none turns an unknown outcome into a
known one. ``TransportError.sent`` and the status of an ``ApiError`` reach the caller, who settles what is open
(``binding.outcome`` for binds).

Pods are always addressed with their UID as well, so a pod that was re-created under the same name is never touched.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from scheduler.kube.errors import ApiError, KubeError, ProtocolError, TransportError
from scheduler.kube.paths import pod_path
from scheduler.kube.transport import MERGE_PATCH, STRATEGIC_MERGE_PATCH, Response, Transport, raise_for_status
from scheduler.model.decode import decode_object
from scheduler.model.delta import Rejected
from scheduler.model.kinds import KINDS
from scheduler.model.meta import Condition, KubeObject
from scheduler.model.pod import Pod

__all__ = [
    "WRITE_TIMEOUT_S",
    "Assignment",
    "WriteResult",
    "bind",
    "create_event",
    "delete_pod",
    "get_pod",
    "patch_event",
    "patch_object",
    "patch_pod_status",
    "read_assignment",
    "status_patch",
]

WRITE_TIMEOUT_S = 4.0
"""Writes end after this; the server is told, so that it does not go on with what we have given up."""

K = TypeVar("K", bound=KubeObject)

_PATCH_STEPS = 4
_PATCH_DELAY_S = 0.01
_PATCH_FACTOR = 5.0
_EVENTS = "/apis/events.k8s.io/v1/namespaces/"


class WriteResult(enum.Enum):
    """What a status patch or a deletion came to."""

    DONE = "done"
    UNCHANGED = "unchanged"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Assignment:
    """Where a pod is, read from the API server.

    Attributes:
        uid: of the pod that has the name now.
        node_name: "" while it is not bound.
    """

    uid: str
    node_name: str


class _BindingMeta(msgspec.Struct):
    name: str
    namespace: str
    uid: str


class _Target(msgspec.Struct):
    name: str
    kind: str = "Node"


class _Binding(msgspec.Struct, rename="camel"):
    metadata: _BindingMeta
    target: _Target
    api_version: str = "v1"
    kind: str = "Binding"


class _Outcome(msgspec.Struct):
    kind: str
    status: str = ""


class _PodMeta(msgspec.Struct):
    uid: str


class _PodSpec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _PodIdentity(msgspec.Struct):
    metadata: _PodMeta
    spec: _PodSpec = msgspec.field(default_factory=_PodSpec)


_encode = msgspec.json.Encoder().encode
_decode_outcome = msgspec.json.Decoder(_Outcome).decode
_decode_identity = msgspec.json.Decoder(_PodIdentity).decode


async def bind(transport: Transport, pod: Pod, node_name: str, *, timeout_s: float = WRITE_TIMEOUT_S) -> None:
    """Bind ``pod`` to a node; returning means that it is bound.

    Raises:
        ApiError: the server refused, or failed on the way (5xx: perhaps after the write).
        TransportError: no answer; ``sent`` says whether the pod may be bound.
        ProtocolError: an answer, but not the API server's; the pod may be bound.
    """
    meta = pod.metadata
    body = _encode(_Binding(_BindingMeta(meta.name, meta.namespace, meta.uid), _Target(node_name)))
    path = f"{pod_path(meta.namespace, meta.name, '/binding')}?timeout={timeout_s:g}s"
    response = raise_for_status(await transport.request("POST", path, body=body, timeout_s=timeout_s))
    if not _is_success(response.body):
        # Something in between answered for the server; a login page, say, is 200 to whatever is asked.
        raise ProtocolError(f"not an answer to a bind: {meta.namespace}/{meta.name}: {response.status}")


async def get_pod(
    transport: Transport, namespace: str, name: str, *, timeout_s: float = WRITE_TIMEOUT_S
) -> Pod | Rejected | None:
    """Read a pod as it is now (a quorum read); None if there is none of that name.

    Raises:
        ApiError: the server refused.
        TransportError: no answer.
    """
    response = await _get(transport, namespace, name, timeout_s)
    return None if response is None else decode_object(Pod, response.body)


async def read_assignment(
    transport: Transport, namespace: str, name: str, *, timeout_s: float = WRITE_TIMEOUT_S
) -> Assignment | None:
    """Read who has the name now and where it is bound (a quorum read); None if there is no such pod.

    Unlike ``get_pod`` it works for pods whose other fields we cannot understand.

    Raises:
        ApiError: the server refused.
        TransportError: no answer.
        ProtocolError: the answer is not a pod.
    """
    response = await _get(transport, namespace, name, timeout_s)
    if response is None:
        return None
    try:
        pod = _decode_identity(response.body)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise ProtocolError(f"not a pod: {namespace}/{name}: {error}") from error
    return Assignment(pod.metadata.uid, pod.spec.node_name)


def status_patch(pod: Pod, condition: Condition | None, nominated_node_name: str | None, now_s: float) -> bytes | None:
    """Return the strategic merge patch that sets a condition and the nomination, or None if nothing would change.

    parity: ``lastTransitionTime`` moves only with the condition's status; a patch is made only if status, reason,
    message or probe time changed, or the nomination did.

    Args:
        pod: the newest version known.
        condition: to set; None leaves conditions alone.
        nominated_node_name: to set, "" to clear; None leaves it.
        now_s: seconds since the epoch, for ``lastTransitionTime``.
    """
    status: dict[str, object] = {}
    if condition is not None and (entry := _condition_entry(pod, condition, now_s)) is not None:
        status["conditions"] = [entry]
    if nominated_node_name is not None and nominated_node_name != pod.status.nominated_node_name:
        status["nominatedNodeName"] = nominated_node_name or None
    # differs: upstream patches by name alone, and can so mark a pod that was re-created meanwhile.
    return _encode({"metadata": {"uid": pod.uid}, "status": status}) if status else None


def _always() -> bool:
    return True


async def patch_pod_status(
    transport: Transport,
    pod: Pod,
    condition: Condition | None,
    nominated_node_name: str | None = None,
    *,
    now_s: float,
    may_retry: Callable[[], bool] = _always,
    timeout_s: float = WRITE_TIMEOUT_S,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> WriteResult:
    """Set the pod's condition and nomination; see ``status_patch`` for the arguments.

    ``may_retry`` is asked before each request but the first: the lease may have ended meanwhile.

    parity: tried 4 times, with delays from 10 ms on that grow fivefold, while the server has an internal error, is
    unavailable, reports a conflict or refuses connections.

    Raises:
        ApiError: the server refused to the end.
        TransportError: no answer.
    """
    body = status_patch(pod, condition, nominated_node_name, now_s)
    if body is None:
        return WriteResult.UNCHANGED
    path = f"{pod_path(pod.namespace, pod.name, '/status')}?timeout={timeout_s:g}s"
    delay_s = _PATCH_DELAY_S
    for _ in range(_PATCH_STEPS - 1):
        try:
            return await _patch_status_once(transport, path, body, timeout_s)
        except KubeError as error:
            if not _is_retriable(error):
                raise
            await sleep(delay_s)
            if not may_retry():
                raise
        delay_s *= _PATCH_FACTOR
    return await _patch_status_once(transport, path, body, timeout_s)


async def delete_pod(transport: Transport, pod: Pod, *, timeout_s: float = WRITE_TIMEOUT_S) -> WriteResult:
    """Delete a preempted pod, gracefully; GONE if it, or this UID of it, does not exist any more.

    differs: upstream deletes by name alone.

    Raises:
        ApiError: the server refused.
        TransportError: no answer.
    """
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": pod.uid}}
    path = f"{pod_path(pod.namespace, pod.name)}?timeout={timeout_s:g}s"
    response = await transport.request("DELETE", path, body=_encode(options), timeout_s=timeout_s)
    if response.status == 404:
        return WriteResult.GONE
    try:
        raise_for_status(response)
    except ApiError as error:
        if error.status == 409 and "uid" in error.message.lower():
            return WriteResult.GONE  # another pod has the name now
        raise
    return WriteResult.DONE


async def patch_object(
    transport: Transport, obj: K, changes: Mapping[str, Any], *, timeout_s: float = WRITE_TIMEOUT_S
) -> K:
    """Change an object with a JSON merge patch and return it as the server has it then.

    Fields that the patch does not name stay, also those that we do not know. A ``metadata.resourceVersion`` in the
    patch makes the server refuse (409) if the object has changed since.

    Raises:
        ApiError: the server refused.
        TransportError: no answer; ``sent`` says whether the object may be changed.
        ProtocolError: the answer is not such an object.
    """
    kind = type(obj)
    path = KINDS[kind].object_path(quote(obj.namespace, safe=""), quote(obj.name, safe=""))
    response = await transport.request(
        "PATCH",
        f"{path}?timeout={timeout_s:g}s",
        body=_encode(changes),
        content_type=MERGE_PATCH,
        timeout_s=timeout_s,
    )
    answer = decode_object(kind, raise_for_status(response).body)
    if isinstance(answer, Rejected):
        raise ProtocolError(f"not a {kind.__name__}: {obj.key}: {answer.reason}")
    return answer


async def create_event(
    transport: Transport, namespace: str, body: bytes, *, timeout_s: float = WRITE_TIMEOUT_S
) -> None:
    """Create an ``events.k8s.io/v1`` Event.

    Raises:
        ApiError: the server refused, e.g. because the namespace is terminating.
        TransportError: no answer.
    """
    path = f"{_EVENTS}{namespace}/events?timeout={timeout_s:g}s"
    raise_for_status(await transport.request("POST", path, body=body, timeout_s=timeout_s))


async def patch_event(
    transport: Transport, namespace: str, name: str, body: bytes, *, timeout_s: float = WRITE_TIMEOUT_S
) -> WriteResult:
    """Patch an Event with a strategic merge patch (its series); GONE if it has expired.

    Raises:
        ApiError: the server refused.
        TransportError: no answer.
    """
    path = f"{_EVENTS}{namespace}/events/{name}?timeout={timeout_s:g}s"
    response = await transport.request(
        "PATCH", path, body=body, content_type=STRATEGIC_MERGE_PATCH, timeout_s=timeout_s
    )
    if response.status == 404:
        return WriteResult.GONE
    raise_for_status(response)
    return WriteResult.DONE


def _is_success(body: bytes) -> bool:
    """Tell whether a body is the Status with which the API server says that it has done something."""
    try:
        outcome = _decode_outcome(body)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return False
    return outcome.kind == "Status" and outcome.status != "Failure"


async def _get(transport: Transport, namespace: str, name: str, timeout_s: float) -> Response | None:
    response = await transport.request("GET", pod_path(namespace, name), timeout_s=timeout_s)
    return None if response.status == 404 else raise_for_status(response)


async def _patch_status_once(transport: Transport, path: str, body: bytes, timeout_s: float) -> WriteResult:
    response = await transport.request(
        "PATCH", path, body=body, content_type=STRATEGIC_MERGE_PATCH, timeout_s=timeout_s
    )
    if response.status == 404:
        return WriteResult.GONE
    try:
        raise_for_status(response)
    except ApiError as error:
        if error.status in {409, 422} and "metadata.uid" in error.message:
            return WriteResult.GONE  # another pod has the name now
        raise
    return WriteResult.DONE


def _is_retriable(error: KubeError) -> bool:
    if isinstance(error, ApiError):
        return error.is_retriable
    return isinstance(error, TransportError) and error.refused


def _condition_entry(pod: Pod, condition: Condition, now_s: float) -> dict[str, object] | None:
    old = next((entry for entry in pod.status.conditions if entry.type == condition.type), None)
    transition_time = _rfc3339(now_s)
    if old is not None and old.status == condition.status:
        if _compared(old) == _compared(condition):
            return None
        transition_time = old.last_transition_time or transition_time
    entry: dict[str, object] = {
        "type": condition.type,
        "status": condition.status,
        "lastProbeTime": condition.last_probe_time,
        "lastTransitionTime": transition_time,
    }
    for field in ("reason", "message"):
        value = getattr(condition, field)
        if value or (old is not None and getattr(old, field)):
            entry[field] = value or None  # null removes what the earlier condition said
    if generation := condition.observed_generation or pod.metadata.generation:
        entry["observedGeneration"] = generation
    return entry


def _compared(condition: Condition) -> tuple[str, str, str | None]:
    return condition.reason, condition.message, condition.last_probe_time


def _rfc3339(now_s: float) -> str:
    return datetime.fromtimestamp(now_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
