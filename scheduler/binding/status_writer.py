"""StatusWriter: tells pods why they are pending, without ever being in the way of a bind.

A storm of failing pods would otherwise become a storm of requests. Only the newest word about a pod is kept; a few
requests are under way at a time; and when too many pods wait to be told, the oldest word is dropped and counted: the
pod's next attempt will say it again. Words about one pod are written one after the other, so the newest one stands.

A word that the API server could not take (it was away, or busy) is kept and tried again, unless a newer one has come;
a pod that fits nowhere may not be tried again for minutes, and would be pending without a reason until then.

What a pod says already is not said again. That is judged here and not where the word comes from: a word that
contradicts the last one, which waits, is under way, or was taken and has not been shown by the watch yet, has to be
said although it is what the watch has last shown.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import msgspec

from scheduler.api import Clock, Pod
from scheduler.failpoints import async_failpoint
from scheduler.kube.errors import ApiError, KubeError
from scheduler.kube.transport import Transport
from scheduler.kube.writes import WRITE_TIMEOUT_S, patch_pod_status, status_patch
from scheduler.model.meta import Condition
from scheduler.state.outbox import PatchPodStatus
from scheduler.telemetry.logging import get_logger

__all__ = ["RETRY_S", "StatusWriter"]

RETRY_S = 1.0
"""Pause of a worker whose word the API server could not take."""

_log = get_logger(__name__)


def _any(pod: Pod) -> bool:
    del pod
    return True


class _Said(NamedTuple):
    """What a pod was told; None: nothing."""

    condition: Condition | None
    nominated_node_name: str | None


class StatusWriter:
    """Patches pod conditions and nominations in the background."""

    def __init__(
        self,
        transport: Transport,
        *,
        clock: Clock,
        may_write: Callable[[float], bool],
        on_dropped: Callable[[], None],
        is_pending: Callable[[Pod], bool] = _any,
        workers: int = 8,
        capacity: int = 10_000,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Make a writer.

        Args:
            transport: to the API server.
            clock: dates the conditions.
            may_write: the lease's gate.
            on_dropped: is called for each word that was dropped.
            is_pending: says whether nobody has bound the pod yet, as far as we know: a word of before would deny it.
            workers: requests under way at a time.
            capacity: pods that may wait to be told.
            sleep: waits.
        """
        self._transport = transport
        self._clock = clock
        self._may_write = may_write
        self._on_dropped = on_dropped
        self._is_pending = is_pending
        self._workers = workers
        self._capacity = capacity
        self._sleep = sleep
        self._waiting: OrderedDict[str, PatchPodStatus] = OrderedDict()
        self._writing: dict[str, bool] = {}  # by UID: whether the word is still wanted, should it fail
        self._broken: set[str] = set()
        self._said: OrderedDict[str, _Said] = OrderedDict()  # by UID: last sent, and perhaps not shown by the watch yet
        self._news = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, patch: PatchPodStatus) -> None:
        """Have the pod told, unless it says so already; replaces what was waiting for the same pod."""
        uid = patch.pod.uid
        if uid not in self._waiting and uid not in self._writing and self._is_known(patch):
            return
        earlier = self._waiting.pop(uid, None)
        self._waiting[uid] = patch if earlier is None else _merged(earlier, patch)
        if len(self._waiting) > self._capacity:
            self._waiting.popitem(last=False)
            self._on_dropped()
        self._wake()

    def withdraw(self, uid: str) -> None:
        """Forget what waits to be told about a pod: it is on its way to a node, so the reasons against it are stale."""
        self._waiting.pop(uid, None)
        if uid in self._writing:
            self._writing[uid] = False

    async def fall_silent(self, uid: str) -> None:
        """Come back when nothing waits to be told or is being told about a pod: the bind has the last word."""
        self.withdraw(uid)
        while uid in self._writing:
            await self._news.wait()

    async def nominate(self, pod: Pod, node_name: str) -> None:
        """Write the nomination of a pod whose binding will take time, and wait for it; failures are logged."""
        while pod.uid in self._writing:
            await self._news.wait()
        patch = PatchPodStatus(pod, None, node_name)
        # What waits to be told is older; written later it would undo this.
        earlier = self._waiting.pop(pod.uid, None)
        await self._write(patch if earlier is None else _merged(earlier, patch))

    async def run(self) -> None:
        """Write until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._workers):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            patch = self._take()
            if patch is None:
                await self._news.wait()
            elif not await self._write(patch):
                self._put_back(patch)
                await self._sleep(RETRY_S)

    def _put_back(self, patch: PatchPodStatus) -> None:
        """Keep the word for later; what has been said about the pod meanwhile is newer."""
        newer = self._waiting.get(patch.pod.uid)
        self._waiting[patch.pod.uid] = patch if newer is None else _merged(patch, newer)

    def _take(self) -> PatchPodStatus | None:
        """Take the oldest word about a pod that nobody writes to at the moment."""
        uid = next((uid for uid in self._waiting if uid not in self._writing), None)
        return None if uid is None else self._waiting.pop(uid)

    async def _write(self, patch: PatchPodStatus) -> bool:
        """Write a word; returns whether that is settled: it was taken or refused, or should not be said any more."""
        if not self._may_write(WRITE_TIMEOUT_S):
            return False
        if not self._is_pending(patch.pod):
            return True
        uid = patch.pod.uid
        self._writing[uid] = True
        pod = self._as_said(patch)
        self._note(patch)
        try:
            await async_failpoint("status.before_patch", patch.pod)
            await patch_pod_status(
                self._transport,
                pod,
                patch.condition,
                patch.nominated_node_name,
                now_s=self._clock.now(),
                may_retry=lambda: self._may_write(WRITE_TIMEOUT_S) and self._is_pending(patch.pod),
            )
            self._broken.discard(uid)
        except KubeError as error:
            if _is_passing(error):
                _log.debug("pod status not written yet", pod=patch.pod.pod_key, err=str(error))
                return not self._writing[uid]
            _log.warning("pod status not written", pod=patch.pod.pod_key, err=str(error))
        except Exception as bug:  # noqa: BLE001  supervisor: it must not cost what others are to be told
            _log.error("pod status broke", pod=patch.pod.pod_key, err=repr(bug))
            return not self._writing[uid] or self._has_broken_before(uid)
        finally:
            del self._writing[uid]
            self._wake()
        return True

    def _has_broken_before(self, uid: str) -> bool:
        """Note that the word about a pod could not be written by a bug; one that repeats itself is given up."""
        if uid in self._broken:
            self._broken.discard(uid)
            return True
        self._broken.add(uid)
        return False

    def _is_known(self, patch: PatchPodStatus) -> bool:
        now_s = self._clock.now()
        return status_patch(self._as_said(patch), patch.condition, patch.nominated_node_name, now_s) is None

    def _as_said(self, patch: PatchPodStatus) -> Pod:
        """Return the pod with what was said last and is to be contradicted now, be it shown by the watch or not.

        What is only to be repeated is left as the watch shows it: the API server may not have taken it.
        """
        said = self._said.get(patch.pod.uid)
        if said is None:
            return patch.pod
        pod = patch.pod
        if said.condition is not None and not _is_same(patch.condition, said.condition):
            conditions = _with(said.condition, pod.status.conditions)
            pod = msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, conditions=conditions))
        if said.nominated_node_name is not None and said.nominated_node_name != patch.nominated_node_name:
            pod = pod.nominated_to(said.nominated_node_name)
        return pod

    def _note(self, patch: PatchPodStatus) -> None:
        """Remember what is being said; it may be true from now on, whatever the answer."""
        earlier = self._said.pop(patch.pod.uid, _Said(None, None))
        self._said[patch.pod.uid] = _Said(
            patch.condition or earlier.condition,
            earlier.nominated_node_name if patch.nominated_node_name is None else patch.nominated_node_name,
        )
        if len(self._said) > self._capacity:
            self._said.popitem(last=False)

    def _wake(self) -> None:
        """Let all who wait for news look again."""
        self._news.set()
        self._news = asyncio.Event()


def _is_passing(error: KubeError) -> bool:
    """Tell whether the API server may take the same word later."""
    if isinstance(error, ApiError):
        return error.status >= 500 or error.status in {401, 408, 429}
    return True


def _is_same(condition: Condition | None, other: Condition) -> bool:
    """Tell whether a word repeats another, or says nothing about it."""
    return condition is None or (condition.status, condition.reason, condition.message) == (
        other.status,
        other.reason,
        other.message,
    )


def _with(said: Condition, conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
    """Return a pod's conditions with one of them as it was said; the time of its last transition stays."""
    shown = next((condition for condition in conditions if condition.type == said.type), None)
    if shown is not None and shown.status == said.status:
        said = msgspec.structs.replace(said, last_transition_time=shown.last_transition_time)
    return (*(condition for condition in conditions if condition.type != said.type), said)


def _merged(earlier: PatchPodStatus, later: PatchPodStatus) -> PatchPodStatus:
    """Return the later word, with what it leaves open taken from the earlier one."""
    nominated = later.nominated_node_name if later.nominated_node_name is not None else earlier.nominated_node_name
    return PatchPodStatus(later.pod, later.condition or earlier.condition, nominated)
