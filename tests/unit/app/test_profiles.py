"""Profiles that come, change and go between two decisions, on the real engine in memory."""

from typing import ClassVar

import pytest

from scheduler.api import (
    EventRegistration,
    FilterPlugin,
    PermitPlugin,
    PreEnqueuePlugin,
    ReservePlugin,
    ScorePlugin,
    Status,
)
from scheduler.config.errors import ConfigError
from scheduler.config.gates import DEFAULT_GATES
from scheduler.config.load import default_configuration, load_profile
from scheduler.config.options import LiveProfilesOptions, SchedulerOptions
from scheduler.framework.profile import Resolved
from scheduler.model.kinds import KINDS
from scheduler.testing.builders import node, pod
from scheduler.testing.harness import Harness

NAME = "batch"
UNSERVED = 'no profile named "batch" is live: its SchedulerProfile was deleted or renamed'


class Likes(ScorePlugin):
    """Scores one node 100."""

    name = "Likes"

    def __init__(self, args, handle):
        self.node = args["node"]

    def score(self, state, pod, node):
        return 100 if node.name == self.node else 0

    def node_signature(self, pod):
        return ()


class Never(FilterPlugin):
    """Lets nothing anywhere, and waits for no event."""

    name = "Never"

    def __init__(self, args, handle):
        pass

    def filter(self, state, pod, node):
        return Status.unschedulable("never")

    def events(self):
        return ()


class Closed(PreEnqueuePlugin):
    name = "Closed"

    def __init__(self, args, handle):
        pass

    def pre_enqueue(self, pod):
        return Status.unresolvable("closed")

    def events(self):
        return ()


class Holds(PermitPlugin, ReservePlugin):
    """Keeps pods on hold, and remembers what happened to it."""

    name = "Holds"
    instances: ClassVar = []

    def __init__(self, args, handle):
        self.handle = handle
        self.log = []
        self.instances.append(self)

    def permit(self, state, pod, node_name):
        return Status.wait(), 60.0

    def reserve(self, state, pod, node_name):
        self.log.append(f"reserve {pod.name}")

    def unreserve(self, state, pod, node_name):
        self.log.append(f"unreserve {pod.name}")

    def close(self):
        self.log.append("close")


PLUGINS = {p.name: p for p in (Likes, Never, Closed, Holds)}


@pytest.fixture
def cluster():
    Holds.instances = []
    with Harness(
        plugins=PLUGINS,
        options=SchedulerOptions(live_profiles=LiveProfilesOptions(enabled=True), honor_foreign_nominations=False),
    ) as made:
        made.put(*(node(name).capacity(cpu="4", memory="8Gi", pods="110").obj() for name in ("a", "b", "c")))
        yield made


def profile(*plugins, name=NAME, **config):
    enabled = [{"name": plugin, "weight": 1000} for plugin in plugins]
    spec = {
        "schedulerName": name,
        "plugins": {"multiPoint": {"enabled": enabled}},
        "pluginConfig": [{"name": plugin, "args": args} for plugin, args in config.items()],
    }
    return load_profile(spec, default_configuration(), DEFAULT_GATES, "spec")


def put(cluster, *plugins, **config):
    answer = cluster.core.running.apply([profile(*plugins, **config)], ())[NAME]
    cluster.put()  # carries out what the change asked for
    assert isinstance(answer, Resolved), answer
    return answer


def remove(cluster):
    assert cluster.core.running.apply((), [NAME]) == {}
    cluster.put()


def batch_pod(name):
    return pod(name).scheduler(NAME).requests(cpu="100m").obj()


def node_of(cluster, name):
    return cluster.pod(f"default/{name}").node_name


def why(cluster, name):
    return [(c.reason, c.message) for c in cluster.pod(f"default/{name}").status.conditions if c.type == "PodScheduled"]


def test_pods_that_came_before_their_profile_are_scheduled_when_it_comes(cluster):
    cluster.put(batch_pod("early"))
    assert cluster.run() == 0
    answer = put(cluster, "Likes", Likes={"node": "b"})
    assert (answer.points["score"][-1], answer.weights["Likes"]) == ("Likes", 1000)
    cluster.run()
    assert node_of(cluster, "early") == "b"


def test_a_changed_profile_decides_from_the_next_pod_on(cluster):
    """Also where equal pods share a ranking: the class cache must not survive the plugins it was made with."""
    put(cluster, "Likes", Likes={"node": "a"})
    for i in range(4):
        assert cluster.schedule(batch_pod(f"a{i}")) == "a"
    assert cluster.core.engine.class_cache.hits
    put(cluster, "Likes", Likes={"node": "c"})
    for i in range(4):
        assert cluster.schedule(batch_pod(f"c{i}")) == "c"


def test_pods_that_the_old_plugins_rejected_are_tried_again(cluster):
    put(cluster, "Never")
    assert cluster.schedule(batch_pod("p")) == ""
    cluster.put(pod("other").requests(cpu="99").obj())
    cluster.run()
    put(cluster, "Likes", Likes={"node": "b"})
    assert cluster.core.queue.place_of("default/other") == "unschedulable", "another profile's pod is not woken"
    cluster.advance(2.0)
    cluster.run()
    assert node_of(cluster, "p") == "b"


def test_a_gate_that_comes_with_a_change_holds_pods_that_were_ready(cluster):
    put(cluster, "Likes", Likes={"node": "a"})
    cluster.put(batch_pod("p"))
    assert cluster.core.queue.place_of("default/p") == "active"
    put(cluster, "Closed")
    assert cluster.core.queue.place_of("default/p") == "gated"
    put(cluster, "Likes", Likes={"node": "b"})
    cluster.run()
    assert node_of(cluster, "p") == "b"


def test_pods_of_a_removed_profile_are_told_and_scheduled_when_it_returns(cluster):
    put(cluster, "Never")
    cluster.schedule(batch_pod("tried"))
    cluster.put(batch_pod("waiting"))
    cluster.events.clear()
    remove(cluster)
    assert {(e.regarding.name, e.reason, e.note) for e in cluster.events} == {
        ("tried", "FailedScheduling", UNSERVED),
        ("waiting", "FailedScheduling", UNSERVED),
    }
    assert why(cluster, "tried") == why(cluster, "waiting") == [("SchedulerError", UNSERVED)]
    assert cluster.run() == 0
    assert cluster.core.queue.pending_pods()[0] == []
    put(cluster, "Likes", Likes={"node": "c"})
    cluster.run()
    assert (node_of(cluster, "tried"), node_of(cluster, "waiting")) == ("c", "c")


def test_a_pod_on_hold_ends_with_the_plugins_that_decided_about_it(cluster):
    """The old plugin is closed after that, not before."""
    put(cluster, "Holds")
    cluster.schedule(batch_pod("held"))
    (old,) = Holds.instances
    put(cluster, "Holds")
    new = Holds.instances[-1]
    assert cluster.core.running.num_retired == 1
    assert old.log == ["reserve held"]
    uid = cluster.pod("default/held").pod_uid
    old.handle.waiting_pod(uid).allow("Holds")
    cluster.put()
    assert node_of(cluster, "held") in {"a", "b", "c"}
    assert old.log == ["reserve held", "close"]
    assert (new.log, cluster.core.running.num_retired) == ([], 0)


def test_a_rejected_pod_of_a_changed_profile_goes_to_the_new_plugins(cluster):
    put(cluster, "Holds")
    cluster.schedule(batch_pod("held"))
    (old,) = Holds.instances
    put(cluster, "Likes", Likes={"node": "b"})
    old.handle.waiting_pod(cluster.pod("default/held").pod_uid).reject("Holds", "no")
    cluster.put()
    assert old.log == ["reserve held", "unreserve held", "close"]
    cluster.advance(2.0)
    cluster.run()
    assert node_of(cluster, "held") == "b"


def test_a_rejected_pod_of_a_removed_profile_is_told_and_left(cluster):
    put(cluster, "Holds")
    cluster.schedule(batch_pod("held"))
    (old,) = Holds.instances
    remove(cluster)
    assert why(cluster, "held") == [], "a pod with a place is not told anything"
    old.handle.waiting_pod(cluster.pod("default/held").pod_uid).reject("Holds", "no")
    cluster.put()
    assert why(cluster, "held") == [("SchedulerError", UNSERVED)]
    assert cluster.core.cache.num_assumed == 0
    assert (cluster.core.queue.sizes().in_flight, cluster.run()) == (0, 0)
    put(cluster, "Likes", Likes={"node": "b"})
    cluster.run()
    assert node_of(cluster, "held") == "b"


def test_a_profile_that_returns_while_its_pod_is_on_hold_does_not_take_the_pod_twice(cluster):
    put(cluster, "Holds")
    cluster.schedule(batch_pod("held"))
    (old,) = Holds.instances
    remove(cluster)
    put(cluster, "Likes", Likes={"node": "b"})
    assert cluster.core.queue.get("default/held") is None
    old.handle.waiting_pod(cluster.pod("default/held").pod_uid).allow("Holds")
    cluster.put()
    assert node_of(cluster, "held")
    assert cluster.core.running.num_retired == 0


def test_a_deleted_pod_of_a_removed_profile_gives_its_place_back_at_once(cluster):
    put(cluster, "Holds")
    cluster.schedule(batch_pod("held"))
    remove(cluster)
    cluster.remove(cluster.pod("default/held"))
    assert cluster.core.cache.num_assumed == 0
    assert cluster.core.running.num_retired == 0


def test_a_removed_profile_gives_up_the_room_that_was_kept_for_its_pods(cluster):
    """The nomination ends, and a pod that waited for that room is woken."""
    put(cluster, "Never")
    nominee = pod("nominee").scheduler(NAME).requests(cpu="4").priority(10).nominated("a").obj()
    cluster.put(nominee, *(pod(f"full-{n}").requests(cpu="1").on(n).obj() for n in ("b", "c")))
    cluster.schedule(pod("small").requests(cpu="3500m").obj())
    assert (node_of(cluster, "small"), list(cluster.core.queue.nominated_nodes)) == ("", ["a"])
    remove(cluster)
    assert list(cluster.core.queue.nominated_nodes) == []
    assert cluster.pod("default/nominee").status.nominated_node_name == ""
    cluster.advance(2.0)
    cluster.run()
    assert node_of(cluster, "small") == "a"


def test_a_profile_that_cannot_be_made_changes_nothing(cluster):
    put(cluster, "Likes", Likes={"node": "a"})
    cluster.put(batch_pod("p"))
    bad = profile("Likes", "Missing", "Absent", Likes={})
    answer = cluster.core.running.apply([bad], ())[NAME]
    start = "initializing profiles: creating profile for scheduler name batch: "
    assert isinstance(answer, ConfigError)
    assert answer.problems == (
        f"{start}initializing plugin \"Likes\": KeyError: 'node'",
        f'{start}plugin "Missing" does not exist',
        f'{start}plugin "Absent" does not exist',
    )
    cluster.run()
    assert node_of(cluster, "p") == "a"


def test_a_plugin_that_waits_for_events_of_an_unwatched_kind_is_refused(cluster):
    """Its pods would wait for events that never come; the default plugins' kinds are all watched."""
    unwatched = [kind for kind in KINDS if kind not in cluster.core.kinds]
    assert "ResourceSlice" in {kind.__name__ for kind in unwatched}

    class Slices(Never):
        name = "Slices"

        def events(self):
            from scheduler.api import ActionType, ClusterEvent, EventResource

            return (EventRegistration(ClusterEvent(EventResource.RESOURCE_SLICE, ActionType.ADD)),)

    with Harness(
        plugins={"Slices": Slices}, options=SchedulerOptions(live_profiles=LiveProfilesOptions(enabled=True))
    ) as made:
        answer = made.core.running.apply([profile("Slices")], ())[NAME]
    assert isinstance(answer, ConfigError)
    assert "ResourceSlice" in str(answer)


def test_the_configuration_shown_is_the_one_in_use(cluster):
    put(cluster, "Likes", Likes={"node": "a"})
    names = [p.scheduler_name for p in cluster.core.running.configuration.profiles]
    assert names == ["default-scheduler", NAME]
    remove(cluster)
    assert [p.scheduler_name for p in cluster.core.running.configuration.profiles] == ["default-scheduler"]


def test_a_bug_in_one_profile_does_not_keep_others_waiting(cluster):
    class Odd(Never):
        name = "Odd"

        @property
        def api_version(self):
            raise RuntimeError("odd")

    with Harness(
        plugins={"Odd": Odd}, options=SchedulerOptions(live_profiles=LiveProfilesOptions(enabled=True))
    ) as made:
        answers = made.core.running.apply([profile("Odd", name="one"), profile(name="two")], ())
        assert isinstance(answers["one"], ConfigError), answers["one"]
        assert isinstance(answers["two"], Resolved)
        assert list(made.core.profiles) == ["default-scheduler", "two"]
