"""Which victims disruption budgets would spare."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.model import visible_labels
from scheduler.model.policy import PodDisruptionBudget
from scheduler.model.selectors import label_selector_matches
from scheduler.plugins.default_preemption.budgets import Budgets, split
from scheduler.state.store import Store
from scheduler.testing import pod
from scheduler.testing.builders import absent, in_, obj, selector

WEB = {"matchLabels": {"app": "web"}}


def budget(name="b", namespace="default", allowed=0, *, selects=WEB, disrupted=()):
    spec = {} if selects is None else {"selector": selects}
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
        pytest.param([budget(selects={})], [A], [], id="an empty selector matches nothing"),
        pytest.param([budget(selects=None)], [A], [], id="no selector"),
        pytest.param(
            [budget(selects={"matchExpressions": [{"key": "app", "operator": "Is", "values": ["web"]}]})],
            [A],
            [],
            id="a bad selector matches nothing",
        ),
        pytest.param([budget(allowed=1, disrupted=["a"])], [A, B, C], [C], id="counted already by the controller"),
        pytest.param(
            [budget("x", allowed=9), budget("y", allowed=0, selects={"matchLabels": {"tier": "front"}})],
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


def walk(pods, made):
    """The rule, word by word: each pod against each budget."""
    left, violating = {}, []
    for each in pods:
        is_violation = False
        for known in made:
            selects = bool(each.labels) and label_selector_matches(known.spec.selector, each.labels)
            if not selects or known.namespace != each.namespace or each.name in known.status.disrupted_pods:
                continue
            left[known.key] = left.get(known.key, known.status.disruptions_allowed) - 1
            is_violation |= left[known.key] < 0
        if is_violation:
            violating.append(each)
    return violating


SELECTORS = (WEB, {"matchLabels": {"tier": "x"}}, selector([absent("tier")]), selector([in_("app", "web", "db")]))


@given(st.integers(0, 2**32))
@settings(deadline=None, max_examples=200)
def test_many_budgets_at_once_say_what_one_by_one_they_say(seed):
    """Whatever they allow, select and have booked."""
    rng = random.Random(seed)
    made = [
        budget(
            f"b{i}",
            rng.choice(("default", "shop")),
            rng.choice((0, 0, 1, 2, 3, 100)),
            selects=rng.choice(SELECTORS),
            disrupted=rng.sample([f"p{j}" for j in range(8)], rng.choice((0, 0, 2))),
        )
        for i in range(rng.randint(1, 9))
    ]
    pods = []
    for i in range(rng.randint(0, 8)):
        labels = {
            key: value for key, value in (("app", rng.choice(("web", "db", "x"))), ("tier", "x")) if rng.random() < 0.7
        }
        pods.append(pod(f"p{i}").in_ns(rng.choice(("default", "shop"))).labels(labels).obj())
    violating = walk(pods, made)
    assert split(pods, budgets(*made).by_namespace()) == (violating, [p for p in pods if p not in violating])


def test_thousands_of_budgets_are_asked_about_pods_that_look_alike_once(monkeypatch):
    """Not for each victim on each node, which are hundreds in one attempt."""
    made = [budget(f"b{i}", selects=selector([absent(f"no-such-label-{i}")])) for i in range(500)]
    by_namespace = budgets(*made).by_namespace()
    asked = []
    matches = visible_labels.label_selector_matches
    monkeypatch.setattr(visible_labels, "label_selector_matches", lambda *args: asked.append(args) or matches(*args))
    for node in range(20):
        victims = [web(f"v{node}-{i}") for i in range(4)]
        assert split(victims, by_namespace) == (victims, [])
    assert len(asked) == 500
