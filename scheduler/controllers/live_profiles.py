"""Live profiles: keeps the profile map as the SchedulerProfile objects say, and tells them what became of it.

    kopf: something changed ─┐
    every 30 s ──────────────┼─▶ list ─▶ judge ─▶ plan ─▶ import packages ─▶ change the map ─▶ write statuses (leader)
    about to lead ───────────┘                            (own thread)       (scheduling thread,
                                                                              between two decisions)

Every replica follows the objects, so that a standby that becomes leader has the versions that served before; only the
leader writes. What cannot be read changes nothing: without the API server, the rights or the resource's definition the
profiles that are live stay live. All methods are for the service thread.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Protocol

import msgspec

from scheduler.config.errors import ConfigError
from scheduler.config.gates import FeatureGates
from scheduler.config.types import Profile, SchedulerConfiguration
from scheduler.controllers.objects import COLLECTION, SchedulerProfile, decode_list, status_path
from scheduler.controllers.reconcile import Serving, Verdict, judge, plan
from scheduler.controllers.status import OUTDATED, REFUSED, SERVING, merge_of, reason_of, status_of
from scheduler.framework.profile import Resolved
from scheduler.kube.errors import ApiError, KubeError
from scheduler.kube.transport import MERGE_PATCH, Transport, raise_for_status
from scheduler.telemetry.logging import get_logger

__all__ = ["Answers", "LiveProfiles", "LiveProfilesMetrics", "ProfileHost", "Watch"]

_log = get_logger(__name__)

Answers = Mapping[str, Resolved | ConfigError]
"""By scheduler name: what a profile resolved to, or everything that is wrong with it."""

_TIMEOUT_S = 5.0
_IMPORT_S = 10.0
_SETTLE_S = 0.05
_FAILED_S = 2.0
_COUNT_EVERY_S = 30.0
_FIRST_RETRY_S = 30.0
_LONGEST_RETRY_S = 600.0


class ProfileHost(Protocol):
    """The scheduler, seen from here."""

    def is_imported(self, plugin: str) -> bool:
        """Say whether a plugin's package need not be imported (any more)."""

    async def preload(self, plugin: str) -> None:
        """Import a plugin's package, away from the scheduling thread."""

    async def apply(self, puts: Sequence[Profile], removes: Sequence[str]) -> Answers:
        """Change the profile map between two decisions."""

    def pods_scheduled(self, scheduler_name: str) -> float:
        """Return how many pods of this name the process has scheduled; may begin again at zero."""


class Watch(Protocol):
    """What says that something changed."""

    @property
    def is_running(self) -> bool:
        """Say whether it is at work."""

    @property
    def problem(self) -> str:
        """Return why it last ended; "" while it runs."""

    def start(self) -> None:
        """Begin; if it has begun and waits before it tries again, let it try now."""

    def stop(self) -> None:
        """End."""


class LiveProfilesMetrics(Protocol):
    """Where it is measured; any thread."""

    def live_profiles(self, counts: Mapping[str, int]) -> None:
        """Show how many objects are in which state."""

    def live_profile_error(self, operation: str) -> None:
        """Count a failure of ``list``, ``apply``, ``status`` or ``watch``."""


@dataclass(slots=True)
class _Failed:
    """A generation whose profile could not be made; it is tried again, ever more rarely."""

    generation: int
    problems: tuple[str, ...]
    again_s: float
    pause_s: float = _FIRST_RETRY_S


@dataclass(slots=True)
class _Count:
    """Pods scheduled under an object: what its status said when we first wrote it, and what came since."""

    total: int
    last: float
    shown_s: float = float("-inf")


@dataclass(slots=True, kw_only=True)
class LiveProfiles:
    """See the module.

    Attributes:
        transport: to the API server, on the service thread's loop.
        host: the scheduler.
        configuration: of the file.
        gates: feature gates.
        metrics: where it is measured.
        may_write: says whether this process leads and may write for so many seconds more.
        resync_s: the objects are listed at least this often.
        watch: kopf; set before ``run``.
    """

    transport: Transport
    host: ProfileHost
    configuration: SchedulerConfiguration
    gates: FeatureGates
    metrics: LiveProfilesMetrics
    may_write: Callable[[float], bool]
    resync_s: float
    watch: Watch
    monotonic: Callable[[], float] = time.monotonic
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _serving: dict[str, Serving] = field(default_factory=dict)
    _failed: dict[str, _Failed] = field(default_factory=dict)
    _counts: dict[str, _Count] = field(default_factory=dict)
    _imports: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _states: dict[str, int] = field(default_factory=dict)
    _problem: str = "not listed yet"
    _listed_s: float | None = None

    def changed(self) -> None:
        """Look at the objects soon; on this loop."""
        self._changed.set()

    async def run(self) -> None:
        """Follow the objects until cancelled."""
        try:
            while True:
                is_ok = await self._reconcile()
                await self._wait(self.resync_s if is_ok else min(_FAILED_S, self.resync_s))
        finally:
            self.watch.stop()

    async def sync(self, timeout_s: float) -> None:
        """Take over what the objects say now; gives up waiting after a while, as scheduling must not hang on it."""
        task = asyncio.get_running_loop().create_task(self._reconcile(is_telling=False))
        await asyncio.wait({task}, timeout=timeout_s)
        self._changed.set()  # the statuses are still to be written
        if not task.done():
            _log.warning("live profiles are not known yet, scheduling begins without them", waited_s=timeout_s)

    def lines(self) -> list[str]:
        """Return what ``/readyz?verbose`` shows."""
        counts = ", ".join(f"{self._states.get(s, 0)} {s.lower()}" for s in (SERVING, OUTDATED, REFUSED))
        age = "never listed" if self._listed_s is None else f"listed {self.monotonic() - self._listed_s:.0f}s ago"
        lines = [f"live profiles: {counts}, {age}, watch {'running' if self.watch.is_running else 'not running'}"]
        lines += [f"live profiles: {text}" for text in (self._problem, self.watch.problem) if text]
        return lines

    # --- inside ------------------------------------------------------------------------------------------------------

    async def _wait(self, longest_s: float) -> None:
        try:
            async with asyncio.timeout(longest_s):
                await self._changed.wait()
        except TimeoutError:
            return
        await asyncio.sleep(_SETTLE_S)  # changes come in groups

    async def _reconcile(self, *, is_telling: bool = True) -> bool:
        """Do one round; a failure is logged and counted, and leaves what is live as it is."""
        async with self._lock:
            self._changed.clear()
            try:
                told = await self._round()
                for obj, serving, problems in told if is_telling else ():
                    await self._tell(obj, serving, problems)
            except KubeError as error:
                self._note_problem("list", _explained(error))
            except Exception as error:  # noqa: BLE001  supervisor: the next round may do better
                self._note_problem("apply", repr(error))
            else:
                if self._problem:
                    _log.info("live profiles are followed", **self._states)
                self._problem = ""
            return not self._problem

    def _note_problem(self, operation: str, problem: str) -> None:
        self.metrics.live_profile_error(operation)
        if problem != self._problem:
            _log.warning("live profiles cannot be followed, those that are live stay", operation=operation, err=problem)
        self._problem = problem

    async def _round(self) -> list[tuple[SchedulerProfile, Serving | None, tuple[str, ...]]]:
        """Bring the profile map up to date; returns what the statuses are made from."""
        response = await self.transport.request("GET", COLLECTION, timeout_s=_TIMEOUT_S)
        objects = decode_list(raise_for_status(response).body)
        self._listed_s = self.monotonic()
        if not self.watch.is_running:
            self.watch.start()
        verdicts = judge(objects, self.configuration, self.gates)
        problems = {v.obj.metadata.uid: v.problems for v in verdicts}
        problems |= await self._change(verdicts)
        self._forget_others(problems.keys())
        serving = {live.uid: live for live in self._serving.values()}
        self._count_states([reason_of(serving.get(uid), found) for uid, found in problems.items()])
        return [(obj, serving.get(obj.metadata.uid), problems[obj.metadata.uid]) for obj in objects]

    async def _change(self, verdicts: list[Verdict]) -> dict[str, tuple[str, ...]]:
        """Bring the profile map up to date; returns what is wrong with objects whose profile could not be made."""
        planned = plan(verdicts, self._serving)
        for name, verdict in planned.same.items():
            meta = verdict.obj.metadata
            self._serving[name] = replace(self._serving[name], uid=meta.uid, generation=meta.generation)
        puts = [verdict for verdict in planned.puts if self._is_due(verdict)]
        if puts or planned.removes:
            await self._carry_out(puts, planned.removes)
        return {
            v.obj.metadata.uid: self._failed[v.obj.metadata.uid].problems
            for v in planned.puts
            if v.obj.metadata.uid in self._failed
        }

    async def _carry_out(self, puts: list[Verdict], removes: Sequence[str]) -> None:
        for verdict in puts:
            self._counted(verdict.obj)
        await self._import({name for verdict in puts for name in _plugins(verdict)})
        ready = [verdict for verdict in puts if self._imports.keys().isdisjoint(_plugins(verdict))]
        answers = await self.host.apply([v.profile for v in ready if v.profile is not None], removes)
        for name in removes:
            del self._serving[name]
        for verdict in puts:
            assert verdict.profile is not None
            name, meta = verdict.profile.scheduler_name, verdict.obj.metadata
            answer = answers[name] if verdict in ready else self._still_importing(verdict)
            if isinstance(answer, ConfigError):
                self._note_failed(verdict, answer, is_final=verdict in ready)
            else:
                self._failed.pop(meta.uid, None)
                self._serving[name] = Serving(meta.uid, meta.generation, verdict.profile, answer)

    async def _import(self, plugins: set[str]) -> None:
        """Have packages imported, and wait for them a while; one that takes longer is not begun a second time."""
        begun = [name for name in sorted(plugins) if name not in self._imports and not self.host.is_imported(name)]
        for name in begun:
            task = self._imports[name] = asyncio.get_running_loop().create_task(self.host.preload(name))
            task.add_done_callback(functools.partial(self._imported, name))
        if begun:
            await asyncio.wait([self._imports[name] for name in begun], timeout=_IMPORT_S)
            await asyncio.sleep(0)  # lets the callbacks of those that are done run

    def _imported(self, name: str, task: asyncio.Task[None]) -> None:
        del self._imports[name]
        if not task.cancelled() and task.exception() is not None:
            _log.error("import of a plugin's package broke", plugin=name, err=repr(task.exception()))
        self._changed.set()

    def _still_importing(self, verdict: Verdict) -> ConfigError:
        names = ", ".join(sorted(_plugins(verdict) & self._imports.keys()))
        return ConfigError([f"the package of {names} is still being imported after {_IMPORT_S:.0f} s"])

    def _is_due(self, verdict: Verdict) -> bool:
        failed = self._failed.get(verdict.obj.metadata.uid)
        return (
            failed is None or failed.generation != verdict.obj.metadata.generation or self.monotonic() >= failed.again_s
        )

    def _note_failed(self, verdict: Verdict, error: ConfigError, *, is_final: bool) -> None:
        meta = verdict.obj.metadata
        known = self._failed.get(meta.uid)
        if not is_final:
            self._failed[meta.uid] = _Failed(meta.generation, error.problems, float("-inf"))
            return
        pause_s = _FIRST_RETRY_S
        if known is not None and known.generation == meta.generation:
            pause_s = min(known.pause_s * 2.0, _LONGEST_RETRY_S)
        self._failed[meta.uid] = _Failed(meta.generation, error.problems, self.monotonic() + pause_s, pause_s)
        _log.warning(
            "live profile refused", profile=verdict.obj.scheduler_name, object=verdict.obj.name, err=str(error)
        )

    def _forget_others(self, uids: Collection[str]) -> None:
        for known in (self._failed, self._counts):
            for uid in [uid for uid in known if uid not in uids]:
                del known[uid]

    def _count_states(self, reasons: list[str]) -> None:
        self._states = {state: reasons.count(state) for state in (SERVING, OUTDATED, REFUSED)}
        self.metrics.live_profiles({state.lower(): count for state, count in self._states.items()})

    # --- statuses ----------------------------------------------------------------------------------------------------

    async def _tell(self, obj: SchedulerProfile, serving: Serving | None, problems: tuple[str, ...]) -> None:
        """Write the object's status if this process leads and it says something new."""
        if not self.may_write(_TIMEOUT_S):
            self._counts.pop(obj.metadata.uid, None)
            return
        known = obj.known_status
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        count = self._counted(obj)
        status = status_of(obj, serving, problems, pods_scheduled=count.total, now=now)
        differing = {key for key, value in status.items() if known.get(key) != value}
        is_count_due = self.monotonic() - count.shown_s >= _COUNT_EVERY_S
        if not differing or (differing == {"podsScheduled"} and not is_count_due):
            return
        body = msgspec.json.encode({"status": merge_of(known, status)})
        try:
            response = await self.transport.request(
                "PATCH", status_path(obj.name), body=body, content_type=MERGE_PATCH, timeout_s=_TIMEOUT_S
            )
            raise_for_status(response)
        except KubeError as error:
            if isinstance(error, ApiError) and error.status == 404:
                return  # deleted since it was listed
            self.metrics.live_profile_error("status")
            _log.warning("status of a live profile not written", object=obj.name, err=str(error))
        else:
            count.shown_s = self.monotonic()

    def _counted(self, obj: SchedulerProfile) -> _Count:
        """Bring the object's count up to date; it goes on from what an earlier leader has written."""
        now = self.host.pods_scheduled(obj.scheduler_name)
        count = self._counts.get(obj.metadata.uid)
        if count is None:
            known = obj.known_status.get("podsScheduled")
            count = self._counts[obj.metadata.uid] = _Count(known if isinstance(known, int) else 0, now)
        count.total += int(now - count.last) if now >= count.last else int(now)
        count.last = now
        return count


def _plugins(verdict: Verdict) -> set[str]:
    return set() if verdict.profile is None else set(verdict.profile.plugins.names())


def _explained(error: KubeError) -> str:
    if isinstance(error, ApiError) and error.status == 404:
        return f"the API server has no {COLLECTION}: apply deploy/crds/schedulerprofiles.yaml"
    if isinstance(error, ApiError) and error.status == 403:
        return f"no right to list schedulerprofiles ({error.message})"
    return str(error)
