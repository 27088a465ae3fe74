"""The core, put together: queue, cache, profiles, engine and intake as one thing that a driver turns.

The daemon, the simulator and the test harness build the same Core; they differ in what they hand in: clocks, chance,
how a bind is carried out, and where metrics go. No thread, socket or clock is made here.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from scheduler.api import Clock, Lister, Pod, Random, Status
from scheduler.app.kinds import REQUIRED, event_resource, is_optional, kinds_of_events
from scheduler.app.profiles import RunningProfiles
from scheduler.config.gates import DEFAULT_GATES
from scheduler.config.load import default_configuration
from scheduler.config.options import SchedulerOptions
from scheduler.config.types import Extender as ExtenderConfiguration
from scheduler.config.types import Profile, SchedulerConfiguration
from scheduler.cycle import conclude
from scheduler.cycle.failure import abandon
from scheduler.cycle.metrics import CycleMetrics
from scheduler.cycle.schedule_one import Observer, Scheduler
from scheduler.cycle.select import Choice, choose_uniformly
from scheduler.framework.background import Background, no_background
from scheduler.framework.binding import RunBlocking, run_inline
from scheduler.framework.extender import Extender, ExtenderCall, ExtenderError, in_calling_order
from scheduler.framework.handle import EngineServices, Patch, ProfileHandle, no_patch
from scheduler.framework.metrics import FrameworkMetrics
from scheduler.framework.profile import Workshop, build_profiles
from scheduler.framework.registry import Registry
from scheduler.framework.runtime import ALL_EVENTS, Framework
from scheduler.framework.waiting import WaitingPods
from scheduler.intake.barrier import Barrier
from scheduler.intake.nodes import NodeIntake
from scheduler.intake.others import ObjectIntake
from scheduler.intake.pods import IntakeMetrics, PodIntake
from scheduler.intake.router import Handler, Intake
from scheduler.model.delta import Delta
from scheduler.model.meta import KubeObject, PodUid
from scheduler.model.node import Node
from scheduler.state.cache.cache import Cache
from scheduler.state.cache.snapshot import Snapshot
from scheduler.state.outbox import EmitEvent, Instruction, Outbox, StartBinding
from scheduler.state.queue.metrics import QueueMetrics
from scheduler.state.queue.queue import SchedulingQueue
from scheduler.state.store import Stores
from scheduler.telemetry.logging import get_logger
from scheduler.telemetry.plugin_families import PluginFamilies

__all__ = ["Core", "CoreMetrics", "Surroundings"]

_log = get_logger(__name__)


class CoreMetrics(CycleMetrics, FrameworkMetrics, IntakeMetrics, QueueMetrics, Protocol):
    """All that the core measures."""


async def _no_bind(pod: Pod, node_name: str) -> Status | None:
    return Status.error(f"nothing carries out the binding of {pod.pod_key} to {node_name}")


def _no_call(configuration: ExtenderConfiguration) -> ExtenderCall:
    def call(url: str, verb: str, body: bytes) -> bytes:
        del body
        raise ExtenderError(f"nothing carries out {verb} calls to {url} of extender {configuration.url_prefix}")

    return call


def _build_alone(workshop: Workshop, profile: Profile, services: EngineServices) -> Framework:
    """Make a framework whose plugins see their own framework behind their handle, whatever replaces it later.

    Raises:
        ConfigError: with all problems of the profile.
    """
    own: dict[str, Framework] = {}
    of_this = dataclasses.replace(services, frameworks=own)
    framework = own[profile.scheduler_name] = workshop.build(
        profile, lambda name, plugin: ProfileHandle(name, of_this, plugin), "spec"
    )
    return framework


def _run_now(callback: Callable[[], None]) -> None:
    callback()


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the core is given instead of taking it.

    Attributes:
        clock: time.
        random: chance.
        perf_counter: measures durations.
        metrics: where measurements go.
        bind: carries out a binding; behind the DefaultBinder.
        patch: sends a merge patch for a plugin; answers with the changed object or an Error.
        sleep: waits, for plugins of the binding cycle.
        call_soon_threadsafe: runs a callback on the scheduling thread.
        run_blocking: runs a plain function of the binding cycle where it may block.
        on_ready: is called when a pod may have become poppable.
        choose: picks one of the best nodes.
        observer: sees every attempt.
        is_enabled: says whether a feature gate is on; raises KeyError for an unknown one.
        extender_call: makes what calls one extender, from its configuration.
        plugin_families: where metrics of plugins' own go.
        background: calls functions of plugins now and then.
    """

    clock: Clock
    random: Random
    perf_counter: Callable[[], float]
    metrics: CoreMetrics
    bind: Callable[[Pod, str], Awaitable[Status | None]] = _no_bind
    patch: Patch = no_patch
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    call_soon_threadsafe: Callable[[Callable[[], None]], None] = _run_now
    run_blocking: RunBlocking = run_inline
    on_ready: Callable[[], None] = lambda: None
    choose: Choice = choose_uniformly
    observer: Observer | None = None
    is_enabled: Callable[[str], bool] = DEFAULT_GATES.enabled
    extender_call: Callable[[ExtenderConfiguration], ExtenderCall] = _no_call
    plugin_families: PluginFamilies = field(default_factory=PluginFamilies)
    background: Background = no_background


_ASK_EARLY = "a plugin of the configuration file must ask for its lister when it is made"


@dataclass(slots=True)
class _Listers:
    """Hands out stores, and remembers which kinds were asked for while plugins were made."""

    stores: Stores
    wanted: set[type[KubeObject]] = field(default_factory=set)
    is_closed: bool = False

    def __call__(self, kind: type[Any]) -> Lister[Any]:
        if self.is_closed and kind not in self.wanted:
            raise LookupError(f"{kind.__name__} is not watched: {_ASK_EARLY}")
        self.wanted.add(kind)
        return self.stores.of(kind)


class Core:
    """See the module. All methods are for the scheduling thread."""

    def __init__(
        self,
        configuration: SchedulerConfiguration,
        options: SchedulerOptions,
        registry: Registry,
        surroundings: Surroundings,
        *,
        max_in_unschedulable_s: float = 300.0,
    ) -> None:
        """Build everything.

        Raises:
            ConfigError: a profile cannot be built; all problems are named.
        """
        self._around = surroundings
        self.outbox = Outbox()
        self.stores = Stores()
        self.waiting = WaitingPods(surroundings.clock)
        self.cache = Cache()
        self.snapshot = Snapshot()
        self.extenders = in_calling_order(Extender(e, surroundings.extender_call(e)) for e in configuration.extenders)
        listers = _Listers(self.stores, set(REQUIRED))
        services = self._services(listers)
        workshop = self._workshop(configuration, options, registry)
        self.profiles = build_profiles(
            configuration, workshop, lambda profile, plugin: ProfileHandle(profile, services, plugin)
        )
        if options.live_profiles.enabled:
            listers.wanted |= self._kinds_of_live_profiles(workshop, services)
        self.queue = self._queue(configuration, max_in_unschedulable_s)
        services.frameworks = self.profiles
        services.nominations = self.queue
        services.activate = self.queue.activate
        listers.wanted |= self._event_kinds()
        listers.is_closed = True
        self.kinds: frozenset[type[KubeObject]] = frozenset(listers.wanted)
        """What must be watched."""
        self.engine = self._engine(configuration)
        self.running = RunningProfiles(
            self.engine,
            self.profiles,
            lambda profile: _build_alone(workshop, profile, services),
            self.kinds,
            configuration,
        )
        """What changes the profiles while they run."""
        optional = {kind for kind in self.kinds if is_optional(kind)}
        self.barrier = Barrier(self.kinds - optional, optional)
        self._intake = self._make_intake(options)

    # --- driver ------------------------------------------------------------------------------------------------------

    def apply(self, delta: Delta) -> None:
        """Turn a watch event into a change of state; a bug is logged and costs this one event."""
        try:
            self._intake.apply(delta)
        except Exception as error:  # noqa: BLE001  supervisor: the comparer shows what this event would have done
            _log.error("watch event broke", delta=type(delta).__name__, err=repr(error))

    def schedule_one(self) -> bool:
        """Take one pod through a scheduling cycle; a bug is logged and costs this one attempt."""
        try:
            return self.engine.schedule_one()
        except Exception as error:  # noqa: BLE001  supervisor: one pod's attempt must not end all scheduling
            _log.error("scheduling attempt broke", err=repr(error))
            abandon(self.engine, error)
            return True

    def has_ready(self) -> bool:
        """Say whether a pod could be popped now."""
        return self.queue.has_ready()

    def run_timers(self, now_s: float) -> None:
        """Flush back-offs and time out waiting pods."""
        self.queue.run(now_s)
        self.waiting.expire(now_s)

    def next_timer_s(self) -> float | None:
        """Return when ``run_timers`` has something to do."""
        due = [at_s for at_s in (self.queue.next_timer_s(), self.waiting.next_timer_s()) if at_s is not None]
        return min(due, default=None)

    def drain_outbox(self) -> list[Instruction]:
        """Return the instructions given since the last call."""
        return self.outbox.drain()

    @property
    def is_synced(self) -> bool:
        """Say whether every kind has been delivered once."""
        return self._intake.is_synced

    # --- binding host ------------------------------------------------------------------------------------------------

    def permit_passed(self, job: StartBinding) -> None:
        """The wait is over."""
        conclude.permit_passed(self.engine, job)

    def binding_succeeded(self, job: StartBinding) -> None:
        """The pod is bound."""
        conclude.binding_succeeded(self.engine, job)

    def binding_failed(self, job: StartBinding, status: Status) -> None:
        """The pod is not bound."""
        try:
            conclude.binding_failed(self.engine, job, status)
        except Exception as error:  # noqa: BLE001  supervisor: the pod must not be forgotten
            _log.error("end of a failed binding broke", pod=job.assumed.pod_key, err=repr(error))
            conclude.rescue(self.engine, job)
        self.running.close_idle()

    def binding_ended(self, job: StartBinding) -> None:
        """PostBind has run."""
        conclude.binding_ended(self.engine, job)
        self.running.close_idle()

    # --- eviction host -----------------------------------------------------------------------------------------------

    def preempt_waiting(self, uid: PodUid, plugin: str) -> bool:
        """Send a pod on hold in Permit back to the queue; False if it is not on hold (any more)."""
        held = self.waiting.get(uid)
        if held is None or held.is_done:
            return False
        held.preempt(plugin, "preempted")
        return True

    def emit(self, event: EmitEvent) -> None:
        """Record a Kubernetes event."""
        self.outbox.push(event)

    # --- end ---------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the queue and all plugins."""
        self.queue.close()
        self.running.close()

    # --- construction ------------------------------------------------------------------------------------------------

    def _services(self, listers: Callable[[type[Any]], Lister[Any]]) -> EngineServices:
        around = self._around
        return EngineServices(
            clock=around.clock,
            random=around.random,
            nodes=lambda: self.snapshot,
            lister=listers,
            is_placed=lambda uid: self.cache.get_pod(uid) is not None,
            bind=around.bind,
            patch=around.patch,
            sleep=around.sleep,
            emit=self.outbox.push,
            call_soon_threadsafe=around.call_soon_threadsafe,
            waiting=self.waiting,
            patch_status=self.outbox.push,
            evict=self.outbox.push,
            is_enabled=around.is_enabled,
            metrics=around.metrics,
            extenders=self.extenders,
            plugin_families=around.plugin_families,
            background=around.background,
        )

    def _workshop(
        self, configuration: SchedulerConfiguration, options: SchedulerOptions, registry: Registry
    ) -> Workshop:
        return Workshop(
            registry=registry,
            waiting=self.waiting,
            perf_counter=self._around.perf_counter,
            metrics=self._around.metrics,
            run_blocking=self._around.run_blocking,
            has_extenders=bool(configuration.extenders),
            budget_s=options.plugin_budget_s,
            faults_of=options.plugin_faults_of,
        )

    def _kinds_of_live_profiles(self, workshop: Workshop, services: EngineServices) -> set[type[KubeObject]]:
        """Return the kinds that a profile may need which comes later: watches are not begun while we run.

        The listers notice what the default plugins ask for when they are made.
        """
        _build_alone(workshop, default_configuration().profiles[0], services).close()
        return kinds_of_events(registration.event for registration in ALL_EVENTS)

    def _queue(self, configuration: SchedulerConfiguration, max_in_unschedulable_s: float) -> SchedulingQueue:
        around = self._around
        first = next(iter(self.profiles.values()))  # all profiles order the queue the same way
        queue = SchedulingQueue(
            clock=around.clock,
            sort_key=first.sort_key,
            profiles={name: framework.queue_profile() for name, framework in self.profiles.items()},
            metrics=around.metrics,
            get_pod=self.stores.of(Pod).get,
            perf_counter=around.perf_counter,
            on_ready=around.on_ready,
            initial_backoff_s=configuration.pod_initial_backoff_s,
            max_backoff_s=configuration.pod_max_backoff_s,
            max_in_unschedulable_s=max_in_unschedulable_s,
        )
        for framework in self.profiles.values():
            framework.set_nominations(queue)
        return queue

    def _event_kinds(self) -> set[type[KubeObject]]:
        registrations = (
            registration
            for framework in self.profiles.values()
            for _, registration in framework.queue_profile().registrations
        )
        return kinds_of_events(registration.event for registration in registrations)

    def _engine(self, configuration: SchedulerConfiguration) -> Scheduler:
        around = self._around
        return Scheduler(
            queue=self.queue,
            cache=self.cache,
            snapshot=self.snapshot,
            pods=self.stores.of(Pod),
            profiles=self.profiles,
            extenders=self.extenders,
            outbox=self.outbox,
            clock=around.clock,
            random=around.random,
            configuration=configuration,
            perf_counter=around.perf_counter,
            metrics=around.metrics,
            choose=around.choose,
            observer=around.observer,
        )

    def _make_intake(self, options: SchedulerOptions) -> Intake:
        return Intake(
            handlers=self._handlers(options),
            barrier=self.barrier,
            outbox=self.outbox,
            profiles=self.profiles,
        )

    def _handlers(self, options: SchedulerOptions) -> Mapping[type[KubeObject], Handler]:
        metrics, perf_counter = self._around.metrics, self._around.perf_counter
        handlers: dict[type[KubeObject], Handler] = {
            kind: ObjectIntake(
                resource=event_resource(kind),
                queue=self.queue,
                store=self.stores.of(kind),
                metrics=metrics,
                perf_counter=perf_counter,
            )
            for kind in self.kinds
        }
        handlers[Pod] = PodIntake(
            cache=self.cache,
            queue=self.queue,
            store=self.stores.of(Pod),
            profiles=self.profiles,
            reject_waiting_pod=self._reject_waiting_pod,
            metrics=metrics,
            perf_counter=perf_counter,
            honor_foreign_nominations=options.honor_foreign_nominations,
        )
        handlers[Node] = NodeIntake(
            cache=self.cache, queue=self.queue, store=self.stores.of(Node), metrics=metrics, perf_counter=perf_counter
        )
        return handlers

    def _reject_waiting_pod(self, uid: PodUid, plugin: str, message: str) -> bool:
        held = self.waiting.get(uid)
        if held is None:
            return False
        held.reject(plugin, message)
        return True
