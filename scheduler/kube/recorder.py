"""The event recorder: tells users through Kubernetes events what became of their pods, without costing binds anything.

``emit`` only appends to a bounded queue. From there events are folded into series (``event_series``) and posted: one at
a time, and seldom, while something more urgent is waiting, and up to 16 at a time when nothing is.

States of an event::

    emitted ──queue full──▶ dropped (counted)
        └──▶ queued ──▶ counted in its series, nothing to write
                └─────▶ posted ──ok──▶ done
                          ├─ refused by the server ─▶ dropped (counted, logged)
                          └─ no answer, 429, 5xx, lease not held ─▶ tried again after 10 to 12.5 s, 12 times ─▶ dropped

If the server has no ``events.k8s.io/v1`` (asked once, at the start), events go to ``v1``.

Threads: ``emit`` may be called from any thread; everything else belongs to the loop that runs ``run``.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import msgspec

from scheduler.api.handle import Random
from scheduler.failpoints import async_failpoint
from scheduler.kube.errors import ApiError, KubeError, TransportError
from scheduler.kube.event_series import (
    Event,
    Post,
    Reference,
    SeriesBook,
    core_body,
    core_series,
    events_body,
    events_series,
)
from scheduler.kube.transport import JSON, Transport, raise_for_status
from scheduler.model.kinds import KINDS
from scheduler.model.meta import KubeObject
from scheduler.telemetry.logging import get_logger

__all__ = ["CAPACITY", "NORMAL", "WARNING", "EventMetrics", "EventRecorder", "NullEventMetrics"]

NORMAL: Final = "Normal"
WARNING: Final = "Warning"
# differs: 1,000 upstream, where events of a burst are lost; these wait instead (a kilobyte or two each).
CAPACITY: Final = 10_000

_MERGE_PATCH = "application/merge-patch+json"
_MAX_TRIES = 12
_RETRY_S = 10.0
_RETRY_JITTER = 0.25
_TIMEOUT_S = 4.0
_SWEEP_S = 60.0
_YIELD_STEP_S = 0.005
_YIELD_MAX_S = 0.25
_AT_ONCE = 16
_FOLDED_PER_TURN = 50
_GROUP_PATH = "/apis/events.k8s.io/v1"
_CORE_PATH = "/api/v1"
_log = get_logger(__name__)

_Item = tuple[KubeObject | Reference, KubeObject | Reference | None, str, str, str, str, str, int, bool]


class EventMetrics(Protocol):
    """What the recorder counts; any thread."""

    def event_posted(self, verb: str) -> None: ...
    def event_dropped(self, reason: str) -> None: ...


class NullEventMetrics:
    """Counts nothing."""

    def event_posted(self, verb: str) -> None: ...
    def event_dropped(self, reason: str) -> None: ...


def _never() -> bool:
    return False


def _always(deadline_s: float) -> bool:
    del deadline_s
    return True


class _NotLeadingError(KubeError):
    """The lease's gate is closed; no fault, so it is not worth a warning."""


class EventRecorder:
    """Records events of all profiles of this process.

    Args:
        transport: to the API server; of the loop that runs ``run``.
        hostname: for ``reportingInstance``.
        random: source of jitter.
        metrics: where to count.
        is_busy: says that more urgent writes are waiting; the next post then waits in steps of 5 ms, at most 0.25 s, so
            that events trickle even under constant load.
        may_write: the lease's gate; a standby and a leader that has lost its lease tell nobody anything.
        capacity: events that may wait, retries included.
        now_ns: wall clock.
        sleep: ``asyncio.sleep`` or a fake.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        hostname: str,
        random: Random,
        metrics: EventMetrics | None = None,
        is_busy: Callable[[], bool] = _never,
        may_write: Callable[[float], bool] = _always,
        capacity: int = CAPACITY,
        now_ns: Callable[[], int] = time.time_ns,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._transport = transport
        self._hostname = hostname
        self._random = random
        self._metrics = metrics or NullEventMetrics()
        self._is_busy = is_busy
        self._may_write = may_write
        self._capacity = capacity
        self._now_ns = now_ns
        self._sleep = sleep
        self._queue: deque[_Item] = deque()
        self._book = SeriesBook()
        self._retries: list[tuple[int, int, Post]] = []
        self._ticket = itertools.count()
        self._uses_core = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake: asyncio.Event | None = None
        self._is_idle = False
        self._in_hand = 0
        self._written: asyncio.Event | None = None

    # --- any thread --------------------------------------------------------------------------------------------------

    def emit(
        self,
        regarding: KubeObject | Reference,
        *,
        controller: str,
        kind: str,
        reason: str,
        action: str,
        note: str,
        related: KubeObject | Reference | None = None,
        is_core: bool = False,
    ) -> None:
        """Queue an event; returns at once.

        Args:
            regarding: the object it is about.
            controller: schedulerName of the profile.
            kind: ``Normal`` or ``Warning``.
            reason: why, one word in camel case.
            action: what was done, one word in camel case.
            note: for people; cut to 1,024 bytes.
            related: the other object, such as the preemptor.
            is_core: post to ``v1`` whatever the server has (parity: events about the lease).
        """
        if len(self._queue) + len(self._retries) >= self._capacity:
            self._metrics.event_dropped("queue_full")
            return
        self._queue.append((regarding, related, controller, kind, reason, action, note, self._now_ns(), is_core))
        if self._is_idle and self._loop is not None and self._wake is not None:
            self._is_idle = False
            self._loop.call_soon_threadsafe(self._wake.set)

    @property
    def depth(self) -> int:
        """Return how many events wait."""
        return len(self._queue) + len(self._retries) + self._in_hand

    # --- the loop ----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Post events until cancelled."""
        self._wake, self._written = asyncio.Event(), asyncio.Event()
        self._in_hand = 0
        self._loop = asyncio.get_running_loop()
        try:
            await self._choose_api()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._hand_out(tasks))
                tasks.create_task(self._sweep())
        finally:
            self._loop = None

    async def drain(self, timeout_s: float) -> None:
        """Wait until what is queued has been written, retries excepted, for at most ``timeout_s``."""
        try:
            async with asyncio.timeout(timeout_s):
                while self._queue or self._in_hand:
                    await self._sleep(_YIELD_STEP_S)
        except TimeoutError:
            _log.warning("events were not all written before the end", left=self.depth)

    async def _choose_api(self) -> None:
        while True:
            try:
                raise_for_status(await self._transport.request("GET", _GROUP_PATH, timeout_s=_TIMEOUT_S))
            except TransportError:
                await self._sleep(self._retry_s())
                continue
            except ApiError as error:
                self._uses_core = error.status == 404
                if self._uses_core:
                    _log.info("server has no events.k8s.io/v1, posting core events")
            return

    async def _hand_out(self, tasks: asyncio.TaskGroup) -> None:
        folded = 0
        while True:
            if not self._queue:
                await self._idle()
                continue
            post = self._book.observe(self._event(self._queue.popleft()))
            if post is None:
                folded += 1
                if folded % _FOLDED_PER_TURN == 0:
                    await asyncio.sleep(0)
                continue
            self._in_hand += 1
            await self._yield_to_binds()
            await self._wait_for_place()
            tasks.create_task(self._write_out(post))

    async def _write_out(self, post: Post) -> None:
        assert self._written is not None
        try:
            await self._post(post)
        finally:
            self._in_hand -= 1
            self._written.set()

    async def _wait_for_place(self) -> None:
        """Wait until fewer than 16 posts, the one that waits here aside, have no answer yet."""
        assert self._written is not None
        while self._in_hand > _AT_ONCE:
            self._written.clear()
            await self._written.wait()

    async def _idle(self) -> None:
        assert self._wake is not None
        self._wake.clear()
        self._is_idle = True
        if self._queue:  # emitted between the look and the flag
            return
        await self._wake.wait()

    async def _yield_to_binds(self) -> None:
        waited_s = 0.0
        while self._is_busy() and waited_s < _YIELD_MAX_S:
            await self._sleep(_YIELD_STEP_S)
            waited_s += _YIELD_STEP_S

    async def _sweep(self) -> None:
        """Once in a while: refresh and finish series, try again what failed."""
        swept_ns = self._now_ns()
        while True:
            await self._sleep(self._to_next_retry_s())
            now_ns = self._now_ns()
            while self._retries and self._retries[0][0] <= now_ns:
                _, _, post = heapq.heappop(self._retries)
                await self._post(post)
            if now_ns - swept_ns >= _SWEEP_S * 1e9:
                swept_ns = now_ns
                for post in self._book.due(now_ns):
                    await self._yield_to_binds()
                    await self._post(post)

    def _to_next_retry_s(self) -> float:
        """Return how long no retry can become due: what fails from now on is due after ``_RETRY_S`` at the earliest."""
        if not self._retries:
            return _RETRY_S
        return min(max((self._retries[0][0] - self._now_ns()) / 1e9, _YIELD_STEP_S), _RETRY_S)

    # --- one event ---------------------------------------------------------------------------------------------------

    def _event(self, item: _Item) -> Event:
        regarding, related, controller, kind, reason, action, note, time_ns, is_core = item
        return Event(
            regarding=_reference(regarding),
            related=_reference(related) if related is not None else None,
            controller=controller,
            instance=f"{controller}-{self._hostname}",
            kind=kind,
            reason=reason,
            action=action,
            note=note,
            time_ns=time_ns,
            is_core=is_core,
        )

    async def _post(self, post: Post) -> None:
        await async_failpoint("event.before_send", post)
        try:
            await self._write(post)
        except ApiError as error:
            if error.status == 429 or error.status >= 500 or (error.status == 409 and post.count > 1):
                self._try_later(post, error)
            else:
                self._give_up(post, "rejected", error)
        except KubeError as error:
            self._try_later(post, error)
        except (TypeError, ValueError) as error:  # cannot be encoded; it must not cost the events beside it
            self._give_up(post, "rejected", error)
        else:
            post.tries = 0

    async def _write(self, post: Post) -> None:
        count = post.count
        if count > 1:
            try:
                await self._send("PATCH", post)
            except ApiError as error:
                if error.status != 404:
                    raise
            else:
                post.written_count = count
                return
        await self._send("POST", post)
        post.written_count = count

    async def _send(self, method: str, post: Post) -> None:
        is_core = self._uses_core or post.event.is_core
        path = f"{_CORE_PATH if is_core else _GROUP_PATH}/namespaces/{post.namespace}/events"
        if method == "PATCH":
            body = core_series(post) if is_core else events_series(post)
            path, content_type = f"{path}/{post.name}", _MERGE_PATCH
        else:
            body, content_type = core_body(post) if is_core else events_body(post), JSON
        data = msgspec.json.encode(body)
        if not self._may_write(_TIMEOUT_S):  # before each request: the lease may have ended since the last one's answer
            raise _NotLeadingError("the lease is not held")
        response = await self._transport.request(
            method, path, body=data, content_type=content_type, timeout_s=_TIMEOUT_S
        )
        raise_for_status(response)
        self._metrics.event_posted("patch" if method == "PATCH" else "create")

    def _try_later(self, post: Post, error: KubeError) -> None:
        post.tries += 1
        if post.tries >= _MAX_TRIES or len(self._retries) >= self._capacity:
            self._give_up(post, "retries", error)
            return
        due_ns = self._now_ns() + int(self._retry_s() * 1e9)
        heapq.heappush(self._retries, (due_ns, next(self._ticket), post))

    def _give_up(self, post: Post, reason: str, error: Exception) -> None:
        self._metrics.event_dropped(reason)
        if isinstance(error, _NotLeadingError):
            return
        event = post.event
        regarding = f"{event.regarding.namespace}/{event.regarding.name}"
        # parity: a namespace that is going away takes no events, which nobody needs to hear
        log = _log.debug if "because it is being terminated" in str(error) else _log.warning
        log("event was not written", object=regarding, reason=event.reason, err=str(error))

    def _retry_s(self) -> float:
        return _RETRY_S * (1 + self._random.random() * _RETRY_JITTER)


def _reference(obj: KubeObject | Reference) -> Reference:
    if isinstance(obj, Reference):
        return obj
    info = KINDS[type(obj)]
    meta = obj.metadata
    return Reference(info.kind, info.api_version, meta.namespace, meta.name, meta.uid, meta.resource_version)
