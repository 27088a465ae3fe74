"""From a configuration to frameworks: order, weights, refusals."""

from importlib.metadata import EntryPoint
from typing import NamedTuple

import pytest

from scheduler.api import BindPlugin, FilterPlugin, PluginArgs, PreFilterPlugin, QueueSortPlugin, ScorePlugin
from scheduler.config.errors import ConfigError
from scheduler.config.types import PluginRef, Plugins, PluginSet, Profile, SchedulerConfiguration
from scheduler.framework.metrics import NullFrameworkMetrics
from scheduler.framework.profile import Workshop, build_profiles
from scheduler.framework.registry import Registry
from scheduler.framework.waiting import WaitingPods


class FakeHandle(NamedTuple):
    """Remembers whose it is, and what befalls it."""

    profile: str
    plugin: str
    told: list
    clock = None

    def start(self):
        self.told.append(f"start {self.plugin}")

    def close(self):
        self.told.append(f"close {self.plugin}")


class Base:
    closed = ()

    def __init__(self, args, handle):
        self.args = args
        self.handle = handle

    def close(self):
        self.closed.append(self.name)


class Sort(Base, QueueSortPlugin):
    name = "Sort"

    def less(self, a, b):
        return False


class Sort2(Sort):
    name = "Sort2"


class Bind(Base, BindPlugin):
    name = "Bind"

    async def bind(self, state, pod, node_name):
        return None


class Filter(Base, PreFilterPlugin, FilterPlugin):
    name = "Filter"

    def pre_filter(self, state, pod, nodes):
        return None, None

    def filter(self, state, pod, node):
        return None


class Score(Base, ScorePlugin):
    name = "Score"

    def score(self, state, pod, node):
        return 0


def failing(args, handle):
    raise ValueError("no zones")


REGISTRY = Registry({p.name: p for p in (Sort, Sort2, Bind, Filter, Score)} | {"Failing": failing})
NEEDED = ("Sort", "Bind")


def profile(name="default-scheduler", multi=NEEDED, config=None, **points):
    sets = {point: PluginSet(tuple(PluginRef(*ref) for ref in refs)) for point, refs in points.items()}
    plugins = Plugins(multi_point=PluginSet(tuple(PluginRef(n) for n in multi)), **sets)
    return Profile(name, plugins=plugins, plugin_config=config or {})


@pytest.fixture
def build(clock):
    closed, told = [], []

    def make(*profiles):
        Base.closed = closed
        return build_profiles(
            SchedulerConfiguration(profiles=profiles),
            Workshop(registry=REGISTRY, waiting=WaitingPods(clock), perf_counter=lambda: 0.0),
            lambda profile, plugin: FakeHandle(profile, plugin, told),
        )

    make.closed = closed
    make.told = told
    return make


def test_plugins_run_where_their_classes_say(build):
    """multiPoint puts a plugin at every point it implements; args and handle reach it."""
    frameworks = build(profile(multi=(*NEEDED, "Filter", "Score"), config={"Filter": {"a": 1}}))
    framework = frameworks["default-scheduler"]
    assert {point: names for point, names in framework.points.items() if names} == {
        "pre_filter": ("Filter",),
        "filter": ("Filter",),
        "score": ("Score",),
        "bind": ("Bind",),
        "queue_sort": ("Sort",),
    }
    plugin = framework.plugins["Filter"]
    assert (plugin.args, plugin.handle) == ({"a": 1}, ("default-scheduler", "Filter", build.told))


def test_background_begins_with_a_complete_profile_and_ends_before_the_plugins(build):
    """Nothing runs for plugins that will be closed again at once, and nothing reaches a closed plugin."""
    with pytest.raises(ConfigError):
        build(profile("one"), profile("two", multi=("Sort",)))
    assert [what for what in build.told if what.startswith("start")] == []
    build.told.clear()
    framework = build(profile())["default-scheduler"]
    assert build.told == ["start Sort", "start Bind"]
    framework.close()
    assert build.told[2:] == ["close Sort", "close Bind"]


def test_profiles_have_instances_of_their_own(build):
    """Two profiles share no plugin instance."""
    frameworks = build(profile("one"), profile("two"))
    assert frameworks["one"].plugins["Bind"] is not frameworks["two"].plugins["Bind"]


@pytest.mark.parametrize(
    ("profiles", "problems"),
    [
        pytest.param(
            [profile(filter=[("Nope",)])],
            [
                (
                    "initializing profiles: creating profile for scheduler name default-scheduler: "
                    'FilterPlugin "Nope" does not exist'
                )
            ],
            id="unknown plugin",
        ),
        pytest.param(
            [profile(score=[("Filter",)])],
            [
                (
                    "initializing profiles: creating profile for scheduler name default-scheduler: "
                    'plugin "Filter" does not extend ScorePlugin plugin'
                )
            ],
            id="wrong type",
        ),
        pytest.param(
            [profile(filter=[("Filter",), ("Filter",)])],
            [
                (
                    "initializing profiles: creating profile for scheduler name default-scheduler: "
                    'plugin "Filter" already registered as "FilterPlugin"'
                )
            ],
            id="duplicate",
        ),
        pytest.param(
            [profile(multi=("Sort", "Bind", "Failing"))],
            [
                (
                    "initializing profiles: creating profile for scheduler name default-scheduler: "
                    'initializing plugin "Failing": ValueError: no zones'
                )
            ],
            id="factory fails",
        ),
        pytest.param(
            [profile("one"), profile("two", multi=("Sort2", "Bind"))],
            ['initializing profiles: different queue sort plugins for profile "two": "Sort2", first: "Sort"'],
            id="profiles order differently",
        ),
        pytest.param(
            [profile("one"), profile("two", config={"Sort": {"by": "age"}})],
            ['initializing profiles: different queue sort plugin args for profile "two"'],
            id="profiles give the order plugin different args",
        ),
        pytest.param(
            [profile("one", multi=("Sort",)), profile("two", multi=("Bind",))],
            [
                (
                    "initializing profiles: creating profile for scheduler name one: "
                    'at least one bind plugin is needed for profile with scheduler name "one"'
                ),
                (
                    "initializing profiles: creating profile for scheduler name two: "
                    'only one queue sort plugin required for profile with scheduler name "two", but got 0'
                ),
            ],
            id="all profiles are checked",
        ),
        pytest.param([], ["at least one profile is required"], id="no profile"),
    ],
)
def test_refusals(build, profiles, problems):
    """The texts are upstream's."""
    with pytest.raises(ConfigError) as caught:
        build(*profiles)
    assert list(caught.value.problems) == problems


def test_refused_profiles_leave_no_plugin_open(build):
    """What was made before the refusal is closed."""
    with pytest.raises(ConfigError):
        build(profile("one"), profile("two", multi=("Sort", "Bind", "Failing")))
    assert sorted(build.closed) == ["Bind", "Bind", "Sort", "Sort"]


class LimitArgs(PluginArgs):
    limit: int = 0


class Limited(Filter):
    name = "Limited"
    Args = LimitArgs


def build_with(registry, clock, *profiles, metrics=None):
    return build_profiles(
        SchedulerConfiguration(profiles=profiles),
        Workshop(registry=registry, waiting=WaitingPods(clock), perf_counter=lambda: 0.0, metrics=metrics),
        lambda profile, plugin: FakeHandle(profile, plugin, []),
    )


def test_arguments_that_do_not_fit_are_named_with_their_path(clock):
    """The path is that of the file; the problems of all profiles are there at once."""
    Base.closed = []
    registry = Registry({p.name: p for p in (Sort, Bind, Limited)} | {"Failing": failing})
    bad = profile("one", multi=(*NEEDED, "Limited", "Failing"), config={"X": {}, "Limited": {"limit": "x"}})
    with pytest.raises(ConfigError) as caught:
        build_with(registry, clock, profile("zero"), bad)
    assert caught.value.problems == (
        "profiles[1].pluginConfig[1].args.limit: plugin Limited: Expected `int`, got `str`",
        'initializing profiles: creating profile for scheduler name one: initializing plugin "Failing": ValueError: no zones',
    )


def test_names_offered_twice_are_refused_at_start(clock):
    """Even if no profile names the plugin: a later one would, and get either."""
    doubled = EntryPoint("Filter", "acme:Filter", "podium.plugins")
    registry = Registry({p.name: p for p in (Sort, Bind, Filter)}, [doubled])
    with pytest.raises(ConfigError, match=r"offered by podium .in-tree. and unknown .acme:Filter.: uninstall"):
        build_with(registry, clock, profile())


def test_plugins_of_third_parties_are_announced(clock):
    """Distribution, version and interface of each that is in use; in-tree plugins go with Podium's version."""
    told = []

    class Metrics(NullFrameworkMetrics):
        def plugin_info(self, *what):
            told.append(what)

    registry = Registry({p.name: p for p in (Sort, Bind)}, handed_in={"Filter": Filter, "Score": Score})
    build_with(registry, clock, profile(multi=(*NEEDED, "Filter")), metrics=Metrics())
    assert told == [("Filter", "this process", "", 1)]
