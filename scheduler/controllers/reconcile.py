"""What should be live, as pure functions: objects and the file's profiles in, verdicts and a plan out.

    objects ── judge ──▶ verdicts (valid or every reason why not) ── plan ──▶ what to put, what to remove

Who has a name is settled without any memory, so that all replicas agree: a profile of the file before any object, then
the oldest object. An object that is refused keeps the version of it that serves, if there is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from scheduler.config.errors import ConfigError
from scheduler.config.gates import FeatureGates
from scheduler.config.load import load_profile
from scheduler.config.types import Profile, SchedulerConfiguration
from scheduler.controllers.objects import KIND, MAX_OBJECTS, SchedulerProfile
from scheduler.framework.profile import Resolved

__all__ = ["ROOT", "Plan", "Serving", "Verdict", "judge", "plan"]

ROOT = "spec"
"""Paths in problems begin with it, as ``kubectl explain`` has it."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to be thought of one object.

    Attributes:
        obj: the object.
        profile: what it describes; None if it is refused.
        problems: everything that is wrong with it.
    """

    obj: SchedulerProfile
    profile: Profile | None
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Serving:
    """A live profile.

    Attributes:
        uid: of the object that it came from.
        generation: of that object, when it was taken over or last found to mean the same.
        profile: what runs.
        resolved: its plugins by extension point.
    """

    uid: str
    generation: int
    profile: Profile
    resolved: Resolved


@dataclass(frozen=True, slots=True)
class Plan:
    """How to get from what is live to what should be.

    Attributes:
        puts: valid objects whose profile does not run yet.
        removes: names whose object is gone.
    """

    puts: tuple[Verdict, ...] = ()
    removes: tuple[str, ...] = ()
    same: Mapping[str, Verdict] = field(default_factory=dict)
    """Valid objects whose profile runs already, by scheduler name."""


def judge(
    objects: Sequence[SchedulerProfile], configuration: SchedulerConfiguration, gates: FeatureGates
) -> list[Verdict]:
    """Check every object by itself and against those before it.

    Args:
        objects: oldest first.
        configuration: of the file, with its profiles.
        gates: feature gates.
    """
    owners = {profile.scheduler_name: "a profile of the configuration file" for profile in configuration.profiles}
    verdicts: list[Verdict] = []
    for number, obj in enumerate(objects):
        name = obj.scheduler_name
        problems: list[str] = []
        if name in owners:
            problems.append(f'{ROOT}.schedulerName: Duplicate value: "{name}": it belongs to {owners[name]}')
        if number >= MAX_OBJECTS:
            problems.append(f"there are more than {MAX_OBJECTS} {KIND} objects; the oldest {MAX_OBJECTS} count")
        profile = None
        try:
            profile = load_profile(obj.spec, configuration, gates, ROOT)
        except ConfigError as error:
            problems += error.problems
        if name:
            owners.setdefault(name, f'{KIND} "{obj.name}", which is older')
        verdicts.append(Verdict(obj, None if problems else profile, tuple(problems)))
    return verdicts


def plan(verdicts: Iterable[Verdict], serving: Mapping[str, Serving]) -> Plan:
    """Compare what should be live with what is.

    Args:
        verdicts: of all objects that exist.
        serving: by scheduler name.
    """
    verdicts = list(verdicts)
    valid = {v.profile.scheduler_name: v for v in verdicts if v.profile is not None}
    same = {name: v for name, v in valid.items() if name in serving and serving[name].profile == v.profile}
    refused = {v.obj.metadata.uid for v in verdicts if v.profile is None}
    removes = tuple(name for name, live in serving.items() if name not in valid and live.uid not in refused)
    return Plan(tuple(v for name, v in valid.items() if name not in same), removes, same)
