"""Visible labels: pods that look alike to selectors are asked about once."""

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.model.meta import LabelSelector, LabelSelectorRequirement
from scheduler.model.selectors import label_selector_matches
from scheduler.model.visible_labels import OTHER, SelectorSet, VisibleLabels

KEYS, VALUES = st.sampled_from("abc"), st.sampled_from(["1", "2", "3", ""])


@st.composite
def requirements(draw):
    operator = draw(st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist")))
    values = draw(st.lists(VALUES, min_size=1, max_size=2, unique=True)) if operator in ("In", "NotIn") else ()
    return LabelSelectorRequirement(draw(KEYS), operator, tuple(values))


SELECTORS = st.none() | st.builds(
    LabelSelector, st.dictionaries(KEYS, VALUES, max_size=2), st.lists(requirements(), max_size=2).map(tuple)
)
LABELS = st.dictionaries(st.sampled_from("abcd"), st.sampled_from(["1", "2", "3", "", "4", "5"]))


@given(st.lists(SELECTORS, max_size=6), LABELS, LABELS)
@settings(deadline=None)
def test_what_looks_alike_is_matched_alike(selectors, one, other):
    """Selectors cannot tell labels apart of which they see the same."""
    visible = VisibleLabels(selectors)
    if visible.of(one) == visible.of(other):
        assert [label_selector_matches(s, one) for s in selectors] == [
            label_selector_matches(s, other) for s in selectors
        ]


@given(st.lists(SELECTORS, max_size=6), SELECTORS, LABELS)
@settings(deadline=None)
def test_what_was_taken_out_is_not_seen(selectors, another, labels):
    """Selectors that came and went leave nothing behind."""
    visible = VisibleLabels([*selectors, another])
    visible.remove(another)
    assert visible.of(labels) == VisibleLabels(selectors).of(labels)


def test_values_that_nobody_names_are_one():
    """Keys that nobody names are not seen, values that nobody names are all the same."""
    visible = VisibleLabels(
        [LabelSelector({"app": "web"}), LabelSelector({}, (LabelSelectorRequirement("x", "Exists"),))]
    )
    assert visible.of({"app": "web", "pod": "7"}) == (("app", "web"),)
    assert visible.of({"x": "1", "app": "db"}) == (("app", OTHER), ("x", OTHER))


@given(st.lists(SELECTORS, max_size=8), st.lists(LABELS, max_size=8))
@settings(deadline=None)
def test_a_set_answers_as_its_selectors_do(selectors, several):
    """Kept answers are the right ones, whoever asked before."""
    together = SelectorSet(selectors)
    for labels in several:
        answers = [label_selector_matches(selector, labels) for selector in selectors]
        assert together.matching(labels) == sum(1 << i for i, matches in enumerate(answers) if matches)
        assert together.all_match(labels) == all(answers)


def test_a_set_asks_its_selectors_once_for_each_kind_of_pod():
    """A thousand pods of two kinds cost two rounds, however different their other labels are."""
    together = SelectorSet([LabelSelector({"app": f"a{i}"}) for i in range(2_000)])
    for i in range(1_000):
        together.matching({"app": "a7" if i % 2 else f"unknown-{i}", "pod": str(i)})
    assert together.num_evaluated == 2 * 2_000


def test_what_a_set_keeps_is_bounded_by_its_size():
    """Not by how many kinds of pods there are, nor by how many labels they have."""
    together = SelectorSet([LabelSelector({}, (LabelSelectorRequirement(f"l{i}", "Exists"),)) for i in range(100)])
    for i in range(2_000):
        together.matching({f"l{j}": "" for j in range(100) if (i * 7919 + 31) >> j % 16 & 1})
    kept = together._kept
    assert 0 < len(kept) <= 116
    assert sum(1 + len(seen) for seen in kept) <= 4 * 116
