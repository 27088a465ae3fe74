"""DefaultSelector: facts of upstream's helper/spread_test.go."""

import pytest

from scheduler.model.meta import LabelSelector, LabelSelectorRequirement
from scheduler.model.selectors import label_selector_matches
from scheduler.model.workload import ReplicaSet, ReplicationController, Service, StatefulSet
from scheduler.plugins.topology_spread import default_selector as module
from scheduler.plugins.topology_spread.constraints import is_empty
from scheduler.plugins.topology_spread.default_selector import DefaultSelector
from scheduler.state.store import Stores
from scheduler.testing import pod
from scheduler.testing.builders import obj

KINDS = {
    "Service": Service,
    "ReplicationController": ReplicationController,
    "ReplicaSet": ReplicaSet,
    "StatefulSet": StatefulSet,
}


class Handle:
    def __init__(self):
        self.stores = Stores()
        self.asked = []

    def lister(self, kind):
        self.asked.append(kind)
        return self.stores.of(kind)

    def put(self, kind, name, selector, ns="default"):
        manifest = {
            "metadata": {"name": name, "namespace": ns},
            "spec": {} if selector is None else {"selector": selector},
        }
        self.stores.of(KINDS[kind]).put(obj(KINDS[kind], manifest))


@pytest.fixture
def handle():
    return Handle()


def labels(**wanted):
    return {"matchLabels": wanted}


def test_kinds_are_asked_for_when_the_plugin_is_made(handle):
    """So that they are watched."""
    DefaultSelector(handle)
    assert set(handle.asked) == set(KINDS.values())


@pytest.mark.parametrize(
    ("objects", "owner", "expected"),
    [
        pytest.param([], None, {}, id="nothing"),
        pytest.param([("Service", "s", {"app": "web"})], None, {"app": "web"}, id="a service"),
        pytest.param([("Service", "s", {"app": "db"})], None, {}, id="a service of other pods"),
        pytest.param([("Service", "s", None)], None, {}, id="a service without selector"),
        pytest.param([("Service", "s", {})], None, {}, id="a service with an empty selector"),
        pytest.param(
            [("Service", "s", {"app": "web"}), ("Service", "t", {"tier": "x"})],
            None,
            {"app": "web", "tier": "x"},
            id="two services",
        ),
        pytest.param(
            [("ReplicationController", "rc", {"app": "web"})],
            ("ReplicationController", "rc", "v1"),
            {"app": "web"},
            id="a controller",
        ),
        pytest.param(
            [("Service", "s", {"app": "web"}), ("ReplicationController", "rc", {"tier": "x"})],
            ("ReplicationController", "rc", "v1"),
            {"app": "web", "tier": "x"},
            id="service and controller",
        ),
        pytest.param(
            [("ReplicaSet", "rs", labels(app="web"))],
            ("ReplicaSet", "rs", "apps/v1"),
            {"app": "web"},
            id="a replica set",
        ),
        pytest.param(
            [("StatefulSet", "ss", labels(app="web"))],
            ("StatefulSet", "ss", "apps/v1"),
            {"app": "web"},
            id="a stateful set",
        ),
        pytest.param(
            [("ReplicaSet", "rs", labels(app="web"))], ("ReplicaSet", "rs", "v1"), {}, id="another API group's kind"
        ),
        pytest.param(
            [("ReplicaSet", "rs", labels(app="web"))],
            ("ReplicaSet", "other", "apps/v1"),
            {},
            id="an owner that is gone",
        ),
        pytest.param([("ReplicaSet", "rs", None)], ("ReplicaSet", "rs", "apps/v1"), {}, id="an owner without selector"),
        pytest.param(
            [("Service", "s", {"app": "web"}), ("ReplicaSet", "rs", labels(tier="x"))],
            ("ReplicaSet", "rs", "apps/v1"),
            {"app": "web", "tier": "x"},
            id="service and replica set",
        ),
        pytest.param(
            [("ReplicaSet", "rs", {"matchExpressions": [{"key": "a", "operator": "Near"}]})],
            ("ReplicaSet", "rs", "apps/v1"),
            {},
            id="an owner with a bad selector",
        ),
    ],
)
def test_sources(handle, objects, owner, expected):
    """Services and the controlling owner, merged."""
    for kind, name, selector in objects:
        handle.put(kind, name, selector)
    made = pod("p").labels(app="web", tier="x")
    if owner is not None:
        made = made.owned_by(owner[0], owner[1], api_version=owner[2])

    assert DefaultSelector(handle).of(made.obj()) == LabelSelector(expected)


def test_expressions_of_the_owner(handle):
    """They are kept as they are."""
    handle.put("Service", "s", {"app": "web"})
    handle.put("StatefulSet", "ss", {"matchExpressions": [{"key": "tier", "operator": "Exists"}]})
    made = pod("p").labels(app="web").owned_by("StatefulSet", "ss")

    assert DefaultSelector(handle).of(made.obj()) == LabelSelector(
        {"app": "web"}, (LabelSelectorRequirement("tier", "Exists"),)
    )


def test_service_and_owner_contradict_each_other(handle):
    """Nothing has two values of one label."""
    handle.put("Service", "s", {"app": "web"})
    handle.put("ReplicaSet", "rs", labels(app="db"))
    selector = DefaultSelector(handle).of(pod("p").labels(app="web").owned_by("ReplicaSet", "rs").obj())

    assert not is_empty(selector)
    assert not label_selector_matches(selector, {"app": "web"})
    assert not label_selector_matches(selector, {"app": "db"})


def test_only_the_controlling_owner_counts(handle):
    """Other references are not looked at."""
    handle.put("ReplicaSet", "rs", labels(app="web"))
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "u"}
    made = pod("p").labels(app="web").set("metadata.ownerReferences", [owner])
    assert is_empty(DefaultSelector(handle).of(made.obj()))


def test_namespaces_are_apart(handle):
    """Services and owners of other namespaces do not matter."""
    handle.put("Service", "s", {"app": "web"}, ns="other")
    handle.put("ReplicaSet", "rs", labels(app="web"), ns="other")
    made = pod("p").labels(app="web").owned_by("ReplicaSet", "rs")

    selector = DefaultSelector(handle)
    assert is_empty(selector.of(made.obj()))
    assert not is_empty(selector.of(made.in_ns("other").obj()))


def test_services_that_change_are_seen(handle):
    """What was found is kept only as long as no service changes."""
    selector, waiting = DefaultSelector(handle), pod("p").labels(app="web").obj()
    assert is_empty(selector.of(waiting))
    handle.put("Service", "s", {"app": "web"})
    assert selector.of(waiting) == LabelSelector({"app": "web"})
    services = handle.stores.of(Service)
    services.remove(services.get("default/s"))
    assert is_empty(selector.of(waiting))


def test_services_are_not_searched_again_for_equal_labels(handle, monkeypatch):
    """The usual case: replicas arrive one after another."""
    for i in range(5):
        handle.put("Service", f"s{i}", {"app": f"app-{i}"})
    looks = []
    monkeypatch.setattr(module, "labels_match", lambda *given: looks.append(given))
    selector = DefaultSelector(handle)
    for i in range(3):
        selector.of(pod(f"p{i}").labels(app="app-1").obj())
    assert len(looks) == 5


def test_what_is_kept_is_bounded(handle, monkeypatch):
    """Pods with labels of their own do not fill the memory."""
    monkeypatch.setattr(module, "_MAX_KNOWN", 2)
    handle.put("Service", "s", {"app": "web"})
    selector = DefaultSelector(handle)
    for i in range(5):
        assert selector.of(pod("p").labels(app="web", own=str(i)).obj()) == LabelSelector({"app": "web"})
    assert len(selector._known) <= 2
