"""Law: after any history of SchedulerProfile objects, what serves is what a plain reading of the rules says.

The rules: a name belongs to the file, else to the oldest object that claims it. The owner's present version serves if it
is valid; else the last version of that object that served; else nobody does.
"""

from dataclasses import dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.config.gates import DEFAULT_GATES
from scheduler.config.load import load
from scheduler.controllers.objects import ObjectMeta, SchedulerProfile
from scheduler.controllers.reconcile import Serving, judge, plan
from scheduler.framework.profile import Resolved

CONFIGURATION = load(
    b"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{schedulerName: file}]\n"
)
NAMES = ("x", "y", "file")
INVALID = 101


@dataclass(frozen=True)
class Object:
    uid: int
    scheduler_name: str
    percentage: int
    generation: int = 1

    def as_served(self):
        spec = {"schedulerName": self.scheduler_name, "percentageOfNodesToScore": self.percentage}
        meta = ObjectMeta(f"o{self.uid}", f"uid-{self.uid}", self.generation, f"2026-01-01T00:{self.uid:02}:00Z")
        return SchedulerProfile(meta, spec)


class Replica:
    """Follows the objects with the functions under test."""

    def __init__(self):
        self.serving = {}

    def follow(self, objects):
        planned = plan(judge([o.as_served() for o in objects], CONFIGURATION, DEFAULT_GATES), self.serving)
        for verdict in planned.puts:
            name, meta = verdict.profile.scheduler_name, verdict.obj.metadata
            self.serving[name] = Serving(meta.uid, meta.generation, verdict.profile, Resolved({}, {}))
        for name in planned.removes:
            del self.serving[name]
        for name, verdict in planned.same.items():
            meta = verdict.obj.metadata
            self.serving[name] = replace(self.serving[name], uid=meta.uid, generation=meta.generation)

    @property
    def shown(self):
        return {name: (s.uid, s.profile.percentage_of_nodes_to_score) for name, s in self.serving.items()}


def expected(objects, before):
    """The rules, read plainly; ``before`` is what served."""
    after = {}
    for name in NAMES[:2]:
        owner = next((o for o in objects if o.scheduler_name == name), None)
        if owner is None:
            continue
        uid = f"uid-{owner.uid}"
        if owner.percentage != INVALID:
            after[name] = (uid, owner.percentage)
        elif name in before and before[name][0] == uid:
            after[name] = before[name]
    return after


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("create"), st.sampled_from(NAMES), st.sampled_from((1, 2, INVALID))),
        st.tuples(st.just("change"), st.integers(0, 9), st.sampled_from((1, 2, INVALID))),
        st.tuples(st.just("delete"), st.integers(0, 9), st.none()),
        st.tuples(st.just("look"), st.none(), st.none()),
    ),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_what_serves_follows_from_the_objects(steps):
    """Also where several changes are seen at once: a replica looks when it looks."""
    objects, replica, model, number = [], Replica(), {}, 0
    for what, which, percentage in (*steps, ("look", None, None)):
        if what == "create":
            number += 1
            objects.append(Object(number, which, percentage))
        elif what == "look":
            replica.follow(objects)
            model = expected(objects, model)
            assert replica.shown == model
        elif objects:
            chosen = objects[which % len(objects)]
            changed = replace(chosen, percentage=percentage, generation=chosen.generation + 1)
            objects = [changed if o is chosen else o for o in objects] if what == "change" else [
                o for o in objects if o is not chosen
            ]  # fmt: skip
    assert "file" not in replica.serving


@settings(max_examples=30, deadline=None)
@given(STEPS)
def test_replicas_agree_on_valid_objects_whenever_they_began_to_look(steps):
    """Who serves depends on the objects alone; only last good versions depend on having been there."""
    objects, early = [], Replica()
    for number, (what, which, percentage) in enumerate(steps):
        if what == "create" and percentage != INVALID:
            objects.append(Object(number, which, percentage))
        elif what == "delete" and objects:
            del objects[which % len(objects)]
        early.follow(objects)
    late = Replica()
    late.follow(objects)
    assert early.shown == late.shown
