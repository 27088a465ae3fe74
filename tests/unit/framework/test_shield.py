"""A third party's plugin that goes wrong: its pod fails with its name, or goes on without it, as the profile says."""

import numpy as np
import pytest

from scheduler.api import (
    BindPlugin,
    FilterPlugin,
    PermitPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ReservePlugin,
    ScorePlugin,
    Status,
    Verdicts,
)
from scheduler.config.options import FAIL_POD, SKIP_PLUGIN, PluginFaults, ProfileOptions, SchedulerOptions
from scheduler.testing.builders import node, pod
from scheduler.testing.harness import Harness


class Neutral:
    """Good answers at every point, for the methods that a test does not replace."""

    def filter(self, state, pod, node):
        return None

    def score(self, state, pod, node):
        return 0

    def unreserve(self, state, pod, node_name):
        pass


def odd(base, **methods):
    """Return a plugin class named Odd at one point."""
    return type("Odd", (Neutral, base), {"name": "Odd", "__init__": lambda self, args, handle: None, **methods})


def cluster_with(plugin, nodes=3, points=None, **faults):
    faults.setdefault("policy", SKIP_PLUGIN)
    kind = plugin.__mro__
    profile = {"schedulerName": "default-scheduler", "plugins": {"multiPoint": {"enabled": [{"name": "Odd"}]}}}
    if BindPlugin in kind:  # before the default one, or it would never be asked
        profile["plugins"] = {
            "bind": {"enabled": [{"name": "Odd"}, {"name": "DefaultBinder"}], "disabled": [{"name": "*"}]}
        }
    options = SchedulerOptions(profiles={"default-scheduler": ProfileOptions(plugin_faults=PluginFaults(**faults))})
    cluster = Harness(plugins={"Odd": plugin}, profile=profile, options=options)
    for number in range(nodes):
        cluster.put(node(f"n{number}").capacity(cpu="4", memory="8Gi", pods="110").obj())
    return cluster


def raising(self, *args):
    raise RuntimeError("odd")


async def raising_async(self, *args):
    raise RuntimeError("odd")


def answering(answer):
    return lambda self, *args: answer


async def answering_async(self, *args):
    return "odd"


def column(*values, dtype=np.int64):
    return lambda self, state, pod, nodes, *scores: np.array(values, dtype)


AT_POINTS = [
    pytest.param(PreEnqueuePlugin, {"pre_enqueue": raising}, id="PreEnqueue raises"),
    pytest.param(PreEnqueuePlugin, {"pre_enqueue": answering(True)}, id="PreEnqueue answers a bool"),
    pytest.param(PreFilterPlugin, {"pre_filter": raising}, id="PreFilter raises"),
    pytest.param(PreFilterPlugin, {"pre_filter": answering(None)}, id="PreFilter answers no pair"),
    pytest.param(PreFilterPlugin, {"pre_filter": answering(({"n1"}, None))}, id="PreFilter answers a bare set"),
    pytest.param(PreFilterPlugin, {"pre_filter": answering((PreFilterResult(["n1"]), None))}, id="names in a list"),
    pytest.param(FilterPlugin, {"filter": raising}, id="Filter raises"),
    pytest.param(FilterPlugin, {"filter": answering(False)}, id="Filter answers a bool"),
    pytest.param(FilterPlugin, {"filter_all": raising}, id="whole-cluster Filter raises"),
    pytest.param(FilterPlugin, {"filter_all": answering(Verdicts(np.ones(2, np.bool_), None))}, id="too few verdicts"),
    pytest.param(
        FilterPlugin,
        {"filter_all": answering(Verdicts(np.ones(3, np.bool_), None, errors=np.ones(2, np.bool_)))},
        id="too few errors",
    ),
    pytest.param(FilterPlugin, {"filter_all": answering([True] * 3)}, id="verdicts in a list"),
    pytest.param(PreScorePlugin, {"pre_score": raising}, id="PreScore raises"),
    pytest.param(PreScorePlugin, {"pre_score": answering(1)}, id="PreScore answers an int"),
    pytest.param(ScorePlugin, {"score": raising}, id="Score raises"),
    pytest.param(ScorePlugin, {"score": answering(None)}, id="Score answers None"),
    pytest.param(ScorePlugin, {"score": answering(101)}, id="Score above 100"),
    pytest.param(ScorePlugin, {"score_all": raising}, id="whole-cluster Score raises"),
    pytest.param(ScorePlugin, {"score_all": column(1, 2)}, id="too few scores"),
    pytest.param(ScorePlugin, {"score_all": column(1, 2, -1)}, id="a score below 0"),
    pytest.param(ScorePlugin, {"score_all": column(1, 2, 3, dtype=np.float64)}, id="scores that are floats"),
    pytest.param(ScorePlugin, {"normalize": raising}, id="Normalize raises"),
    pytest.param(ScorePlugin, {"normalize": column(1, 2, 300)}, id="Normalize leaves 0..100"),
    pytest.param(ReservePlugin, {"reserve": raising}, id="Reserve raises"),
    pytest.param(ReservePlugin, {"reserve": answering("no")}, id="Reserve answers a text"),
    pytest.param(PermitPlugin, {"permit": raising}, id="Permit raises"),
    pytest.param(PermitPlugin, {"permit": answering(None)}, id="Permit answers no pair"),
    pytest.param(PermitPlugin, {"permit": answering((Status.wait(), float("nan")))}, id="Permit waits for NaN seconds"),
    pytest.param(PreBindPlugin, {"pre_bind": answering(None), "pre_bind_pre_flight": raising}, id="pre-flight raises"),
    pytest.param(PreBindPlugin, {"pre_bind": raising}, id="PreBind raises"),
    pytest.param(PreBindPlugin, {"pre_bind": raising_async}, id="async PreBind raises"),
    pytest.param(PreBindPlugin, {"pre_bind": answering(1)}, id="PreBind answers an int"),
    pytest.param(PreBindPlugin, {"pre_bind": answering_async}, id="async PreBind answers a text"),
    pytest.param(BindPlugin, {"bind": raising}, id="Bind raises"),
    pytest.param(BindPlugin, {"bind": raising_async}, id="async Bind raises"),
]


@pytest.mark.parametrize(("base", "methods"), AT_POINTS)
def test_skipped_the_pod_goes_on_without_the_plugin(base, methods):
    """It is bound, and an event says what happened."""
    with cluster_with(odd(base, **methods)) as cluster:
        assert cluster.schedule(pod("p").obj()) != ""
        told = [event for event in cluster.events if event.reason == "PluginSkipped"]
        assert len(told) == 1, "once skipped it is not asked again in the attempt"
        assert (told[0].regarding.name, told[0].kind) == ("p", "Warning")
        assert told[0].note.startswith('went on without plugin "Odd": ')


@pytest.mark.parametrize(("base", "methods"), AT_POINTS)
def test_else_the_pod_fails_with_the_plugins_name(base, methods):
    """It is not bound; its condition names the plugin."""
    with cluster_with(odd(base, **methods), policy=FAIL_POD) as cluster:
        assert cluster.schedule(pod("p").obj()) == ""
        told = cluster.pod("default/p").status.conditions
        if base is PreEnqueuePlugin:  # gated pods are not written to
            assert cluster.core.queue.pop_specific_pod(pod("p").obj()) is None
        else:
            assert "Odd" in told[0].message
        assert [event for event in cluster.events if event.reason == "PluginSkipped"] == []


def test_post_filter_that_is_skipped_leaves_it_to_the_next(caplog):
    """Preemption behind it still makes room."""
    plugin = odd(PostFilterPlugin, post_filter=raising)
    with cluster_with(plugin, nodes=1) as cluster:
        cluster.schedule(pod("low").requests(cpu="3").priority(1).obj())
        cluster.schedule(pod("high").requests(cpu="3").priority(2).obj())
        assert [victim.name for victim in cluster.evicted] == ["low"]


def test_what_it_said_of_some_nodes_before_it_failed_does_not_count():
    """Half a Filter rejects nobody, half a Score prefers nobody."""

    def half(good, bad):
        def answer(self, state, pod, node):
            if node.name == "n2":
                raise RuntimeError("odd")
            return bad if node.name == "n0" else good

        return answer

    with cluster_with(odd(FilterPlugin, filter=half(None, Status.unschedulable("not this one")))) as cluster:
        cluster.schedule(pod("p").requests(cpu="3").obj())
        assert len(cluster.last.feasible) == 3
    with cluster_with(odd(ScorePlugin, score=half(0, 100))) as cluster:
        cluster.schedule(pod("p").obj())
        assert "Odd" not in {name for name, _, _ in cluster.last.scores.by_plugin}


def test_reasons_that_cannot_be_had_are_replaced():
    """The nodes were left out already; their owner is told by whom."""

    def nobody(self, state, pod, nodes):
        return Verdicts(np.zeros(len(nodes), np.bool_), raising)

    with cluster_with(odd(FilterPlugin, filter_all=nobody)) as cluster:
        assert cluster.schedule(pod("p").obj()) == ""
        told = cluster.pod("default/p").status.conditions[0].message
        assert told.startswith('0/3 nodes are available: 3 node(s) were rejected by plugin "Odd".')


def test_answers_other_than_faults_stand():
    """A rejection is no fault, and what the plugin says of itself is shown."""

    def only_n1(self, state, pod, node):
        return None if node.name == "n1" else Status.unschedulable("not n1")

    with cluster_with(odd(FilterPlugin, filter=only_n1, color="red")) as cluster:
        assert cluster.schedule(pod("p").obj()) == "n1"
        assert cluster.events[-1].reason == "Scheduled"
        assert cluster.core.profiles["default-scheduler"].plugins["Odd"].color == "red"


class Counting(Neutral, FilterPlugin):
    """Raises for pods labelled bad."""

    name = "Odd"

    def __init__(self, args, handle):
        self.asked = 0

    def filter(self, state, pod, node):
        self.asked += 1
        if "bad" in pod.metadata.labels:
            raise RuntimeError("odd")
        return Status.unschedulable("odd says no")


def bad(name):
    return pod(name).label("bad", "yes").obj()


def asked(cluster):
    return cluster.core.profiles["default-scheduler"].plugins["Odd"].asked


def quarantined(cluster):
    return [event.note for event in cluster.events if event.reason == "PluginQuarantined"]


def test_quarantine_after_faults_on_several_pods():
    """It is not asked for a while; then it is on probation, and one more fault puts it back."""
    with cluster_with(Counting, quarantine_after=2, window_s=60.0, quarantine_s=30.0) as cluster:
        assert cluster.schedule(bad("b1")) != ""
        assert cluster.schedule(pod("p1").obj()) == ""
        assert cluster.schedule(bad("b2")) != ""
        assert quarantined(cluster) == [
            'plugin "Odd" is in quarantine for another 30 s after faults on several pods, the last one: RuntimeError: odd at Filter'
        ]
        before = asked(cluster)
        assert cluster.schedule(pod("p2").obj()) != ""
        assert asked(cluster) == before
        cluster.advance(30)
        assert cluster.schedule(pod("p3").obj()) == ""
        assert cluster.schedule(bad("b3")) != ""
        assert len(quarantined(cluster)) == 2
        assert cluster.schedule(pod("p4").obj()) != ""
        cluster.advance(30 + 61)
        assert cluster.schedule(pod("p5").obj()) == ""
        cluster.advance(61)
        assert cluster.schedule(bad("b4")) != ""
        assert len(quarantined(cluster)) == 2, "after a window without a fault it is as good as new"


def test_quarantine_of_a_profile_that_fails_pods():
    """They fail at once, with the reason, and the plugin is not asked."""
    with cluster_with(Counting, policy=FAIL_POD, quarantine_after=2) as cluster:
        cluster.schedule(bad("b1"))
        cluster.schedule(bad("b2"))
        before = asked(cluster)
        assert cluster.schedule(pod("p").obj()) == ""
        assert asked(cluster) == before
        told = cluster.pod("default/p").status.conditions[0]
        assert told.message == (
            'running "Odd" filter plugin: in quarantine for another 60 s after faults on several pods, the last one: '
            "RuntimeError: odd at Filter"
        )
        assert told.reason == "SchedulerError"


def test_one_pod_alone_puts_nobody_in_quarantine():
    """However often it is tried; and by default a profile that fails pods has no quarantine at all."""
    with cluster_with(Counting, quarantine_after=2) as cluster:
        cluster.put(bad("b1"))
        for _ in range(5):
            cluster.try_pod(bad("b1"))
        assert quarantined(cluster) == []
    with cluster_with(Counting, policy=FAIL_POD) as cluster:
        for number in range(30):
            cluster.schedule(bad(f"b{number}"))
        assert quarantined(cluster) == []


class Slow(Neutral, FilterPlugin):
    """Takes 0.3 s for each node, by the harness's clock."""

    name = "Odd"
    clock = None

    def __init__(self, args, handle):
        pass

    def filter(self, state, pod, node):
        Slow.clock.advance(0.3)


def test_overruns_count_and_the_answer_stands():
    """A budget of the profile's own; an event and the quarantine name the plugin."""
    with cluster_with(Slow, nodes=1, budget_ms=200, quarantine_after=2) as cluster:
        Slow.clock = cluster.clock
        assert cluster.schedule(pod("p1").obj()) == "n0"
        notes = [event.note for event in cluster.events if event.reason == "PluginOverran"]
        assert notes == ['plugin "Odd" took 0.300 s at Filter, which is over its budget']
        cluster.schedule(pod("p2").obj())
        assert len(quarantined(cluster)) == 1
        at_s = cluster.clock.now()
        assert cluster.schedule(pod("p3").obj()) == "n0"
        assert cluster.clock.now() == at_s


def test_podiums_own_plugins_have_no_shield():
    """They are what they are made as."""
    with cluster_with(Counting) as cluster:
        plugins = cluster.core.profiles["default-scheduler"].plugins
        shielded = {name for name, plugin in plugins.items() if type(plugin).__name__.startswith("Shielded")}
        assert shielded == {"Odd"}


@pytest.mark.parametrize("reads_pods", [True, False])
def test_signature_that_cannot_be_looked_up_is_a_bad_answer(reads_pods):
    """A list or a dict: the pod is decided without what is kept, and the plugin is told what is wrong."""

    def labels_of(self, pod):
        return pod.metadata.labels

    plugin = odd(FilterPlugin, node_signature=labels_of, reads_pods=reads_pods)
    with cluster_with(plugin, policy=FAIL_POD, quarantine_after=3) as cluster:
        assert [cluster.schedule(pod(f"p{i}").obj()) != "" for i in range(2)] == [True] * 2
        cluster.schedule(pod("p2").obj())
        assert "returned dict where a hashable value" in quarantined(cluster)[0]


def test_normalized_scores_may_be_narrow_integers():
    """As in every other way to a decision, also where a ranking is kept."""

    def narrow(self, state, pod, nodes, scores):
        return scores.astype(np.int32)

    plugin = odd(ScorePlugin, normalize=narrow, node_signature=lambda self, pod: ())
    with cluster_with(plugin, policy=FAIL_POD) as cluster:
        assert [cluster.schedule(pod(f"p{i}").obj()) != "" for i in range(4)] == [True] * 4
        assert cluster.core.engine.class_cache.hits > 0


class Fickle(Neutral, PreFilterPlugin, PreScorePlugin, ScorePlugin):
    """Its first score after the third pod fails, and from then on its PreFilter rejects."""

    name = "Odd"

    def __init__(self, args, handle):
        self.scored = 0

    def pre_filter(self, state, pod, nodes):
        return None, Status.unschedulable("no") if self.scored > 3 else None

    def pre_score(self, state, pod, nodes):
        return None

    def score_all(self, state, pod, nodes):
        self.scored += 1
        if self.scored == 4:
            raise RuntimeError("odd")
        return np.zeros(len(nodes), np.int64)


def test_trial_of_a_kept_ranking_leaves_nothing_behind():
    """The ordinary way after it finds its own nodes, here none."""
    with cluster_with(Fickle, policy=FAIL_POD) as cluster:
        assert [cluster.schedule(pod(f"p{i}").obj()) != "" for i in range(4)] == [True, True, True, False]
        assert cluster.core.engine.class_cache.hits == 1
