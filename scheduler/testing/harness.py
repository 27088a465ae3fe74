"""Harness: the real engine in memory, without API server, threads or waiting.

Objects go in as deltas, as a reflector would deliver them; bindings are carried out at once, by the real binder, and
come back as the watch would show them. A plugin author gets a cluster in three lines:

    with Harness(plugins={"CarbonAware": CarbonAware}, profile={"plugins": {"multiPoint": {"enabled": [...]}}}) as h:
        h.put(node("n1").capacity(cpu="4", memory="8Gi", pods="110").obj())
        assert h.schedule(pod("web").requests(cpu="1").obj()) == "n1"

Time is a FakeClock and chance is seeded, so a run can be repeated exactly.
"""

from __future__ import annotations

import asyncio
import functools
import random
from collections.abc import Mapping, Sequence
from importlib import metadata
from types import TracebackType
from typing import Any, Self

import msgspec

from scheduler.api import Eviction, ExtenderError, PluginFactory, Pod, Random, Status
from scheduler.app.core import Core, Surroundings
from scheduler.binding.binder import Binder
from scheduler.binding.evict_call import disruption
from scheduler.binding.evictor import Evictor
from scheduler.binding.extender_bind import ExtenderBinding
from scheduler.config.gates import FeatureGates
from scheduler.config.load import default_configuration, load
from scheduler.config.options import SchedulerOptions
from scheduler.config.types import API_VERSION, KIND, SchedulerConfiguration
from scheduler.cycle.attempt import Attempt
from scheduler.cycle.metrics import NullCycleMetrics
from scheduler.cycle.select import Choice, choose_uniformly
from scheduler.framework.binding import run_inline
from scheduler.framework.extender import ExtenderCall
from scheduler.framework.metrics import NullFrameworkMetrics
from scheduler.framework.registry import ENTRY_POINT_GROUP, Registry
from scheduler.kube.writes import Assignment, status_patch
from scheduler.model.delta import Added, Changed, Removed
from scheduler.model.meta import KubeObject
from scheduler.plugins import IN_TREE
from scheduler.state.outbox import EmitEvent, Instruction, PatchPodStatus, StartBinding
from scheduler.state.queue.metrics import NullQueueMetrics
from scheduler.telemetry.plugin_families import PluginFamilies
from scheduler.telemetry.recorders import HistogramRecorder
from scheduler.testing.background import VirtualBackground
from scheduler.testing.clock import FakeClock

__all__ = ["Harness", "NullCoreMetrics", "configuration_of"]

_SETTLE_TURNS = 20


class NullCoreMetrics(NullCycleMetrics, NullFrameworkMetrics, NullQueueMetrics):
    """Measures nothing."""

    def event_handled(self, event: str, seconds: float) -> None:
        """Ignore the event."""


def configuration_of(
    profile: Mapping[str, Any] | None, extenders: Sequence[Mapping[str, Any]] = ()
) -> SchedulerConfiguration:
    """Return a configuration with one profile, given as in a configuration file; all nodes are evaluated.

    Raises:
        ConfigError: the profile is not valid.
    """
    if profile is None and not extenders:
        return default_configuration()
    profile = profile or {}
    file = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "percentageOfNodesToScore": 100,
        "profiles": [profile],
        "extenders": extenders,
    }
    encoded = msgspec.json.encode(file)
    # Arguments of third-party plugins are dicts, which a plugin may change; without them, a configuration is frozen.
    return load(encoded) if profile.get("pluginConfig") else _loaded(encoded)


_loaded = functools.lru_cache(maxsize=32)(load)


@functools.cache
def _installed_entry_points() -> tuple[metadata.EntryPoint, ...]:
    # Looking for them reads the metadata of every distribution, a third of the time that a small harness lives.
    return tuple(metadata.entry_points(group=ENTRY_POINT_GROUP))


def _nobody_answers(url: str, verb: str, body: bytes, /) -> bytes:
    del body
    raise ExtenderError(f"nothing answers {verb} calls to {url}; hand in extender_call")


class Harness:
    """One engine with its cluster.

    Attributes:
        core: the engine and its state.
        clock: its time.
        events: the Kubernetes events it gave, oldest first.
        evicted: the pods that preemption deleted, oldest first.
        last: the record of the last attempt, valid until the next.
    """

    def __init__(
        self,
        *,
        profile: Mapping[str, Any] | None = None,
        plugins: Mapping[str, PluginFactory] | None = None,
        seed: int = 0,
        choose: Choice = choose_uniformly,
        options: SchedulerOptions | None = None,
        clock: FakeClock | None = None,
        chance: Random | None = None,
        features: Mapping[str, bool] | None = None,
        extenders: Sequence[Mapping[str, Any]] = (),
        extender_call: ExtenderCall = _nobody_answers,
    ) -> None:
        """Build an engine.

        Args:
            profile: as in a configuration file; None means the default profile.
            plugins: more plugins by name, besides the in-tree and the installed ones; they are a third party's.
            seed: of the engine's chance.
            choose: picks one of the best nodes.
            options: Podium's own settings; foreign nominations are ignored by default, as kube-scheduler does.
            clock: the engine's time.
            chance: the engine's chance itself, instead of ``seed``.
            features: settings of Kubernetes' feature gates that differ from the defaults.
            extenders: as in a configuration file.
            extender_call: what answers to the calls of all extenders.

        Raises:
            ConfigError: the profile is not valid.
        """
        self.clock = clock or FakeClock()
        self.events: list[EmitEvent] = []
        self.evicted: list[Pod] = []
        self.last: Attempt | None = None
        self._known: dict[tuple[type[KubeObject], str], KubeObject] = {}
        self._bound: list[tuple[Pod, str]] = []
        self._version = 0
        self._is_carrying_out = False
        self._plugin_families = PluginFamilies()
        self._background = VirtualBackground(self.clock)
        self.core = Core(
            configuration_of(profile, extenders),
            options or SchedulerOptions(honor_foreign_nominations=False),
            Registry(IN_TREE, _installed_entry_points(), handed_in=plugins),
            Surroundings(
                clock=self.clock,
                random=chance or random.Random(seed),  # noqa: S311  nothing secret depends on it
                perf_counter=self.clock.now,
                metrics=NullCoreMetrics(),
                bind=self._bind,
                choose=choose,
                observer=self._observe,
                is_enabled=FeatureGates(features or {}).enabled,
                extender_call=lambda configuration: extender_call,  # noqa: ARG005  one for all
                plugin_families=self._plugin_families,
                background=self._background,
            ),
        )
        self._loop = asyncio.new_event_loop()  # not before the profile is known to be good
        self._binder = Binder(
            self.core,
            clock=self.clock,
            nominate=self._nominate,
            on_idle=lambda: None,
            extender_bind=ExtenderBinding(
                self.core.extenders, run_blocking=run_inline, read=self._read_back, sleep=self._no_sleep
            ),
        )
        self._evictor = Evictor(
            self.core,
            remove=self._remove_victim,
            cancel_binding=self._binder.cancel_preparation,
            metrics=NullCoreMetrics(),
            perf_counter=self.clock.now,
            on_idle=lambda: None,
        )

    # --- the cluster -------------------------------------------------------------------------------------------------

    def put(self, *objects: KubeObject) -> None:
        """Create or change objects; kinds that no plugin asked for are left out, as no watch would deliver them."""
        for obj in objects:
            if type(obj) not in self.core.kinds:
                continue
            key = (type(obj), obj.key)
            old = self._known.get(key)
            self._known[key] = obj
            if old is not None and old.uid == obj.uid:
                self.core.apply(Changed(old, obj))
            else:
                if old is not None:
                    self.core.apply(Removed(old))
                self.core.apply(Added(obj))
        self._carry_out()

    def remove(self, *objects: KubeObject) -> None:
        """Delete objects."""
        for obj in objects:
            known = self._known.pop((type(obj), obj.key), None)
            if known is not None:
                self.core.apply(Removed(known))
        self._carry_out()

    def pod(self, key: str) -> Pod | None:
        """Return the newest version of a pod by ``namespace/name``."""
        found = self._known.get((Pod, key))
        return found if isinstance(found, Pod) else None

    # --- scheduling --------------------------------------------------------------------------------------------------

    def schedule(self, pod: Pod) -> str:
        """Create ``pod``, try it once (and nothing else), and return its node, or "" if it has none."""
        self.put(pod)
        self.try_pod(pod)
        newest = self.pod(pod.pod_key)
        return newest.node_name if newest is not None else ""

    def try_pod(self, pod: Pod) -> bool:
        """Try a pod that was put, wherever it waits; returns False if it is gated or not in the queue."""
        info = self.core.queue.pop_specific_pod(pod)
        if info is None:
            return False
        self.last = None
        self.core.engine.schedule(info)
        self._carry_out()
        return True

    def run(self, max_attempts: int = 10_000) -> int:
        """Try pods until none is ready; returns the number of attempts."""
        for attempts in range(max_attempts):
            if not self.core.schedule_one():
                return attempts
            self._carry_out()
        return max_attempts

    def advance(self, seconds: float) -> None:
        """Let time pass: what is due in the background runs, back-offs end, waits time out."""
        self.clock.advance(seconds)
        self._background.run()
        self.core.run_timers(self.clock.now())
        self._carry_out()

    def metric(self, name: str, **labels: str) -> float:
        """Return a metric that a plugin made, summed over all values of the labels not given.

        Args:
            name: as exposed, ``podium_plugin_…``; of a histogram this is the number of observations.
            labels: values that count.

        Raises:
            KeyError: no plugin made it.
        """
        family = self._plugin_families.by_name[name]
        total = 0.0
        for values, child in family.children():
            if labels.items() <= dict(zip(family.description.labels, values, strict=True)).items():
                total += sum(child.counts) if isinstance(child, HistogramRecorder) else child.value
        return total

    # --- inside ------------------------------------------------------------------------------------------------------

    def _observe(self, attempt: Attempt) -> None:
        # Statuses and names are worked out while the snapshot is still the attempt's own.
        attempt.explain()
        self.last = attempt

    async def _bind(self, pod: Pod, node_name: str) -> Status | None:
        self._bound.append((pod, node_name))
        return None

    async def _read_back(self, pod: Pod) -> Assignment | None:
        known = self.pod(pod.pod_key)
        return None if known is None else Assignment(known.uid, known.node_name)

    async def _no_sleep(self, seconds: float) -> None:
        del seconds  # nothing changes by waiting

    async def _nominate(self, pod: Pod, node_name: str) -> None:
        self._patch(PatchPodStatus(pod, None, node_name))

    def _carry_out(self) -> None:
        """Do what the core wants done, and what that leads to, until nothing is left."""
        if self._is_carrying_out:
            return  # a change made on the way; its consequences are seen to by the call that is under way
        self._is_carrying_out = True
        try:
            while True:
                if self._binder.in_flight:
                    self._loop.run_until_complete(self._settle())
                instructions = self.core.drain_outbox()
                if not instructions and not self._bound:
                    break
                for instruction in instructions:
                    self._perform(instruction)
                self._show_bound()
        finally:
            self._is_carrying_out = False

    def _perform(self, instruction: Instruction) -> None:
        match instruction:
            case StartBinding():
                self._loop.run_until_complete(self._start(instruction))
            case PatchPodStatus():
                self._patch(instruction)
            case EmitEvent():
                self.events.append(instruction)
            case Eviction():
                self._loop.run_until_complete(self._evictor.run(instruction))

    async def _start(self, job: StartBinding) -> None:
        self._binder.start(job)
        await self._settle()

    async def _settle(self) -> None:
        """Let all bindings go on until they wait for something that only time or events bring."""
        for _ in range(_SETTLE_TURNS):
            await asyncio.sleep(0)
            if self._binder.in_flight == self._binder.on_hold:
                break

    async def _remove_victim(self, victim: Pod, preemptor: Pod) -> bool:
        """Delete a victim without a grace period, as if nothing ran in it."""
        known = self.pod(victim.pod_key)
        if known is None or known.uid != victim.uid:
            return True
        self._patch(PatchPodStatus(known, disruption(known, preemptor)))
        gone = self.pod(victim.pod_key)
        assert gone is not None
        self.evicted.append(gone)
        self.remove(gone)
        return False

    def _patch(self, patch: PatchPodStatus) -> None:
        pod = self.pod(patch.pod.pod_key)
        if pod is None or pod.uid != patch.pod.uid:
            return
        if status_patch(pod, patch.condition, patch.nominated_node_name, self.clock.now()) is None:
            return  # it says so already
        status = pod.status
        if patch.condition is not None:
            others = tuple(c for c in status.conditions if c.type != patch.condition.type)
            status = msgspec.structs.replace(status, conditions=(*others, patch.condition))
        if patch.nominated_node_name is not None:
            status = msgspec.structs.replace(status, nominated_node_name=patch.nominated_node_name)
        self._version += 1
        metadata = msgspec.structs.replace(pod.metadata, resource_version=f"patch-{self._version}")
        self.put(msgspec.structs.replace(pod, metadata=metadata, status=status))

    def _show_bound(self) -> None:
        bound, self._bound = self._bound, []
        for pod, node_name in bound:
            known = self.pod(pod.pod_key)
            if known is not None and known.uid == pod.uid:
                self.put(self.as_bound(known, node_name))

    def as_bound(self, pod: Pod, node_name: str) -> Pod:
        """Return how the API server shows the pod once it is bound; the nomination is gone."""
        status = msgspec.structs.replace(pod.status, nominated_node_name="")
        return msgspec.structs.replace(pod.on_node(node_name), status=status)

    # --- end ---------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close plugins and give up bindings that still wait."""
        self.core.close()
        self._loop.run_until_complete(self._binder.abandon())
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
