"""Bounds: what is kept about tenants' values does not grow with them."""

from scheduler.model import selectors
from scheduler.model.bounds import MAX_KEPT_CHARS, Kept, kept_for_short, selector_weight
from scheduler.model.meta import LabelSelector, LabelSelectorRequirement


def test_answers_about_long_texts_are_given_and_not_kept():
    """A megabyte is asked about as often as it comes."""
    asked = []

    @kept_for_short(8)
    def length(text: str) -> int:
        asked.append(text)
        return len(text)

    short, long = "a" * MAX_KEPT_CHARS, "a" * (MAX_KEPT_CHARS + 1)
    assert [length(text) for text in (short, short, long, long)] == [512, 512, 513, 513]
    assert asked == [short, long, long]


def test_too_many_entries_make_room_for_themselves():
    """Everything goes at once: what is still asked for comes back."""
    kept: Kept[int, str] = Kept(3, 1_000)
    for i in range(4):
        assert kept.keep(i, str(i), 1) == str(i)
    assert kept == {3: "3"}


def test_a_few_heavy_entries_count_like_many():
    """The weight counts from anew when everything has gone."""
    kept: Kept[int, str] = Kept(100, 10)
    kept.keep(1, "a", 6)
    kept.keep(2, "b", 4)
    assert kept == {1: "a", 2: "b"}
    kept.keep(3, "c", 1)
    assert kept == {3: "c"}
    kept.keep(4, "d", 9)
    assert kept == {3: "c", 4: "d"}


def test_an_entry_heavier_than_all_that_is_allowed_is_kept_alone():
    """It is bounded by the object that it comes from."""
    kept: Kept[int, str] = Kept(100, 10)
    kept.keep(1, "a", 50)
    assert kept == {1: "a"}
    kept.keep(2, "b", 1)
    assert kept == {2: "b"}


def test_the_weight_of_a_selector():
    """Labels, values and the expressions themselves."""
    requirement = LabelSelectorRequirement("a", "In", ("x", "y"))
    assert selector_weight(LabelSelector({"k": "v"}, (requirement, requirement))) == 7
    assert selector_weight(None) == selector_weight(LabelSelector()) == 0


def test_long_requirements_are_not_shared():
    """Two equal pods compile theirs twice; nothing stays behind when they go."""
    before = selectors._compile_short_requirement.cache_info().currsize
    values = tuple(f"v{i}" for i in range(selectors._MAX_SHARED_VALUES + 1))
    for _ in range(2):
        selector = LabelSelector({}, (LabelSelectorRequirement("a", "In", values),))
        assert selectors.label_selector_matches(selector, {"a": "v7"})
    assert selectors._compile_short_requirement.cache_info().currsize == before
