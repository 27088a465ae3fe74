"""Merging a profile's plugin set with the default one; the cases are upstream's (default_plugins_test.go)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.config.default_plugins import default_plugins
from scheduler.config.gates import DEFAULT_GATES
from scheduler.config.merge import merge_plugin_set, merge_plugins
from scheduler.config.types import PluginRef, Plugins, PluginSet


def _refs(text):
    """Read ``A B=2`` as plugin references."""
    pairs = [word.partition("=") for word in text.split()]
    return tuple(PluginRef(name, int(weight or 0)) for name, _, weight in pairs)


def _set(enabled="", disabled=""):
    return PluginSet(_refs(enabled), _refs(disabled))


@pytest.mark.parametrize(
    ("defaults", "custom", "expected"),
    [
        pytest.param(_set("A B C"), _set(), _set("A B C"), id="nothing said, nothing changed"),
        pytest.param(_set("A B C"), _set("D E=3"), _set("A B C D E=3"), id="enabled ones are appended in their order"),
        pytest.param(_set("A B C"), _set(disabled="B"), _set("A C", "B"), id="a disabled one goes"),
        pytest.param(_set("A B C"), _set(disabled="*"), _set("", "*"), id="star disables all"),
        pytest.param(_set("A B C"), _set("C A", "*"), _set("C A", "*"), id="star and re-enable reorders"),
        pytest.param(_set("A B=1 C"), _set("B=5"), _set("A B=5 C"), id="an enabled default is replaced in its place"),
        pytest.param(_set("A B C"), _set("B=5", "B"), _set("A C B=5", "B"), id="disabled and enabled moves to the end"),
        pytest.param(_set("A B C"), _set("C=1 X B=2"), _set("A B=2 C=1 X"), id="replacements keep the default order"),
        pytest.param(_set("A B"), _set("X X"), _set("A B X X"), id="repeated foreign ones are kept for expansion to refuse"),
        pytest.param(_set("A B"), _set("B=1 B=2"), _set("A B=2 B=1"), id="repeated default ones: the last replaces, the first is appended"),
        pytest.param(_set("A B"), _set(disabled="Z"), _set("A B", "Z"), id="disabling an unknown one is harmless"),
        pytest.param(_set("A B", "X"), _set(disabled="B"), _set("A", "B X"), id="disabled by default comes after"),
    ],
)  # fmt: skip
def test_merge_plugin_set(defaults, custom, expected):
    """Order, weights and the list of what was disabled."""
    assert merge_plugin_set(defaults, custom) == expected


def test_merge_works_point_by_point():
    """What is said about one point leaves the others alone."""
    defaults = default_plugins(DEFAULT_GATES)

    merged = merge_plugins(defaults, Plugins(score=_set("ImageLocality=9", "*")))

    assert merged.multi_point == defaults.multi_point
    assert merged.score == _set("ImageLocality=9", "*")
    assert merge_plugins(defaults, None) == defaults


_NAMES = st.lists(st.sampled_from("ABCDEF"), unique=True)


@given(_NAMES, _NAMES, _NAMES)
def test_merge_laws(default_names, enabled_names, disabled_names):
    """No plugin is lost or doubled, disabled defaults that are not re-enabled are gone."""
    defaults = PluginSet(tuple(PluginRef(name) for name in default_names))
    custom = PluginSet(tuple(PluginRef(n, 7) for n in enabled_names), tuple(PluginRef(n) for n in disabled_names))

    names = [ref.name for ref in merge_plugin_set(defaults, custom).enabled]

    assert len(names) == len(set(names))
    assert set(names) == (set(default_names) - set(disabled_names)) | set(enabled_names)
