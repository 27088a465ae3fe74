"""Which victims disruption budgets would spare."""

import pytest

from scheduler.model.policy import PodDisruptionBudget
from scheduler.plugins.default_preemption.budgets import Budgets, split
from scheduler.state.store import Store
from scheduler.testing import pod
from scheduler.testing.builders import obj

WEB = {"matchLabels": {"app": "web"}}


def budget(name="b", namespace="default", allowed=0, *, selector=WEB, disrupted=()):
    spec = {} if selector is None else {"selector": selector}
    status = {"disruptionsAllowed": allowed, "disruptedPods": dict.fromkeys(disrupted, "2026-01-01T00:00:00Z")}
    return obj(
        PodDisruptionBudget, {"metadata": {"name": name, "namespace": namespace}, "spec": spec, "status": status}
    )


def budgets(*made):
    store = Store()
    for each in made:
        store.put(each)
    return Budgets(store)


def web(name, **labels):
    return pod(name).labels({"app": "web", **labels}).obj()


A, B, C = web("a"), web("b"), web("c", tier="front")
PLAIN, ABROAD = pod("plain").obj(), pod("a").in_ns("abroad").label("app", "web").obj()


@pytest.mark.parametrize(
    ("made", "pods", "violating"),
    [
        pytest.param([], [A, B], [], id="no budgets"),
        pytest.param([budget(allowed=0)], [A, B], [A, B], id="nothing allowed"),
        pytest.param([budget(allowed=1)], [A, B, C], [B, C], id="one allowed: the most important goes free"),
        pytest.param([budget(allowed=2)], [A, B], [], id="enough allowed"),
        pytest.param([budget(allowed=0)], [PLAIN], [], id="pods without labels match nothing"),
        pytest.param([budget(allowed=0)], [ABROAD], [], id="another namespace"),
        pytest.param([budget(selector={})], [A], [], id="an empty selector matches nothing"),
        pytest.param([budget(selector=None)], [A], [], id="no selector"),
        pytest.param(
            [budget(selector={"matchExpressions": [{"key": "app", "operator": "Is", "values": ["web"]}]})],
            [A],
            [],
            id="a bad selector matches nothing",
        ),
        pytest.param([budget(allowed=1, disrupted=["a"])], [A, B, C], [C], id="counted already by the controller"),
        pytest.param(
            [budget("x", allowed=9), budget("y", allowed=0, selector={"matchLabels": {"tier": "front"}})],
            [A, C],
            [C],
            id="one overdrawn budget of several is enough",
        ),
    ],
)
def test_split(made, pods, violating):
    """Both groups keep the order of importance."""
    assert split(pods, budgets(*made).by_namespace()) == (violating, [p for p in pods if p not in violating])


def test_budgets_are_read_anew_after_a_change():
    """A budget that changes counts at once; without a change nothing is read."""
    store = Store()
    store.put(budget(allowed=0))
    known = Budgets(store)
    assert split([A], known.by_namespace()) == ([A], [])
    assert known.by_namespace() is known.by_namespace()
    store.put(budget(allowed=1))
    assert split([A], known.by_namespace()) == ([], [A])
