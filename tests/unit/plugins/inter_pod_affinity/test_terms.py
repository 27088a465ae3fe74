"""Questions: several terms become one, and it means the pods that each of them means."""

import itertools

import pytest

from scheduler.plugins.inter_pod_affinity.terms import MATCHES_NOTHING, Question, conjunction, matches_all
from scheduler.testing import pod
from scheduler.testing.builders import absent, in_, not_in

PODS = [
    pod().in_ns(name).labels(labels).obj()
    for name in ("a", "b")
    for labels in ({}, {"app": "web"}, {"app": "db"}, {"app": "web", "tier": "x"}, {"tier": "y"})
]


def asked(namespaces, wanted):
    term = pod().pod_affinity("zone", wanted).obj().spec.affinity.pod_affinity.required[0]
    return Question(None if namespaces is None else frozenset(namespaces), term.label_selector)


QUESTIONS = [
    asked(None, {}),
    asked("a", {"app": "web"}),
    asked("ab", {"app": "db"}),
    asked("b", {"app": "web", "tier": "x"}),
    asked(None, [not_in("app", "db"), absent("x")]),
    asked("ab", [in_("tier", "x", "y")]),
    asked("ab", None),
    asked("", {}),
]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_conjunction(number):
    """It selects exactly what all of the questions select."""
    for some in itertools.product(QUESTIONS, repeat=number):
        together = conjunction(some)
        for each in PODS:
            assert together.selects(each) is matches_all(some, each), (some, each)


def test_no_questions_match_nothing():
    """Parity: a pod without terms is not near to anybody."""
    assert not any(matches_all([], each) for each in PODS)
    assert not any(MATCHES_NOTHING.selects(each) for each in PODS)
