"""What a framework gives the queue: order, gates, registrations."""

import pytest

from scheduler.api import (
    ActionType,
    ClusterEvent,
    EventRegistration,
    EventResource,
    FilterPlugin,
    Plugin,
    PreEnqueuePlugin,
    QueuedPodInfo,
    QueueSortPlugin,
    ScorePlugin,
    Status,
)
from scheduler.framework.runtime import ALL_EVENTS, EXTENDER, Framework
from scheduler.framework.waiting import WaitingPods
from scheduler.testing.builders import pod

WEB = pod("web").obj()
NODE_ADD = EventRegistration(ClusterEvent(EventResource.NODE, ActionType.ADD))


class Filters(FilterPlugin):
    name = "Filters"

    def __init__(self, events):
        self.answer = events

    def filter(self, state, pod, node):
        return None

    def events(self):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Scores(ScorePlugin):
    name = "Scores"

    def score(self, state, pod, node):
        return 0


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param(None, ALL_EVENTS, id="no events named: all"),
        pytest.param((), (), id="an empty list: none"),
        pytest.param([NODE_ADD], (NODE_ADD,), id="the named ones"),
        pytest.param(OSError("x"), ALL_EVENTS, id="cannot say: all"),
        pytest.param(["NodeAdd"], ALL_EVENTS, id="nonsense: all"),
        pytest.param(7, ALL_EVENTS, id="no list: all"),
    ],
)
def test_registrations(framework_of, events, expected):
    """A plugin that cannot name its events is woken by all of them, so that no pod strands."""
    framework = framework_of(filter=[Filters(events)], score=[Scores()])
    assert framework.queue_profile().registrations == [("Filters", event) for event in expected]


def test_all_events_are_unrolled():
    """The kinds are upstream's; a wildcard would not start their watches."""
    assert [event.event.label for event in ALL_EVENTS] == [
        "PodAll",
        "NodeAll",
        "PersistentVolumeAll",
        "PersistentVolumeClaimAll",
        "storage.k8s.io/CSINodeAll",
        "storage.k8s.io/CSIDriverAll",
        "storage.k8s.io/CSIStorageCapacityAll",
        "storage.k8s.io/StorageClassAll",
        "resource.k8s.io/ResourceClaimAll",
        "resource.k8s.io/DeviceClassAll",
    ]


def test_extenders_are_a_pseudo_plugin(clock):
    """Pods rejected by an extender are woken by every event."""
    framework = Framework("p", {}, {}, waiting=WaitingPods(clock), perf_counter=lambda: 0.0, has_extenders=True)
    assert framework.queue_profile().registrations == [(EXTENDER, event) for event in ALL_EVENTS]


class Gate(PreEnqueuePlugin):
    name = "Gate"

    def __init__(self, answer):
        self.answer = answer

    def pre_enqueue(self, pod):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        pytest.param(None, None, id="lets the pod in"),
        pytest.param(Status.unresolvable("gated"), "gated", id="keeps it out"),
        pytest.param(OSError("x"), 'running PreEnqueue plugin "Gate": OSError: x', id="raises"),
        pytest.param(
            True,
            'running PreEnqueue plugin "Gate": returned bool (True) where a Status or None was expected',
            id="answers nonsense",
        ),
    ],
)
def test_pre_enqueue_is_guarded(framework_of, answer, message):
    """The queue gets statuses, whatever the plugin does."""
    (gate,) = framework_of(pre_enqueue=[Gate(answer)]).queue_profile().pre_enqueue
    status = gate.pre_enqueue(WEB)
    assert (status and status.message, status and status.plugin) == (message, message and "Gate")


class ByName(QueueSortPlugin):
    name = "ByName"

    def less(self, a, b):
        return a.pod.name < b.pod.name


class ByKey(ByName):
    def sort_key(self, info):
        if info.pod.name == "broken":
            raise KeyError(info.pod.name)
        return info.pod.name


@pytest.mark.parametrize("plugin", [ByName(), ByKey()])
def test_sort_key(framework_of, plugin):
    """Keys order as the plugin says, derived from ``less`` or not."""
    infos = [QueuedPodInfo(pod(name).obj(), 1.0) for name in "cab"]
    ordered = sorted(infos, key=framework_of(queue_sort=[plugin]).sort_key)
    assert [info.pod.name for info in ordered] == ["a", "b", "c"]


def test_failing_sort_key_puts_the_pod_last(framework_of, metrics):
    """A pod that breaks the order plugin must not break the queue."""
    infos = [QueuedPodInfo(pod(name).obj(), 1.0) for name in ("broken", "b", "a")]
    ordered = sorted(infos, key=framework_of(queue_sort=[ByKey()]).sort_key)
    assert [info.pod.name for info in ordered] == ["a", "b", "broken"]
    assert metrics.faults == [("ByName", "QueueSort", "exception")]


class Closes(Plugin):
    def __init__(self, name, closed, error=None):
        self.name = name
        self.closed = closed
        self.error = error

    def close(self):
        self.closed.append(self.name)
        if self.error is not None:
            raise self.error


def test_close_reaches_all_plugins(framework_of):
    """One plugin that cannot close does not keep the others open."""
    closed = []
    framework = framework_of(mine=[Closes("A", closed, OSError("x")), Closes("B", closed)])
    framework.close()
    assert closed == ["A", "B"]
