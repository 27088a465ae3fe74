"""Loading: defaults, what counts as not given, args, extenders, notes."""

import pytest

from scheduler.config import args as a
from scheduler.config.errors import ConfigError
from scheduler.config.gates import parse_feature_gates
from scheduler.config.load import default_configuration, load, load_with_notes
from scheduler.config.types import ClientConnection, LeaderElection, SchedulerConfiguration
from scheduler.model.pod import NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm

_HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
_DEFAULT_ORDER = (
    "SchedulingGates PrioritySort NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts NodeResourcesFit "
    "VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone PodTopologySpread InterPodAffinity DynamicResources "
    "DefaultPreemption NodeResourcesBalancedAllocation ImageLocality DefaultBinder NodeDeclaredFeatures"
)


def _load(text):
    return load((_HEADER + text).encode())


def _args(plugin, text, gates=""):
    data = f"{_HEADER}profiles:\n- pluginConfig:\n  - name: {plugin}\n    args: {text}\n"
    return load(data.encode(), parse_feature_gates([gates])).profiles[0].plugin_config[plugin]


def test_empty_file_is_the_default_configuration():
    """A file that says nothing and no file mean the same."""
    assert _load("") == default_configuration()


def test_defaults():
    """Upstream's numbers; client limits and profiling stay open."""
    configuration = default_configuration()

    assert configuration == SchedulerConfiguration(
        parallelism=16,
        leader_election=LeaderElection(True, 15.0, 10.0, 2.0, "leases", "kube-scheduler", "kube-system"),
        client_connection=ClientConnection("", "", "application/vnd.kubernetes.protobuf", None, None),
        percentage_of_nodes_to_score=0,
        pod_initial_backoff_s=1,
        pod_max_backoff_s=10,
        profiles=configuration.profiles,
        extenders=(),
        enable_profiling=None,
        enable_contention_profiling=None,
        delay_cache_until_active=False,
    )


def test_default_profile():
    """One profile, all default plugins in multiPoint in upstream's order, args for those that have some."""
    (profile,) = default_configuration().profiles

    assert profile.scheduler_name == "default-scheduler"
    assert [ref.name for ref in profile.plugins.multi_point.enabled] == _DEFAULT_ORDER.split()
    assert {ref.name: ref.weight for ref in profile.plugins.multi_point.enabled if ref.weight} == {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "NodeResourcesFit": 1,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "DynamicResources": 2,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
    }
    assert profile.plugin_config == {
        "DefaultPreemption": a.DefaultPreemptionArgs(10, 100),
        "DynamicResources": a.DynamicResourcesArgs(10.0, 600.0),
        "InterPodAffinity": a.InterPodAffinityArgs(1, False),
        "NodeAffinity": a.NodeAffinityArgs(None),
        "NodeResourcesBalancedAllocation": a.NodeResourcesBalancedAllocationArgs(
            (a.ResourceSpec("cpu", 1), a.ResourceSpec("memory", 1))
        ),
        "NodeResourcesFit": a.NodeResourcesFitArgs(
            (), (), a.ScoringStrategy("LeastAllocated", (a.ResourceSpec("cpu", 1), a.ResourceSpec("memory", 1)))
        ),
        "PodTopologySpread": a.PodTopologySpreadArgs((), "System"),
        "VolumeBinding": a.VolumeBindingArgs(600, None),
    }


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        pytest.param("clientConnection: {qps: 20, burst: 30}\n", "client_connection", ClientConnection(qps=20.0, burst=30), id="limits that were given"),
        pytest.param("clientConnection: {qps: 0, burst: 0, contentType: ''}\n", "client_connection", ClientConnection(), id="zero counts as not given"),
        pytest.param("leaderElection: {leaderElect: false, leaseDuration: 0s, resourceName: ''}\n", "leader_election", LeaderElection(leader_elect=False), id="but false does not"),
        pytest.param("enableProfiling: true\n", "enable_profiling", True, id="profiling asked for"),
        pytest.param("enableProfiling: false\n", "enable_profiling", False, id="profiling refused"),
        pytest.param("parallelism: null\n", "parallelism", 16, id="null counts as not given"),
        pytest.param("percentageOfNodesToScore: 30.0\n", "percentage_of_nodes_to_score", 30, id="a whole float is an integer"),
        pytest.param("delayCacheUntilActive: yes\n", "delay_cache_until_active", True, id="yes is a boolean"),
    ],
)  # fmt: skip
def test_fields(text, field, value):
    """What stands in the file, with the type that the rest of Podium expects."""
    found = getattr(_load(text), field)

    assert (found, type(found)) == (value, type(value))


def test_only_a_single_profile_gets_the_default_name():
    """Two profiles must be named; one need not be, but an empty name is a name given."""
    assert _load("profiles: [{percentageOfNodesToScore: 5}]\n").profiles[0].scheduler_name == "default-scheduler"
    with pytest.raises(ConfigError, match=r"profiles\[0\]\.schedulerName: Required value"):
        _load("profiles: [{schedulerName: ''}]\n")


@pytest.mark.parametrize(
    ("plugin", "text", "expected"),
    [
        pytest.param("DefaultPreemption", "{minCandidateNodesPercentage: 0}", a.DefaultPreemptionArgs(0, 100), id="a zero that was given stays"),
        pytest.param("InterPodAffinity", "null", a.InterPodAffinityArgs(1, False), id="null is all defaults"),
        pytest.param("InterPodAffinity", "{kind: InterPodAffinityArgs, apiVersion: kubescheduler.config.k8s.io/v1, hardPodAffinityWeight: 7}", a.InterPodAffinityArgs(7, False), id="kind and version may be said"),
        pytest.param("NodeResourcesFit", "{ignoredResources: [a.com/b]}", a.NodeResourcesFitArgs(ignored_resources=("a.com/b",)), id="fit keeps its strategy"),
        pytest.param("NodeResourcesFit", "{scoringStrategy: {type: MostAllocated, resources: [{name: x}]}}", a.NodeResourcesFitArgs((), (), a.ScoringStrategy("MostAllocated", (a.ResourceSpec("x", 1),))), id="a missing weight is 1"),
        pytest.param("NodeResourcesFit", "{scoringStrategy: {type: MostAllocated}}", a.NodeResourcesFitArgs((), (), a.ScoringStrategy("MostAllocated", (a.ResourceSpec("cpu", 1), a.ResourceSpec("memory", 1)))), id="no resources means the default ones"),
        pytest.param("NodeResourcesBalancedAllocation", "{resources: []}", a.NodeResourcesBalancedAllocationArgs(), id="an empty list means the default one"),
        pytest.param("PodTopologySpread", "{defaultingType: ''}", a.PodTopologySpreadArgs((), "System"), id="an empty type means System"),
        pytest.param("DynamicResources", "{filterTimeout: 0s}", a.DynamicResourcesArgs(0.0, 600.0), id="zero switches the limit off"),
        pytest.param("NodeAffinity", "{addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}", a.NodeAffinityArgs(NodeAffinity(NodeSelector((NodeSelectorTerm((NodeSelectorRequirement("a", "Exists"),)),)))), id="affinity is the model's"),
        pytest.param("Coscheduling", "{a: [1, {b: yes}]}", {"a": [1, {"b": True}]}, id="foreign args stay plain"),
        pytest.param("Coscheduling", "null", {}, id="foreign args may be missing"),
    ],
)  # fmt: skip
def test_args(plugin, text, expected):
    """Decoded and completed."""
    assert _args(plugin, text) == expected


def test_gates_change_defaults():
    """Default plugins and default args follow the feature gates."""
    gates = parse_feature_gates(
        ["NodeDeclaredFeatures=false,StorageCapacityScoring=true,DRASchedulerFilterTimeout=false"]
    )

    (profile,) = default_configuration(gates).profiles

    assert profile.plugins.multi_point.enabled[-1].name == "DefaultBinder"
    assert profile.plugin_config["VolumeBinding"].shape == (
        a.UtilizationShapePoint(0, 10),
        a.UtilizationShapePoint(100, 0),
    )
    assert profile.plugin_config["DynamicResources"] == a.DynamicResourcesArgs(None, 600.0)


def test_resources_of_extenders_are_ignored_by_every_profile():
    """They replace what the profiles themselves ignore."""
    text = (
        "extenders: [{urlPrefix: 'http://x', managedResources: [{name: a.com/x, ignoredByScheduler: true}, {name: a.com/y}]},"
        " {urlPrefix: 'http://y', managedResources: [{name: a.com/z, ignoredByScheduler: true}]}]\n"
        "profiles: [{schedulerName: a, pluginConfig: [{name: NodeResourcesFit, args: {ignoredResources: [b.com/b]}}]}, {schedulerName: b}]\n"
    )

    configuration = _load(text)

    ignored = [profile.plugin_config["NodeResourcesFit"].ignored_resources for profile in configuration.profiles]
    assert ignored == [("a.com/x", "a.com/z")] * 2


def test_extender_fields():
    """Names that do not follow the rule, durations, secrets."""
    text = (
        "extenders: [{urlPrefix: 'https://x', filterVerb: f, enableHTTPS: true, httpTimeout: 1500ms, nodeCacheCapable: true,"
        " ignorable: true, tlsConfig: {caFile: ca.crt, keyData: aGVsbG8=}}, {urlPrefix: 'http://z', httpTimeout: 0s}]\n"
    )

    first, second = _load(text).extenders

    assert (first.url_prefix, first.filter_verb, first.enable_https) == ("https://x", "f", True)
    assert (first.http_timeout_s, first.node_cache_capable, first.ignorable) == (1.5, True, True)
    assert first.tls_config.key_data == b"hello"
    assert "hello" not in repr(first)
    assert second.http_timeout_s == 5.0


def test_adjust_comes_before_validation():
    """What flags override is not complained about."""

    def adjust(configuration):
        return SchedulerConfiguration(
            leader_election=LeaderElection(resource_lock="leases"), extenders=configuration.extenders
        )

    loaded = load_with_notes(f"{_HEADER}leaderElection: {{resourceLock: endpoints}}\n".encode(), adjust=adjust)

    assert loaded.configuration.leader_election.resource_lock == "leases"


@pytest.mark.parametrize(
    ("text", "notes"),
    [
        pytest.param("", (), id="nothing to say"),
        pytest.param("clientConnection: {contentType: application/json}\n", (), id="JSON is what we speak"),
        pytest.param("clientConnection: {acceptContentTypes: application/vnd.kubernetes.protobuf}\n", ("clientConnection.acceptContentTypes is accepted and ignored: Podium speaks JSON",), id="protobuf"),
        pytest.param("parallelism: 4\n", ("parallelism is accepted and ignored: nodes are evaluated all at once, on one thread",), id="parallelism"),
        pytest.param("enableProfiling: true\nenableContentionProfiling: true\n", ("enableProfiling is accepted, but Go's pprof endpoints do not exist here", "enableContentionProfiling is accepted and ignored: there are no contended Go locks to profile"), id="profiling"),
        pytest.param("percentageOfNodesToScore: 0\n", ("percentageOfNodesToScore 0 is not adaptive here: all nodes are evaluated where the plugins allow it",), id="adaptive percentage"),
        pytest.param("profiles: [{pluginConfig: [{name: Foo, args: {a: 1}}, {name: NodeName, args: {a: 1}}]}]\n", ("profiles[0].pluginConfig: the args of Foo are not used: the plugin is not enabled", "profiles[0].pluginConfig: the args of NodeName are ignored: the plugin takes none"), id="args that nobody reads"),
        pytest.param("---\nfoo: 1\n", ("only the first YAML document of the file was read",), id="a second document"),
    ],
)  # fmt: skip
def test_notes(text, notes):
    """Each thing without an effect is said once."""
    assert load_with_notes((_HEADER + text).encode()).notes == notes
