"""Profiles that come, change and go while the scheduler runs: the profile map is changed between two decisions.

    put, new        ─▶ framework made ─▶ in the map ─▶ the pods that name it join the queue
    put, changed    ─▶ framework made ─▶ in the map ─▶ its waiting pods get another try ─▶ the old one is retired
    remove          ─▶ out of the map ─▶ its pending pods are told and leave the queue  ─▶ the old one is retired
    retired         ─▶ the binding cycles that it began have ended ─▶ closed

A pod that is on hold in Permit or being bound keeps the framework that decided about it: its job holds it. If it fails,
it goes back to whatever profile has the name then. All of this runs on the scheduling thread.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, MutableMapping

import msgspec

from scheduler.app.kinds import REQUIRED, kinds_of_events
from scheduler.config.errors import ConfigError
from scheduler.config.types import Profile, SchedulerConfiguration
from scheduler.cycle.failure import tell_unserved
from scheduler.cycle.schedule_one import Scheduler
from scheduler.framework.profile import Resolved
from scheduler.framework.runtime import Framework
from scheduler.model.meta import KubeObject
from scheduler.model.pod import Pod
from scheduler.state.changes import ASSIGNED_POD_DELETE
from scheduler.telemetry.logging import get_logger

__all__ = ["RunningProfiles"]

_log = get_logger(__name__)


class RunningProfiles:
    """Changes the profile map of an engine.

    Args:
        engine: what decides.
        profiles: the map that everybody who asks for a profile reads; its first entry stays for ever, as the queue is
            ordered by that profile's plugin.
        make: makes the framework of a profile; raises ConfigError.
        kinds: what is watched.
        configuration: with the profiles of the file.
    """

    def __init__(
        self,
        engine: Scheduler,
        profiles: MutableMapping[str, Framework],
        make: Callable[[Profile], Framework],
        kinds: Collection[type[KubeObject]],
        configuration: SchedulerConfiguration,
    ) -> None:
        self._engine = engine
        self._profiles = profiles
        self._make = make
        self._kinds = kinds
        self._file = configuration
        self._live: dict[str, Profile] = {}
        self._retired: list[Framework] = []

    @property
    def configuration(self) -> SchedulerConfiguration:
        """Return the configuration with the profiles that are in use now."""
        return msgspec.structs.replace(self._file, profiles=(*self._file.profiles, *self._live.values()))

    @property
    def num_retired(self) -> int:
        """Return how many replaced frameworks still finish bindings."""
        return len(self._retired)

    def apply(self, puts: Iterable[Profile], removes: Iterable[str]) -> dict[str, Resolved | ConfigError]:
        """Make profiles live, or replace them, then take others away; what cannot be made changes nothing.

        Returns:
            For each profile put, what it resolved to, or everything that is wrong with it.
        """
        answers: dict[str, Resolved | ConfigError] = {}
        for profile in puts:
            try:
                answers[profile.scheduler_name] = self._put(profile)
            except ConfigError as error:
                answers[profile.scheduler_name] = error
            except Exception as error:  # noqa: BLE001  supervisor: a plugin's bug must not keep other profiles waiting
                _log.error("profile could not be made", profile=profile.scheduler_name, err=repr(error))
                answers[profile.scheduler_name] = ConfigError([f"internal error: {type(error).__name__}: {error}"])
        for name in removes:
            self._remove(name)
        self.close_idle()
        return answers

    def close_idle(self) -> None:
        """Close the replaced frameworks whose last binding has ended; costs nothing if there are none."""
        for framework in [framework for framework in self._retired if not framework.bindings]:
            self._retired.remove(framework)
            framework.close()

    def close(self) -> None:
        """Close all frameworks."""
        for framework in (*self._profiles.values(), *self._retired):
            framework.close()

    # --- inside ------------------------------------------------------------------------------------------------------

    def _put(self, profile: Profile) -> Resolved:
        name = profile.scheduler_name
        assert all(name != own.scheduler_name for own in self._file.profiles), f"{name} is a profile of the file"
        framework = self._make(profile)
        self._check_watched(framework)
        old = self._profiles.get(name)
        self._profiles[name] = framework
        self._live[name] = profile
        framework.start()
        self._rules_changed({name})
        if old is None:
            self._adopt_pods(name)
        else:
            self._retired.append(old)
        _log.info("profile is live", profile=name, replaced=old is not None)
        points = {point: names for point, names in framework.points.items() if names}
        return Resolved(points, framework.weights)

    def _check_watched(self, framework: Framework) -> None:
        events = [registration.event for _, registration in framework.queue_profile().registrations]
        missing = sorted(kind.__name__ for kind in kinds_of_events(events) - set(REQUIRED) - set(self._kinds))
        if missing:
            framework.close()
            text = "its plugins wait for events of kinds that this process does not watch"
            raise ConfigError([f"{text} ({', '.join(missing)}): name the plugins in the configuration file instead"])

    def _remove(self, name: str) -> None:
        if self._live.pop(name, None) is None:
            return
        self._retired.append(self._profiles.pop(name))
        pods = self._pending_pods(name)
        for pod in pods:
            self._disown(pod)
        self._rules_changed(())
        _log.info("profile is gone", profile=name, pending_pods=len(pods))

    def _rules_changed(self, changed: Collection[str]) -> None:
        self._engine.class_cache.clear()
        self._engine.standing.clear()
        queue = self._engine.queue
        for framework in self._profiles.values():
            framework.set_nominations(queue)
        queue.set_profiles({name: f.queue_profile() for name, f in self._profiles.items()}, changed)

    def _adopt_pods(self, name: str) -> None:
        """Let the pods in that came before their profile, or stayed when it went."""
        in_flight = {pod.uid for pod in self._engine.queue.in_flight_pods()}
        for pod in self._pending_pods(name):
            if pod.uid not in in_flight:
                self._engine.queue.add(pod)

    def _disown(self, pod: Pod) -> None:
        """Take a pod out of the queue and tell its owner; the room that was kept for it is free."""
        queue = self._engine.queue
        nominated = queue.as_nominated(pod)
        queue.delete(pod)
        if not pod.is_terminating:
            tell_unserved(self._engine, nominated)
        if nominated.status.nominated_node_name:
            queue.move_all_to_active_or_backoff_queue(ASSIGNED_POD_DELETE, nominated, None)

    def _pending_pods(self, name: str) -> list[Pod]:
        """Return the pods that name the profile and have no place, neither bound nor assumed."""
        return [
            pod
            for pod in self._engine.pods.list()
            if pod.spec.scheduler_name == name and not pod.node_name and not self._engine.cache.is_assumed(pod.uid)
        ]
