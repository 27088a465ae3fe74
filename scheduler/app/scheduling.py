"""The scheduling thread: one loop that reads the watches, turns the core and carries decisions out.

Everything that touches cache or queue runs here, so nothing needs a lock. Other threads only read a few numbers, set
flags that are single words, or post commands to the inbox.

    start ─▶ watching ─▶ (leading and synced) deciding ─▶ stop_deciding ─▶ drained ─▶ ended
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import socket
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

import uvloop

from scheduler.api import Eviction, Pod, Status
from scheduler.app.background import in_thread
from scheduler.app.comparing import Comparing, compare_cache
from scheduler.app.confirming import Confirming
from scheduler.app.connecting import bind_limit, connect_by_http
from scheduler.app.core import Core, Surroundings
from scheduler.app.driver import Driver
from scheduler.app.dump import dump
from scheduler.app.extenders import originals_of, verbs_of
from scheduler.app.kinds import is_optional
from scheduler.app.outside import GC_THRESHOLDS_BEFORE_SYNC, Outside
from scheduler.app.supervising import VitalTasks, keep_running
from scheduler.app.taking_over import TakingOver
from scheduler.binding.bind_call import BindCall
from scheduler.binding.binder import Binder
from scheduler.binding.evict_call import EvictCall
from scheduler.binding.evictor import Evictor
from scheduler.binding.extender_bind import ExtenderBinding
from scheduler.binding.node_check import NodeCheck
from scheduler.binding.patch_call import PatchCall
from scheduler.binding.status_writer import StatusWriter
from scheduler.config.flags import CompletedConfig
from scheduler.framework.registry import Registry
from scheduler.kube.credentials import Credentials
from scheduler.kube.event_series import Reference
from scheduler.kube.loop_errors import take_loop_error
from scheduler.kube.recorder import NORMAL, EventRecorder
from scheduler.kube.reflector import Reflector, ReflectorSettings
from scheduler.kube.transport import Transport
from scheduler.kube.writes import WRITE_TIMEOUT_S, read_assignment
from scheduler.model.meta import KubeObject
from scheduler.state.inbox import Inbox
from scheduler.state.outbox import EmitEvent, Instruction, PatchPodStatus, StartBinding
from scheduler.state.outcome import BindOutcome
from scheduler.telemetry.logging import get_logger
from scheduler.telemetry.metrics import Metrics

__all__ = ["SchedulingThread"]

_log = get_logger(__name__)

T = TypeVar("T")

_EVENT_DRAIN_S = 2.0
_OLDEST_PENDING_S = 5.0
_SYNC_POLL_S = 0.05
_MAX_UNKNOWN = 1_000
_ANSWER_S = 5.0
"""A loop that has not answered after this is stuck."""


class SchedulingThread:
    """Owns the core and its loop.

    Attributes:
        core: the engine; to be touched on this thread only.
        started: is set once the thread's loop takes commands.
    """

    def __init__(
        self,
        completed: CompletedConfig,
        credentials: Credentials,
        registry: Registry,
        metrics: Metrics,
        *,
        may_write: Callable[[float], bool],
        outside: Outside | None = None,
        connect: Callable[[], Transport] | None = None,
    ) -> None:
        """Build the core; nothing runs yet.

        Args:
            completed: configuration and flags.
            credentials: of the API server.
            registry: the plugins on offer.
            metrics: where to measure.
            may_write: the lease's gate; callable from any thread.
            outside: time and chance; None: the machine's.
            connect: makes the way to the API server; None: HTTP, as configured.

        Raises:
            ConfigError: a profile cannot be built.
        """
        self._completed = completed
        self._metrics = metrics
        self._may_write = may_write
        self._outside = outside or Outside()
        self._connect = connect or functools.partial(connect_by_http, completed, credentials, metrics, may_write)
        self._clock = self._outside.clock
        self._random = self._outside.random
        self._bind_limit = bind_limit(completed)
        self._is_leading = self._is_watch_allowed = self._is_stopping = self._is_ending = False
        self._vital = VitalTasks(self.stop)
        self.started = threading.Event()
        self._may_watch: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake: asyncio.Event | None = None
        self._inbox = Inbox(self._wake_up)
        self._bind_call: BindCall | None = None
        self._extender_binding: ExtenderBinding | None = None
        self._patch_call: PatchCall | None = None
        self._binder: Binder | None = None
        self._evictor: Evictor | None = None
        self._status: StatusWriter | None = None
        self._recorder: EventRecorder | None = None
        self._driver: Driver | None = None
        self._confirming: Confirming | None = None
        self._comparing: Comparing | None = None
        self._reflectors: dict[type[KubeObject], Reflector] = {}
        self._ended: Future[None] = Future()
        self._oldest_pending_since_s: float | None = None
        self.core = Core(
            completed.configuration,
            completed.options,
            registry,
            Surroundings(
                clock=self._clock,
                random=self._random,
                perf_counter=self._outside.perf_counter,
                metrics=metrics,
                bind=self._bind,
                patch=self._patch,
                call_soon_threadsafe=self._inbox.call,
                run_blocking=self._outside.blocking("plugin"),
                on_ready=self._wake_here,
                is_enabled=completed.gates.enabled,
                extender_call=lambda extender: self._outside.extender_call(extender, metrics.extender_call),
                plugin_families=metrics.plugin_families,
                background=in_thread,
            ),
            max_in_unschedulable_s=completed.pod_max_in_unschedulable_s,
        )
        self._thread = threading.Thread(target=self._run, name="scheduling", daemon=True)
        metrics.cache_sizes(
            lambda: self.core.cache.num_nodes, lambda: self.core.cache.num_pods, lambda: self.core.cache.num_assumed
        )
        metrics.inbox_depth(lambda: len(self._inbox))
        metrics.oldest_pending_age(self._oldest_pending_age_s)

    # --- any thread --------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the thread; watches wait for ``watch``."""
        self._thread.start()

    def watch(self) -> None:
        """Let the watches begin."""
        self._is_watch_allowed = True
        if self._loop is not None and self._may_watch is not None:
            self._loop.call_soon_threadsafe(self._may_watch.set)

    def lead(self, given_up_at: str | None) -> None:
        """Allow decisions; after another leader only once we know what that one did.

        Args:
            given_up_at: resource version of the lease when the leader before us had given it up, "" if that is not
                known, None if nobody has led before us.
        """
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._begin_leading, given_up_at)

    def stop_deciding(self) -> None:
        """Make no decision from now on."""
        self._is_stopping = True

    async def drain(self, timeout_s: float) -> int:
        """Wait for the bindings under way; returns how many had no outcome after ``timeout_s``."""
        self._is_stopping = True
        if self._loop is None:
            return 0  # it has not even begun
        try:
            async with asyncio.timeout(_ANSWER_S):
                await self._ask(asyncio.sleep(0))
            async with asyncio.timeout(timeout_s + _ANSWER_S):
                return await self._ask(self._drain(timeout_s))
        except TimeoutError:
            _log.error("scheduling thread does not answer; it is stuck in a plugin", stuck_s=round(self.stuck_s, 1))
            return self._binder.in_flight if self._binder is not None else 0

    def stop(self) -> None:
        """End the thread's loop; bindings that are still under way are given up."""
        self._is_stopping = self._is_ending = True
        if self._driver is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(self._driver.stop)

    @property
    def ended(self) -> Future[None]:
        """Return what completes when the thread has ended, with the error that ended it."""
        return self._ended

    @property
    def is_synced(self) -> bool:
        """Say whether all kinds have been delivered once."""
        return self.core.is_synced

    @property
    def missing(self) -> list[str]:
        """Return the kinds that are still awaited."""
        return self.core.barrier.missing

    @property
    def stuck_s(self) -> float:
        """Return for how long the present turn has been going on; 0 between turns."""
        driver = self._driver
        return self._outside.perf_counter() - driver.last_turn_s if driver is not None and driver.is_in_turn else 0.0

    def stack(self) -> str:
        """Return where the thread is at this moment, innermost call first, a line each; "" if it does not run."""
        frame = sys._current_frames().get(self._thread.ident or 0)  # noqa: SLF001  documented, for just this
        calls = traceback.extract_stack(frame) if frame is not None else []
        return "\n".join(f"{call.name} ({call.filename}:{call.lineno})" for call in reversed(calls))

    def watch_lines(self) -> list[str]:
        """Return one line a watch about its state, for ``/readyz?verbose``."""
        lines = [
            f"watch {kind.__name__}: {'synced' if r.is_synced else 'not synced'}, last heard {r.staleness_s:.0f}s ago"
            for kind, r in list(self._reflectors.items())  # a copy: the scheduling thread may be adding to it
        ]
        unavailable = list(self.core.barrier.unavailable.items())
        lines += [f"watch {kind.__name__}: {reason}" for kind, reason in unavailable]
        if self._confirming is not None and self._confirming.is_behind:
            lines.append("deciding nothing: the watch Pod does not show our binds")
        return lines

    def on_core(self, command: Callable[[], T]) -> Awaitable[T]:
        """Run ``command`` between two decisions and return its result to the calling loop."""
        answer: Future[T] = Future()

        def run() -> None:
            try:
                answer.set_result(command())
            except Exception as error:  # noqa: BLE001  supervisor: the asker gets the error
                answer.set_exception(error)

        self._inbox.call(run)
        return asyncio.wrap_future(answer)

    def tell_about_lease(self, lease: Reference, note: str) -> None:
        """Record an event about the lease of the election."""
        # differs: upstream writes it to ``v1``; for us that would take a right that nothing else needs, and users see
        # the same event either way.
        reporter = next(iter(self._completed.configuration.profiles)).scheduler_name
        self._inbox.call(
            lambda: self._record(
                lease, controller=reporter, kind=NORMAL, reason="LeaderElection", action="LeaderElection", note=note
            )
        )

    def dump(self) -> None:
        """Log the state of cache and queue soon, and whether they equal what the watches delivered."""
        self._inbox.call(self._compare_cache)
        self._inbox.call(lambda: dump(self.core))

    # --- this thread -------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        gc.set_threshold(*GC_THRESHOLDS_BEFORE_SYNC)
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.get_loop().set_exception_handler(take_loop_error)
                runner.run(self.live())
        except BaseException as error:  # noqa: BLE001  supervisor: the service thread ends the process
            _log.error("scheduling thread broke", err=repr(error))
            self._ended.set_exception(error)
        else:
            self._ended.set_result(None)
        finally:
            self.started.set()  # nobody may wait for what will not come

    async def live(self) -> None:
        """Do everything that the thread does, on the running loop: the thread's own, or a simulation's."""
        self._may_watch = asyncio.Event()
        self._wake = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        if self._is_watch_allowed:
            self._may_watch.set()
        transport = self._connect()
        try:
            await self._live(transport)
        finally:
            self.core.close()
            await transport.close()

    async def _live(self, transport: Transport) -> None:
        self._build(transport)
        self.started.set()
        assert self._status is not None
        assert self._recorder is not None
        assert self._driver is not None
        assert self._confirming is not None
        assert self._comparing is not None
        helpers = [keep_running("events", self._recorder.run), keep_running("pod status", self._status.run)]
        helpers.append(keep_running("comparer", self._comparing.run))
        helpers.append(keep_running("confirming", self._confirming.run))
        helpers.append(keep_running("oldest pending", self._note_oldest_pending))
        self._vital.start(self._watch_all(transport))
        if self._is_ending:
            self._driver.stop()
        try:
            await self._driver.run()
            self._vital.check()
            await self._recorder.drain(_EVENT_DRAIN_S)
        finally:
            for task in helpers:
                task.cancel()
            await self._vital.cancel()
            if self._binder is not None:
                await self._binder.abandon()
            if self._evictor is not None:
                await self._evictor.abandon()
            await asyncio.gather(*helpers, return_exceptions=True)

    def _build(self, transport: Transport) -> None:
        metrics, node_check = self._metrics, NodeCheck(self.core.cache)
        self._patch_call = PatchCall(transport, may_write=self._may_write)
        self._bind_call = BindCall(
            transport,
            pods=self.core.stores.of(Pod),
            clock=self._clock,
            random=self._random,
            may_write=self._may_write,
            on_outcome=self._note_outcome,
            objection=node_check.objection,
        )
        self._status = status = StatusWriter(
            transport,
            clock=self._clock,
            may_write=self._may_write,
            on_dropped=lambda: metrics.event_dropped("status_queue_full"),
            is_pending=self._is_pending,
        )
        self._extender_binding = ExtenderBinding(
            self.core.extenders,
            run_blocking=self._outside.blocking("extender"),
            read=lambda pod: read_assignment(transport, pod.namespace, pod.name),
            may_write=self._may_write,
            fall_silent=lambda pod: status.fall_silent(pod.uid),
            known=lambda pod: self.core.stores.of(Pod).get(pod.pod_key),
        )
        self._binder = binder = Binder(
            self.core,
            clock=self._clock,
            nominate=self._status.nominate,
            on_idle=self._wake_here,
            extender_bind=self._extender_binding,
            node_check=node_check,
        )
        for extender in self._completed.configuration.extenders:
            metrics.expect_extender_calls(extender.url_prefix, verbs_of(extender))
        metrics.expect_bind_outcomes(outcome.value for outcome in BindOutcome)
        metrics.in_flight("binding", lambda: binder.in_flight)
        metrics.binds_unknown(lambda: self._unknown)
        self._evictor = Evictor(
            self.core,
            remove=EvictCall(transport, clock=self._clock, may_write=self._may_write),
            cancel_binding=self._binder.cancel_preparation,
            metrics=metrics,
            perf_counter=self._outside.perf_counter,
            on_idle=self._wake_here,
        )
        self._recorder = EventRecorder(
            transport,
            hostname=socket.gethostname(),
            random=self._random,
            metrics=metrics,
            is_busy=self._is_busy,
            may_write=self._may_write,
            now_ns=self._outside.now_ns,
        )
        self._confirming = Confirming(
            self.core.cache,
            self.core.stores.of(Pod),
            self._reflectors,
            apply=self.core.apply,
            clock=self._clock,
            caught_up=self._caught_up,
        )
        self._comparing = self._make_comparing(transport)
        assert self._wake is not None
        self._driver = Driver(
            self.core,
            self._inbox,
            carry_out=self._carry_out,
            may_decide=self._may_decide,
            is_leading=lambda: self._is_leading,
            outside=self._outside,
            wake=self._wake,
        )

    async def _watch_all(self, transport: Transport) -> None:
        assert self._may_watch is not None
        await self._may_watch.wait()
        idle_limit_s = self._completed.options.watch_stale_after_s
        # A pod may come before its live profile.
        profiles = None if self._completed.options.live_profiles.enabled else self.core.profiles
        tasks = []
        for kind in sorted(self.core.kinds, key=lambda kind: kind.__name__):
            reflector = self._reflectors[kind] = Reflector(
                kind,
                transport,
                self._inbox.push,
                clock=self._clock,
                random=self._random,
                settings=ReflectorSettings(optional=is_optional(kind), idle_limit_s=idle_limit_s),
                metrics=self._metrics.watches,
                originals=originals_of(kind, self._completed.configuration, profiles),
            )
            self._metrics.watch_staleness(kind.__name__, functools.partial(_staleness_s, reflector))
            tasks.append(keep_running(f"watch {kind.__name__}", reflector.run))
        tasks.append(asyncio.create_task(self._freeze_when_synced()))
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()

    async def _until_synced(self) -> None:
        while not self.core.is_synced:  # noqa: ASYNC110  the barrier is a plain value of the core
            await asyncio.sleep(_SYNC_POLL_S)

    async def _freeze_when_synced(self) -> None:
        await self._until_synced()
        self._outside.after_sync()
        _log.info("synced", nodes=self.core.cache.num_nodes, pods=self.core.cache.num_pods)

    def _make_comparing(self, transport: Transport) -> Comparing:
        return Comparing(
            self.core,
            self._reflectors,
            transport,
            metrics=self._metrics,
            period_s=self._completed.options.compare_period_s,
            is_deciding=lambda: self._is_leading and not self._is_stopping and self.core.is_synced,
            caught_up=self._caught_up,
        )

    def _compare_cache(self) -> None:
        compare_cache(self.core, self._metrics.cache_drift)

    async def _caught_up(self) -> None:
        """Wait until everything that is in the inbox now has been taken in."""
        reached = asyncio.Event()
        self._inbox.call(reached.set)
        await reached.wait()

    async def _note_oldest_pending(self) -> None:
        while True:
            self._oldest_pending_since_s = self.core.queue.oldest_pending_since_s()
            await asyncio.sleep(_OLDEST_PENDING_S)

    def _oldest_pending_age_s(self) -> float:
        since_s = self._oldest_pending_since_s
        return 0.0 if since_s is None else max(self._clock.now() - since_s, 0.0)

    def _begin_leading(self, given_up_at: str | None) -> None:
        if self._is_ending:
            return
        self._vital.start(self._lead(given_up_at))

    async def _lead(self, given_up_at: str | None) -> None:
        taking_over = TakingOver(self._reflectors, clock=self._clock, caught_up=self._caught_up)
        is_sure = given_up_at is None or await taking_over.see_all(given_up_at)
        self._is_leading = True
        self._wake_here()
        _log.info("deciding", profiles=",".join(self.core.profiles))
        if not is_sure and self._comparing is not None:
            await self._until_synced()  # nothing is compared before, as nothing is decided
            try:
                await self._comparing.compare()
            except Exception as bug:  # noqa: BLE001  supervisor: the next one comes soon, and a leader is worth more
                _log.error("comparing after a take-over broke", err=repr(bug))

    async def _drain(self, timeout_s: float) -> int:
        if self._binder is None or self._evictor is None:
            return 0
        return sum(await asyncio.gather(self._binder.drain(timeout_s), self._evictor.drain(timeout_s)))

    # --- the driver's questions --------------------------------------------------------------------------------------

    def _may_decide(self) -> bool:
        if not self._is_leading or self._is_stopping or not self.core.is_synced:
            return False
        if self._binder is None or self._bind_call is None or self._confirming is None or self._confirming.is_behind:
            return False
        busy = self._binder.in_flight - self._binder.on_hold - min(self._unknown, _MAX_UNKNOWN)
        limit = self._bind_call.throttle.limit(self._bind_limit, self._clock.now())
        return busy < limit and self._may_write(WRITE_TIMEOUT_S)

    @property
    def _unknown(self) -> int:
        """Return how many bindings only wait to be read back; their room is taken, so others may be decided."""
        if self._bind_call is None or self._extender_binding is None:
            return 0
        return self._bind_call.unknown + self._extender_binding.unknown

    def _is_busy(self) -> bool:
        return self._binder is not None and self._binder.in_flight > self._binder.on_hold

    def _carry_out(self, instruction: Instruction) -> None:
        match instruction:
            case StartBinding():
                assert self._binder is not None
                assert self._status is not None
                self._status.withdraw(instruction.assumed.uid)  # what was said against the pod is stale now
                self._binder.start(instruction)
            case Eviction():
                assert self._evictor is not None
                self._evictor.start(instruction)
            case PatchPodStatus() if self._is_leading:
                assert self._status is not None
                self._status.put(instruction)
            case EmitEvent() if self._is_leading:
                self._emit(instruction)
            case _:  # the leader says it; kept until we lead it would be stale, and could reach a pod that runs by then
                pass

    def _record(self, regarding: KubeObject | Reference, **fields: Any) -> None:
        assert self._recorder is not None
        self._recorder.emit(regarding, **fields)

    def _emit(self, event: EmitEvent) -> None:
        self._record(
            event.regarding,
            controller=event.reporter,
            kind=event.kind,
            reason=event.reason,
            action=event.action,
            note=event.note,
            related=event.related,
        )

    async def _bind(self, pod: Pod, node_name: str) -> Status | None:
        assert self._bind_call is not None
        assert self._status is not None
        # Nothing older may reach the pod after the bind, which sets PodScheduled itself.
        await self._status.fall_silent(pod.uid)
        return await self._bind_call(pod, node_name)

    async def _patch(self, obj: KubeObject, changes: Mapping[str, Any]) -> KubeObject | Status:
        assert self._patch_call is not None
        return await self._patch_call(obj, changes)

    def _is_pending(self, pod: Pod) -> bool:
        """Say whether the watch has not shown yet that the pod got a node."""
        known = self.core.stores.of(Pod).get(pod.pod_key)
        return known is None or known.uid != pod.uid or not known.node_name

    def _note_outcome(self, outcome: BindOutcome, was_unknown: bool) -> None:
        self._metrics.bind_outcome(outcome.value, was_unknown=was_unknown)

    # --- small things ------------------------------------------------------------------------------------------------

    def _wake_here(self) -> None:
        if self._wake is not None:
            self._wake.set()

    def _wake_up(self) -> None:
        """Wake the driver from any thread."""
        loop, wake = self._loop, self._wake
        if loop is None or wake is None:
            return
        if threading.current_thread() is self._thread:
            wake.set()
        else:
            with contextlib.suppress(RuntimeError):  # the loop has ended: nobody is left to wake
                loop.call_soon_threadsafe(wake.set)

    async def _ask(self, coroutine: Coroutine[Any, Any, T]) -> T:
        assert self._loop is not None
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self._loop))


def _staleness_s(reflector: Reflector) -> float:
    return reflector.staleness_s
