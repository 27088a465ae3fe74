"""Plugins by name: in-tree and from installed distributions, loaded only when wanted."""

from importlib.metadata import EntryPoint

import pytest

from scheduler.api import Plugin
from scheduler.framework.registry import ENTRY_POINT_GROUP, IN_TREE, Origin, Registry, RegistryError


class Mine(Plugin):
    name = "Mine"

    def __init__(self, args=None, handle=None):
        self.args = args
        self.handle = handle


class FakeDistribution:
    def __init__(self, name, version="1.0"):
        self.name = name
        self.version = version


class FakeEntryPoint(EntryPoint):
    """An entry point that loads what it is given and counts how often."""

    def load(self):
        if isinstance(self.target, Exception):
            raise self.target
        self.loads.append(self.name)
        return self.target


def entry_point(name, target, dist="acme-plugins", loads=None):
    made = FakeEntryPoint(name, f"acme.{name.lower()}:{name}", ENTRY_POINT_GROUP)
    vars(made).update(dist=FakeDistribution(dist), target=target, loads=[] if loads is None else loads)
    return made


def test_in_tree_plugins():
    """The in-tree table is handed in; a class is a factory."""
    registry = Registry({"Mine": Mine})
    plugin = registry.make("Mine", {"a": 1}, "handle")
    assert (type(plugin), plugin.args, plugin.handle) == (Mine, {"a": 1}, "handle")
    assert registry.origin("Mine") == Origin(IN_TREE)


def test_entry_points_are_loaded_when_made_and_once():
    """Knowing a plugin imports nothing."""
    loads = []
    registry = Registry({}, [entry_point("Mine", Mine, loads=loads), entry_point("Other", Mine, loads=loads)])
    assert registry.names == ["Mine", "Other"]
    assert "Mine" in registry
    assert loads == []
    registry.make("Mine", None, None)
    registry.make("Mine", None, None)
    assert loads == ["Mine"]
    assert str(registry.origin("Mine")) == "acme-plugins 1.0 (acme.mine:Mine)"


def test_the_same_distribution_seen_twice_is_one():
    """Two entries of sys.path may show one distribution twice."""
    registry = Registry({}, [entry_point("Mine", Mine), entry_point("Mine", Mine)])
    assert isinstance(registry.make("Mine", None, None), Mine)


def broken(args, handle):
    raise ValueError("zones must be given")


class NotAPlugin:
    def __init__(self, args, handle):
        pass


@pytest.mark.parametrize(
    ("registry", "text"),
    [
        pytest.param(Registry({}), 'plugin "Mine" does not exist', id="unknown"),
        pytest.param(
            Registry({"Mine": Mine}, [entry_point("Mine", Mine)]),
            'a plugin named "Mine" is offered by podium (in-tree) and acme-plugins 1.0 (acme.mine:Mine): '
            "uninstall all but one",
            id="an in-tree name is taken",
        ),
        pytest.param(
            Registry({}, [entry_point("Mine", Mine, "acme"), entry_point("Mine", Mine, "emca")]),
            'a plugin named "Mine" is offered by acme 1.0 (acme.mine:Mine) and emca 1.0 (acme.mine:Mine): '
            "uninstall all but one",
            id="two distributions offer the name",
        ),
        pytest.param(
            Registry({}, [entry_point("Mine", ImportError("no module named acme"))]),
            'loading plugin "Mine" of acme-plugins 1.0 (acme.mine:Mine): ImportError: no module named acme',
            id="import fails",
        ),
        pytest.param(
            Registry({}, [entry_point("Mine", 42)]),
            'plugin "Mine" of acme-plugins 1.0 (acme.mine:Mine): a int is no plugin factory',
            id="entry point is no factory",
        ),
        pytest.param(
            Registry({"Mine": broken}),
            'initializing plugin "Mine": ValueError: zones must be given',
            id="factory fails",
        ),
        pytest.param(
            Registry({"Mine": NotAPlugin}),
            'initializing plugin "Mine": the factory of podium (in-tree) made a NotAPlugin, '
            "which does not inherit from scheduler.api.Plugin",
            id="factory makes something else",
        ),
        pytest.param(
            Registry({"Mine": type("Yours", (Mine,), {"name": "Yours"})}),
            "initializing plugin \"Mine\": the plugin of podium (in-tree) calls itself 'Yours'",
            id="names differ",
        ),
    ],
)
def test_refusals(registry, text):
    """Every refusal says what is wrong and which distribution it is about."""
    with pytest.raises(RegistryError) as caught:
        registry.make("Mine", None, None)
    assert str(caught.value) == text


def test_installed_reads_the_environment():
    """The default source is the environment's entry points; the development environment has none that clash."""
    registry = Registry.installed({"Mine": Mine})
    assert registry.origin("Mine") == Origin(IN_TREE)
