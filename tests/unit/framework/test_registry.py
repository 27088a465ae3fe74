"""Plugins by name: in-tree and from installed distributions, loaded only when wanted."""

from importlib.metadata import EntryPoint

import msgspec
import pytest

from scheduler.api import Plugin, PluginArgs
from scheduler.framework.plugin_args import ArgsError
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
        self.loads.append(self.name)
        if isinstance(self.target, BaseException):
            raise self.target
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


def test_loading_ahead_spares_the_maker_the_import():
    """Also when it fails: another load tries again, making does not."""
    loads = []
    registry = Registry({}, [entry_point("Bad", ImportError("no acme"), loads=loads)])
    assert [registry.is_loaded(name) for name in ("Bad", "Unknown")] == [False, True]
    registry.preload("Bad")
    registry.preload("Unknown")
    with pytest.raises(RegistryError, match="ImportError: no acme"):
        registry.make("Bad", None, None)
    assert loads == ["Bad"]
    registry.preload("Bad")
    assert loads == ["Bad", "Bad"]


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
            Registry({}, [entry_point("Mine", SystemExit("not on this machine"))]),
            'loading plugin "Mine" of acme-plugins 1.0 (acme.mine:Mine): SystemExit: not on this machine',
            id="import ends the process",
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


class Weight(PluginArgs):
    zone: str
    weight: int = 1


class ZoneArgs(PluginArgs):
    zones: tuple[Weight, ...] = ()
    max_pods: int = 10

    def __post_init__(self):
        if self.max_pods < 0:
            raise ValueError("maxPods must not be negative")


class Zoned(Mine):
    Args = ZoneArgs


def new_zoned(args, handle) -> Zoned:
    return Zoned(args, handle)


@pytest.mark.parametrize("factory", [Zoned, new_zoned], ids=["class", "function with a return annotation"])
def test_arguments_become_the_struct_that_the_plugin_names(factory):
    """Camel case in the file is snake case in the struct; what a file of elsewhere says of its kind is left out."""
    registry = Registry({}, [entry_point("Mine", factory)])
    given = {"kind": "MineArgs", "maxPods": 3, "zones": [{"zone": "a"}]}
    assert registry.make("Mine", given, None).args == ZoneArgs(zones=(Weight(zone="a"),), max_pods=3)
    assert registry.make("Mine", None, None).args == ZoneArgs()


@pytest.mark.parametrize(
    ("args", "path", "text"),
    [
        pytest.param({"maxPods": "3"}, ".maxPods", "Expected `int`, got `str`", id="wrong type"),
        pytest.param({"max_pods": 3}, "", "Object contains unknown field `max_pods`", id="unknown field"),
        pytest.param({"zones": [{}]}, ".zones[0]", "Object missing required field `zone`", id="missing field"),
        pytest.param({"zones": [{"zone": "a", "x": 1}]}, ".zones[0]", "Object contains unknown field `x`", id="inside"),
        pytest.param({"maxPods": -1}, "", "maxPods must not be negative", id="a rule of the plugin's own"),
        pytest.param([], "", "Expected `object`, got `array`", id="no object"),
    ],
)
def test_arguments_that_do_not_fit(args, path, text):
    """The error says where and what, before the plugin is made."""
    with pytest.raises(ArgsError) as caught:
        Registry({"Mine": Zoned}).make("Mine", args, None)
    assert (caught.value.path, str(caught.value)) == (path, text)


class LoosePart(msgspec.Struct):
    zone: str = ""


class UnreadableArgs(PluginArgs):
    zone: "NotImported"  # noqa: F821  the mistake


class LooseArgs(PluginArgs):
    zones: dict[str, list[LoosePart | None]] | None = None


@pytest.mark.parametrize(
    ("attributes", "text"),
    [
        pytest.param({"api_version": 2}, " was written for version 2 of scheduler.api, this is version 1: install a version of it, or of Podium, that goes with the other", id="another interface"),
        pytest.param({"Args": dict}, ": its Args must inherit from scheduler.api.PluginArgs", id="args of another kind"),
        pytest.param({"Args": UnreadableArgs}, ": the types in its Args cannot be read: NameError: name 'NotImported' is not defined", id="types that are not there at run time"),
        pytest.param({"Args": LooseArgs}, ": LoosePart in its Args must inherit from scheduler.api.PluginArgs", id="a part that lets unknown fields pass"),
    ],
)  # fmt: skip
def test_classes_that_do_not_go_with_this_version(attributes, text):
    """They are refused when they are loaded, with the distribution they are of."""
    registry = Registry({}, [entry_point("Mine", type("Mine", (Mine,), attributes))])
    with pytest.raises(RegistryError) as caught:
        registry.load("Mine")
    assert str(caught.value) == f'plugin "Mine" of acme-plugins 1.0 (acme.mine:Mine){text}'


def test_conflicts_name_all_sources():
    """Whether a profile names the plugin or not."""
    registry = Registry(
        {}, [entry_point("Mine", Mine, "acme"), entry_point("Mine", Mine, "emca"), entry_point("Other", Mine)]
    )
    assert registry.conflicts == [
        'a plugin named "Mine" is offered by acme 1.0 (acme.mine:Mine) and emca 1.0 (acme.mine:Mine): uninstall all but one'
    ]


def test_plugins_handed_in_take_the_place_of_installed_ones():
    """An author tests the working copy, though an older one is installed."""
    registry = Registry({}, [entry_point("Mine", ImportError("old"))], handed_in={"Mine": Mine})
    assert isinstance(registry.make("Mine", None, None), Mine)
    assert (registry.conflicts, registry.is_in_tree("Mine")) == ([], False)
