"""Confirming: our own binds as the proof that the watch of pods is alive.

A watch whose connection has died without a word is found by its silence after a minute and a half, one that has lost a
line not even then. But the server itself tells us that a pod is bound, and the watch must show that within moments. If
it does not, it does not show what others do either, and whatever is decided may give away a place that is taken.

    all shown ──a bind not shown for 10 s──▶ behind: nothing is decided ──shown after all──▶ all shown
                                               └─ the stream had 10 s ──▶ pods are listed ──▶ all shown

kube-scheduler has no such thing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from scheduler.api import Clock, Lister
from scheduler.kube.reflector import Reflector, list_again
from scheduler.model.delta import Added, Delta, Removed
from scheduler.model.meta import KubeObject
from scheduler.model.pod import Pod
from scheduler.state.cache.cache import Cache
from scheduler.telemetry.logging import get_logger

__all__ = ["PATIENCE_S", "Confirming"]

PATIENCE_S = 10.0
"""A watch this far behind is worse than a list, however large the cluster."""

_LOOK_WHILE_BEHIND_S = 0.05

_log = get_logger(__name__)


class Confirming:
    """Looks whether the watch shows our binds, and has pods listed if it does not.

    Args:
        cache: knows which binds have not been shown.
        pods: as the watch has delivered them.
        reflectors: the watches by kind; filled later.
        apply: takes in what is known of a pod.
        clock: the cache's.
        caught_up: waits until everything that the watches have delivered is in the cache.
        sleep: waits.

    Attributes:
        is_behind: nothing should be decided now.
    """

    def __init__(
        self,
        cache: Cache,
        pods: Lister[Pod],
        reflectors: Mapping[type[KubeObject], Reflector],
        *,
        apply: Callable[[Delta], None],
        clock: Clock,
        caught_up: Callable[[], Awaitable[None]],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.is_behind = False
        self._cache = cache
        self._pods = pods
        self._apply = apply
        self._reflectors = reflectors
        self._clock = clock
        self._caught_up = caught_up
        self._sleep = sleep

    async def run(self) -> None:
        """Look for ever."""
        while True:
            await self._sleep(self._to_next_look_s())
            self._look()
            if self.is_behind and self._reflectors[Pod].stream_age_s >= PATIENCE_S:
                await self._list()

    def _to_next_look_s(self) -> float:
        """Return how long the answer cannot change: a bind from now on is not missed for as long as our patience."""
        if self.is_behind:
            return _LOOK_WHILE_BEHIND_S
        since_s = self._cache.unconfirmed_since_s
        if since_s is None:
            return PATIENCE_S
        return max(since_s + PATIENCE_S - self._clock.now(), 0.0) + _LOOK_WHILE_BEHIND_S

    def _look(self) -> None:
        since_s = self._cache.unconfirmed_since_s
        behind_s = 0.0 if since_s is None else self._clock.now() - since_s
        was_behind, self.is_behind = self.is_behind, behind_s > PATIENCE_S
        if self.is_behind and not was_behind:
            _log.warning("the watch of pods does not show our binds; deciding nothing", behind_s=round(behind_s, 1))
        elif was_behind and not self.is_behind:
            _log.info("the watch of pods shows our binds again; deciding")

    async def _list(self) -> None:
        reflector, asked_s = self._reflectors[Pod], self._clock.now()
        await list_again(reflector, "unconfirmed", self._sleep)
        await self._caught_up()
        # What the list does not confirm (a pod that cannot be understood, say) is not the watch's fault.
        for assumed in self._cache.excuse_unconfirmed(asked_s):
            self._decide_anew_if_unbound(assumed)
        self._look()

    def _decide_anew_if_unbound(self, assumed: Pod) -> None:
        """Believe the list, which is newer than the bind: its answer was a lie, or etcd has been restored since."""
        listed = self._pods.get(assumed.pod_key)
        if listed is None or listed.uid != assumed.uid or listed.node_name:
            return
        _log.warning(
            "the server said that the pod is bound, and lists it as unbound; deciding anew", pod=listed.pod_key
        )
        self._apply(Removed(listed))
        self._apply(Added(listed))
