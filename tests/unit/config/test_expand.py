"""Expansion of multiPoint; the texts are those of kube-scheduler 1.36.3."""

import pytest

from scheduler.config.default_plugins import KNOWN_POINTS
from scheduler.config.errors import ConfigError
from scheduler.config.expand import expand
from scheduler.config.load import default_configuration, load
from scheduler.config.types import PluginRef, Plugins, PluginSet, Profile

_HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def _known(point, name):
    return point in KNOWN_POINTS[name] if name in KNOWN_POINTS else None


def _profile(plugins):
    return load(f"{_HEADER}profiles: [{{plugins: {{{plugins}}}}}]\n".encode()).profiles[0]


def _names(refs):
    return " ".join(ref.name for ref in refs)


def test_default_profile():
    """The points that the default plugins take part in, in the order of execution."""
    points = expand(default_configuration().profiles[0], _known).points

    assert _names(points["pre_enqueue"]) == "SchedulingGates DynamicResources DefaultPreemption"
    assert _names(points["queue_sort"]) == "PrioritySort"
    assert _names(points["filter"]) == (
        "NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts NodeResourcesFit VolumeRestrictions "
        "NodeVolumeLimits VolumeBinding VolumeZone PodTopologySpread InterPodAffinity DynamicResources "
        "NodeDeclaredFeatures"
    )
    assert _names(points["post_filter"]) == "DynamicResources DefaultPreemption"
    assert [(ref.name, ref.weight) for ref in points["score"]] == [
        ("TaintToleration", 3),
        ("NodeAffinity", 2),
        ("NodeResourcesFit", 1),
        ("VolumeBinding", 1),
        ("PodTopologySpread", 2),
        ("InterPodAffinity", 2),
        ("DynamicResources", 2),
        ("NodeResourcesBalancedAllocation", 1),
        ("ImageLocality", 1),
    ]
    assert points["permit"] == ()


@pytest.mark.parametrize(
    ("plugins", "point", "expected"),
    [
        pytest.param("score: {enabled: [{name: ImageLocality, weight: 5}]}", "score", "ImageLocality=5 TaintToleration=3 NodeAffinity=2 NodeResourcesFit=1 VolumeBinding=1 PodTopologySpread=2 InterPodAffinity=2 DynamicResources=2 NodeResourcesBalancedAllocation=1", id="an override goes first, its weight wins"),
        pytest.param("score: {enabled: [{name: NodeResourcesFit}, {name: ImageLocality}], disabled: [{name: '*'}]}", "score", "NodeResourcesFit=1 ImageLocality=1", id="star at the point stops expansion, no weight counts as 1"),
        pytest.param("filter: {disabled: [{name: NodePorts}, {name: NodeName}]}, multiPoint: {disabled: [{name: VolumeZone}]}", "filter", "NodeUnschedulable=0 TaintToleration=0 NodeAffinity=0 NodeResourcesFit=0 VolumeRestrictions=0 NodeVolumeLimits=0 VolumeBinding=0 PodTopologySpread=0 InterPodAffinity=0 DynamicResources=0 NodeDeclaredFeatures=0", id="disabled at the point"),
        pytest.param("multiPoint: {disabled: [{name: '*'}], enabled: [{name: PrioritySort}, {name: DefaultBinder}, {name: NodeName}]}, filter: {enabled: [{name: NodePorts}]}", "filter", "NodeName=0 NodePorts=0", id="specific ones beside multiPoint come last"),
        pytest.param("multiPoint: {disabled: [{name: '*'}], enabled: [{name: PrioritySort}, {name: DefaultBinder}, {name: NodeName}, {name: NodePorts}]}, filter: {enabled: [{name: NodeUnschedulable}, {name: NodePorts}]}", "filter", "NodePorts=0 NodeName=0 NodeUnschedulable=0", id="overrides, multiPoint, the rest"),
        pytest.param("multiPoint: {enabled: [{name: ImageLocality, weight: 9}]}, score: {enabled: [{name: TaintToleration, weight: 0}]}", "score", "TaintToleration=1 NodeAffinity=2 NodeResourcesFit=1 VolumeBinding=1 PodTopologySpread=2 InterPodAffinity=2 DynamicResources=2 NodeResourcesBalancedAllocation=1 ImageLocality=9", id="a specific zero weight hides multiPoint's weight"),
    ],
)  # fmt: skip
def test_precedence(plugins, point, expected):
    """Order and weights at one point."""
    refs = expand(_profile(plugins), _known).points[point]

    assert " ".join(f"{ref.name}={ref.weight}" for ref in refs) == expected


@pytest.mark.parametrize(
    ("plugins", "expected"),
    [
        pytest.param("multiPoint: {disabled: [{name: '*'}]}", 'only one queue sort plugin required for profile with scheduler name "default-scheduler", but got 0', id="no queue sort"),
        pytest.param("bind: {disabled: [{name: '*'}]}", 'at least one bind plugin is needed for profile with scheduler name "default-scheduler"', id="no bind"),
        pytest.param("multiPoint: {enabled: [{name: Foo}]}", 'PreFilterPlugin "Foo" does not exist', id="unknown in multiPoint"),
        pytest.param("filter: {enabled: [{name: Foo}]}", 'FilterPlugin "Foo" does not exist', id="unknown at a point"),
        pytest.param("score: {enabled: [{weight: 2}]}", 'ScorePlugin "" does not exist', id="without a name"),
        pytest.param("filter: {enabled: [{name: ImageLocality}]}", 'plugin "ImageLocality" does not extend FilterPlugin plugin', id="at the wrong point"),
        pytest.param("placementGenerate: {enabled: [{name: NodeName}]}", 'plugin "NodeName" does not extend PlacementGeneratePlugin plugin', id="at a point that Podium does not have"),
        pytest.param("filter: {enabled: [{name: NodeName}, {name: NodeName}]}", 'plugin "NodeName" already registered as "FilterPlugin"', id="twice at a point"),
        pytest.param("multiPoint: {enabled: [{name: ImageLocality}, {name: ImageLocality}]}", 'plugin "ImageLocality" already registered as "ScorePlugin"', id="twice in multiPoint"),
    ],
)  # fmt: skip
def test_refusals(plugins, expected):
    """The first problem, in upstream's words."""
    with pytest.raises(ConfigError) as caught:
        expand(_profile(plugins), _known)

    prefix = "initializing profiles: creating profile for scheduler name default-scheduler: "
    assert caught.value.problems == (prefix + expected,)


def test_weights_must_not_overflow():
    """The sum of all weighted scores has to fit int64."""
    refs = (PluginRef("S", 2**62), PluginRef("Q"), PluginRef("B"))
    profile = Profile("x", None, Plugins(multi_point=PluginSet(refs)))
    points = {"S": "score", "Q": "queue_sort", "B": "bind"}

    with pytest.raises(ConfigError, match="score plugins: total score of Score plugins could overflow"):
        expand(profile, lambda point, name: points[name] == point)
