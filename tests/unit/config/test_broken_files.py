"""What is wrong with a file is refused, all at once, in upstream's words.

The expected lines were compared with kube-scheduler 1.36.3; the places where Podium's differ on purpose (paths of wrongly
typed fields, NodeResourcesFit's args checked with the rest) are marked in the code.
"""

import pytest

from scheduler.config.errors import ConfigError
from scheduler.config.gates import parse_feature_gates
from scheduler.config.load import load

_HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
_NAME_PART = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_ARGS = "profiles[0].pluginConfig[0].args"


def _args(plugin, args):
    return f"profiles:\n- pluginConfig:\n  - name: {plugin}\n    args: {args}\n"


def _problems(text, gates=""):
    with pytest.raises(ConfigError) as caught:
        load(text.encode(), parse_feature_gates([gates]))
    return list(caught.value.problems)


_DECODING = [
    pytest.param("foo: 1\nbar: 2\n", ['strict decoding error: unknown field "bar"', 'strict decoding error: unknown field "foo"'], id="unknown fields, sorted"),
    pytest.param("Parallelism: 4\n", ['strict decoding error: unknown field "Parallelism"'], id="names are case-sensitive"),
    pytest.param("true: 4\n", ['strict decoding error: unknown field "true"'], id="a boolean key is its text"),
    pytest.param("profiles:\n- foo: 1\n", ['strict decoding error: unknown field "profiles[0].foo"'], id="unknown field in a list entry"),
    pytest.param("parallelism: 4\nparallelism: 5\n", ['strict decoding error: yaml: line 4: key "parallelism" already set in map'], id="duplicate key"),
    pytest.param("parallelism: '4'\n", ["parallelism: cannot unmarshal string into a field of type int32"], id="a quoted number is a text"),
    pytest.param("parallelism: 4.5\n", ["parallelism: cannot unmarshal number 4.5 into a field of type int32"], id="a fraction is no integer"),
    pytest.param("parallelism: 99999999999\n", ["parallelism: cannot unmarshal number 99999999999 into a field of type int32"], id="too large for int32"),
    pytest.param("parallelism: 1:30\n", ["parallelism: cannot unmarshal string into a field of type int32"], id="no base 60"),
    pytest.param("parallelism: x\npodMaxBackoffSeconds: [1]\n", ["parallelism: cannot unmarshal string into a field of type int32", "podMaxBackoffSeconds: cannot unmarshal array into a field of type int64"], id="all wrong types at once"),
    pytest.param("profiles: {}\n", ["profiles: cannot unmarshal object into a field of type list"], id="object for list"),
    pytest.param("profiles: [{schedulerName: a}, 1]\n", ["profiles[1]: cannot unmarshal number 1 into a field of type object"], id="number for object"),
    pytest.param("profiles: [{schedulerName: on}]\n", ["profiles[0].schedulerName: cannot unmarshal bool into a field of type string"], id="an unquoted on is a boolean"),
    pytest.param("enableProfiling: 1\n", ["enableProfiling: cannot unmarshal number 1 into a field of type bool"], id="number for boolean"),
    pytest.param("leaderElection: []\n", ["leaderElection: cannot unmarshal array into a field of type object"], id="list for object"),
    pytest.param("leaderElection: {leaseDuration: 15}\n", ["leaderElection.leaseDuration: cannot unmarshal number into a field of type string"], id="a duration is a text"),
    pytest.param("leaderElection: {leaseDuration: 15x}\n", ['leaderElection.leaseDuration: time: unknown unit "x" in duration "15x"'], id="unknown unit"),
    pytest.param("leaderElection: {leaseDuration: '20'}\n", ['leaderElection.leaseDuration: time: missing unit in duration "20"'], id="missing unit"),
    pytest.param("leaderElection: {leaseDuration: null}\n", ['leaderElection.leaseDuration: time: invalid duration ""'], id="null is no duration"),
    pytest.param("clientConnection: {qps: x, burst: 1.5}\n", ["clientConnection.burst: cannot unmarshal number 1.5 into a field of type int32", "clientConnection.qps: cannot unmarshal string into a field of type float32"], id="client limits"),
    pytest.param("extenders: [{tlsConfig: {keyData: '!!'}}]\n", ["extenders[0].tlsConfig.keyData: illegal base64 data"], id="bad base64"),
    pytest.param(
        _args("NodeResourcesFit", "{foo: 1}"),
        ['strict decoding error: decoding .profiles[0].pluginConfig[0]: strict decoding error: decoding args for plugin NodeResourcesFit: strict decoding error: unknown field "foo"'],
        id="unknown field in args",
    ),
    pytest.param(
        _args("PodTopologySpread", "{defaultingType: List, defaultConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway, foo: 1}]}"),
        ['strict decoding error: decoding .profiles[0].pluginConfig[0]: strict decoding error: decoding args for plugin PodTopologySpread: strict decoding error: unknown field "defaultConstraints[0].foo"'],
        id="unknown field deep in args",
    ),
    pytest.param(
        _args("InterPodAffinity", "{hardPodAffinityWeight: x}"),
        ["decoding .profiles[0].pluginConfig[0]: decoding args for plugin InterPodAffinity: hardPodAffinityWeight: cannot unmarshal string into a field of type int32"],
        id="wrong type in args",
    ),
    pytest.param(
        _args("NodeResourcesFit", "[1]"),
        ["decoding .profiles[0].pluginConfig[0]: decoding args for plugin NodeResourcesFit: the value: cannot unmarshal array into a field of type object"],
        id="args that are a list",
    ),
    pytest.param(
        _args("NodeResourcesFit", "{kind: InterPodAffinityArgs}"),
        ["decoding .profiles[0].pluginConfig[0]: args for plugin NodeResourcesFit were not of type NodeResourcesFitArgs.kubescheduler.config.k8s.io, got InterPodAffinityArgs.kubescheduler.config.k8s.io"],
        id="args of another plugin",
    ),
    pytest.param(
        _args("NodeResourcesFit", "{apiVersion: foo/v1}"),
        ['decoding .profiles[0].pluginConfig[0]: decoding args for plugin NodeResourcesFit: no kind "NodeResourcesFitArgs" is registered for version "foo/v1"'],
        id="args of an unknown version",
    ),
]  # fmt: skip

_VALIDATION = [
    pytest.param("clientConnection: {burst: -1, qps: -1}\n", ["clientConnection.burst: Invalid value: -1: must be non-negative"], id="negative burst; negative qps means no limit"),
    pytest.param(
        "leaderElection: {leaseDuration: -1s, renewDeadline: -2s, retryPeriod: -3s, resourceLock: endpoints}\n",
        [
            'leaderElection.leaseDuration: Invalid value: "-1s": must be greater than zero',
            'leaderElection.renewDeadline: Invalid value: "-2s": must be greater than zero',
            'leaderElection.retryPeriod: Invalid value: "-3s": must be greater than zero',
            'leaderElection.resourceLock: Invalid value: "endpoints": resourceLock value must be "leases"',
        ],
        id="leader election",
    ),
    pytest.param("leaderElection: {leaseDuration: 10s}\n", ['leaderElection.leaseDuration: Invalid value: "10s": must be greater than `RenewDeadline`'], id="lease as short as its deadline"),
    pytest.param(
        "parallelism: 0\npercentageOfNodesToScore: 101\npodInitialBackoffSeconds: 0\npodMaxBackoffSeconds: -1\n",
        [
            "parallelism: Invalid value: 0: should be an integer value greater than zero",
            "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
            "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0",
            "podMaxBackoffSeconds: Invalid value: -1: must be greater than or equal to PodInitialBackoffSeconds",
        ],
        id="numbers out of range",
    ),
    pytest.param("podInitialBackoffSeconds: 11\n", ["podMaxBackoffSeconds: Invalid value: 10: must be greater than or equal to PodInitialBackoffSeconds"], id="initial back-off above the default maximum"),
    pytest.param("profiles: [{}, {schedulerName: b}]\n", ["profiles[0].schedulerName: Required value"], id="several profiles must be named"),
    pytest.param(
        "profiles: [{schedulerName: a}, {schedulerName: a}, {schedulerName: a}]\n",
        [
            "profiles[1].schedulerName: Duplicate value: profiles[0].schedulerName",
            "profiles[2].schedulerName: Duplicate value: profiles[1].schedulerName",
        ],
        id="repeated scheduler names",
    ),
    pytest.param("profiles: [{percentageOfNodesToScore: -1}]\n", ["profiles[0].percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100]"], id="a profile's percentage"),
    pytest.param(
        "profiles: [{plugins: {filter: {enabled: [{name: EBSLimits}]}, multiPoint: {enabled: [{name: EBSLimits}]}}, pluginConfig: [{name: CinderLimits}]}]\n",
        [
            'profiles[0].plugins.filter.enabled[0]: Invalid value: "EBSLimits": was invalid in version "v1" (KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1")',
            'profiles[0].pluginConfig[0]: Invalid value: "CinderLimits": was invalid in version "v1" (KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1")',
        ],
        id="removed plugins",
    ),
    pytest.param(
        "profiles: [{schedulerName: a, plugins: {queueSort: {enabled: [{name: A}, {name: B}]}}}, {schedulerName: b, plugins: {queueSort: {enabled: [{name: A}], disabled: [{name: '*'}]}}}]\n",
        [
            "profiles[0].plugins.queueSort.Enabled: Invalid value: 2: only one queue sort plugin can be enabled",
            'profiles[1].plugins.queueSort: Invalid value: {"Enabled":[{"Name":"A","Weight":0}],"Disabled":[{"Name":"*","Weight":0}]}: must be the same for all profiles',
        ],
        id="queue sort differs between profiles",
    ),
    pytest.param(
        "profiles: [{schedulerName: a, plugins: {queueSort: {enabled: [{name: A}]}}, pluginConfig: [{name: A, args: {x: 1}}]}, {schedulerName: b, plugins: {queueSort: {enabled: [{name: A}]}}, pluginConfig: [{name: A, args: {x: 2}}]}]\n",
        ['profiles[1].pluginConfig.args: Invalid value: {"x":2}: queueSort must be the same for all profiles'],
        id="queue sort args differ between profiles",
    ),
    pytest.param(
        "profiles:\n- pluginConfig:\n  - {name: InterPodAffinity, args: {hardPodAffinityWeight: 101}}\n  - {name: InterPodAffinity, args: {hardPodAffinityWeight: -1}}\n",
        [
            "profiles[0].pluginConfig[0].args.hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]",
            'profiles[0].pluginConfig[1]: Duplicate value: "InterPodAffinity"',
            "profiles[0].pluginConfig[1].args.hardPodAffinityWeight: Invalid value: -1: not in valid range [0, 100]",
        ],
        id="repeated plugin config, each checked",
    ),
    pytest.param(
        "extenders: [{urlPrefix: 'http://x', prioritizeVerb: a, bindVerb: b, managedResources: [{name: cpu}, {name: foo.com/bar}, {name: foo.com/bar}, {name: kubernetes.io/x}, {name: ''}]}, {urlPrefix: x, bindVerb: c}]\n",
        [
            "extenders[0].weight: Invalid value: 0: must have a positive weight applied to it",
            'extenders[0].managedResources[0].name: Invalid value: "cpu": is an invalid extended resource name',
            'extenders[0].managedResources[2].name: Invalid value: "foo.com/bar": duplicate extender managed resource name',
            'extenders[0].managedResources[3].name: Invalid value: "kubernetes.io/x": is an invalid extended resource name',
            'extenders[0].managedResources[4].name: Invalid value: "": name part must be non-empty',
            f'extenders[0].managedResources[4].name: Invalid value: "": {_NAME_PART}',
            'extenders: Invalid value: "found 2 extenders implementing bind": only one extender can implement bind',
        ],
        id="extenders",
    ),
    pytest.param(
        "extenders: [{urlPrefix: x, managedResources: [{name: foo.com/bar, ignoredByScheduler: true}]}]\nprofiles: [{plugins: {multiPoint: {disabled: [{name: NodeResourcesFit}]}}}]\n",
        ["profiles[0].pluginConfig: couldn't build extenders: can't find NodeResourcesFitArgs in plugin config"],
        id="ignored resources without NodeResourcesFit",
    ),
    pytest.param(
        "extenders: [{urlPrefix: x, enableHTTPS: true, tlsConfig: {insecure: true, caFile: ca.crt}}]\n",
        ["extenders[0].tlsConfig.insecure: Invalid value: true: specifying a root certificates file with the insecure flag is not allowed"],
        id="authorities for an unverified extender",
    ),
]  # fmt: skip

_PLUGIN_ARGS = [
    pytest.param("DefaultPreemption", "{minCandidateNodesPercentage: 101, minCandidateNodesAbsolute: -1}", [".minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100]", ".minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)"], id="preemption out of range"),
    pytest.param("DefaultPreemption", "{minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 0}", [".minCandidateNodesPercentage: Invalid value: 0: cannot be zero at the same time as minCandidateNodesAbsolute", ".minCandidateNodesAbsolute: Invalid value: 0: cannot be zero at the same time as minCandidateNodesPercentage"], id="preemption without candidates"),
    pytest.param("NodeResourcesBalancedAllocation", "{resources: [{name: cpu, weight: 2}, {name: cpu}]}", [".resources[0].weight: Invalid value: 2: must be 1", '.resources[1].name: Duplicate value: "cpu"'], id="balanced allocation"),
    pytest.param("NodeResourcesFit", "{ignoredResources: ['a b'], ignoredResourceGroups: ['a/b'], scoringStrategy: {type: Foo, resources: [{name: cpu, weight: 101}]}}", [f'.ignoredResources[0]: Invalid value: "a b": {_NAME_PART}', ".ignoredResourceGroups[0]: Invalid value: \"a/b\": resource group name can't contain '/'", '.scoringStrategy.type: Unsupported value: "Foo": supported values: "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"', ".scoringStrategy.resources[0].weight: Invalid value: 101: resource weight of cpu not in valid range (0, 100]"], id="fit"),
    pytest.param("NodeResourcesFit", "{scoringStrategy: {}}", ['.scoringStrategy.type: Unsupported value: "": supported values: "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"'], id="a strategy must name its type"),
    pytest.param("NodeResourcesFit", "{scoringStrategy: {type: RequestedToCapacityRatio}}", [".scoringStrategy.requestedToCapacityRatio: Required value: must be specified when type is RequestedToCapacityRatio"], id="ratio without a shape"),
    pytest.param("NodeResourcesFit", "{scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {}}}", [".scoringStrategy.requestedToCapacityRatio.shape: Required value: at least one point must be specified"], id="ratio with an empty shape"),
    pytest.param("NodeResourcesFit", "{scoringStrategy: {type: LeastAllocated, requestedToCapacityRatio: {shape: [{utilization: 0, score: 0}]}}}", [".scoringStrategy.requestedToCapacityRatio: Forbidden: must be nil when type is not RequestedToCapacityRatio"], id="a shape for another strategy"),
    pytest.param("NodeResourcesFit", "{scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: [{utilization: 5, score: 11}, {utilization: 5, score: -1}, {utilization: 101, score: 0}]}}}", [".scoringStrategy.requestedToCapacityRatio.shape[1].utilization: Invalid value: 5: values must be sorted in increasing order", ".scoringStrategy.requestedToCapacityRatio.shape[0].score: Invalid value: 11: not in valid range [0, 10]", ".scoringStrategy.requestedToCapacityRatio.shape[1].score: Invalid value: -1: not in valid range [0, 10]", ".scoringStrategy.requestedToCapacityRatio.shape[2].utilization: Invalid value: 101: not in valid range [0, 100]"], id="a bad shape"),
    pytest.param("PodTopologySpread", "{defaultConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway}]}", ['.defaultingType: Invalid value: "System": when .defaultConstraints are not empty'], id="constraints need the type List"),
    pytest.param("PodTopologySpread", "{defaultingType: Foo, defaultConstraints: [{maxSkew: 0, topologyKey: '', whenUnsatisfiable: Foo, labelSelector: {}}, {maxSkew: 1, topologyKey: 'a', whenUnsatisfiable: ''}, {maxSkew: 1, topologyKey: 'a', whenUnsatisfiable: ''}]}", ['.defaultingType: Unsupported value: "Foo": supported values: "System", "List"', ".defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)", ".defaultConstraints[0].topologyKey: Required value: can not be empty", '.defaultConstraints[0].whenUnsatisfiable: Unsupported value: "Foo": supported values: "DoNotSchedule", "ScheduleAnyway"', ".defaultConstraints[0].labelSelector: Forbidden: constraint must not define a selector, as they deduced for each pod", ".defaultConstraints[1].whenUnsatisfiable: Required value: can not be empty", ".defaultConstraints[2].whenUnsatisfiable: Required value: can not be empty", '.defaultConstraints[2]: Duplicate value: "{a, }"'], id="bad spread constraints"),
    pytest.param("VolumeBinding", "{bindTimeoutSeconds: -1, shape: [{utilization: 0, score: 0}]}", [".bindTimeoutSeconds: Invalid value: -1: invalid BindTimeoutSeconds, should not be a negative value", '.shape: Invalid value: [{"Utilization":0,"Score":0}]: unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring'], id="volume binding"),
    pytest.param("VolumeBinding", "{shape: []}", [".shape: Invalid value: []: unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"], id="even an empty shape"),
    pytest.param("DynamicResources", "{filterTimeout: -1s, bindingTimeout: 100ms}", ['.filterTimeout: Invalid value: "-1s": must be zero or positive', '.bindingTimeout: Invalid value: "100ms": must be at least 1 second'], id="dynamic resources"),
    pytest.param(
        "NodeAffinity",
        "{addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: 'a b', operator: Foo, values: [x]}, {key: a, operator: In}, {key: a, operator: Exists, values: [b]}, {key: a, operator: Gt, values: [b]}, {key: a, operator: Lt, values: ['1', '2']}], matchFields: [{key: metadata.name, operator: Exists}, {key: metadata.name, operator: In, values: []}]}]}}}",
        [
            f".addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].{line}"
            for line in (
                'matchExpressions[0].operator: Unsupported value: "Foo": supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"',
                "matchExpressions[1].values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
                'matchExpressions[2].values: Invalid value: ["b"]: values set must be empty for exists and does not exist',
                "matchExpressions[3].values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must be an integer",
                "matchExpressions[4].values: Invalid value: [\"1\",\"2\"]: for 'Gt', 'Lt' operators, exactly one value is required",
                'matchFields[0].operator: Unsupported value: "Exists": supported values: "In", "NotIn"',
                "matchFields[1].values: Invalid value: []: must have one element",
            )
        ],
        id="required node affinity",
    ),
    pytest.param("NodeAffinity", "{addedAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 0, preference: {matchExpressions: [{key: a, operator: Foo}]}}, {weight: 1, preference: {matchExpressions: [{key: a, operator: Foo}]}}]}}", ['.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[1].matchExpressions[0].operator: Unsupported value: "Foo": supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'], id="preferred node affinity; weight 0 is not looked at"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), [*_DECODING, *_VALIDATION])
def test_broken_file_is_refused_with_all_problems(text, expected):
    """Every problem has its line, in a fixed order."""
    assert _problems(_HEADER + text) == expected


@pytest.mark.parametrize(("plugin", "args", "expected"), _PLUGIN_ARGS)
def test_broken_args_are_refused_with_their_path(plugin, args, expected):
    """The path leads to the entry of the profile."""
    assert _problems(_HEADER + _args(plugin, args)) == [_ARGS + line for line in expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", "Object 'Kind' is missing: the file must say kind: KubeSchedulerConfiguration", id="empty"),
        pytest.param("kind: KubeSchedulerConfiguration\n", "Object 'apiVersion' is missing: the file must say apiVersion: kubescheduler.config.k8s.io/v1", id="no version"),
        pytest.param("apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n", 'no kind "KubeSchedulerConfiguration" is registered for version "kubescheduler.config.k8s.io/v1beta3"; expected kubescheduler.config.k8s.io/v1, Kind=KubeSchedulerConfiguration', id="old version"),
        pytest.param("apiVersion: kubescheduler.config.k8s.io/v1\nkind: NodeAffinityArgs\n", "couldn't decode as KubeSchedulerConfiguration, got kubescheduler.config.k8s.io/v1, Kind=NodeAffinityArgs: ", id="args as a file"),
        pytest.param("[]\n", "couldn't get version/kind: the file does not hold an object", id="a list"),
        pytest.param("apiVersion: kubescheduler.config.k8s.io/v1\nkind: [x]\n", "couldn't get version/kind: kind is not a text", id="a list of kinds"),
        pytest.param("a: b: c\n", "yaml: line 1: mapping values are not allowed in this context", id="no YAML"),
        pytest.param("\x00", "yaml: unacceptable character #x0000: control characters are not allowed", id="control characters"),
    ],
)  # fmt: skip
def test_file_of_another_kind_ends_at_once(text, expected):
    """Where nothing can be read, there is one reason."""
    assert _problems(text) == [expected]


def test_decoding_and_validation_problems_come_together():
    """One run tells about both, and does not complain twice about a field that could not be read."""
    text = "parallelism: 0\nfoo: 1\nprofiles: [{schedulerName: 1}, {schedulerName: b}]\n"

    assert _problems(_HEADER + text) == [
        'strict decoding error: unknown field "foo"',
        "profiles[0].schedulerName: cannot unmarshal number into a field of type string",
        "parallelism: Invalid value: 0: should be an integer value greater than zero",
    ]


@pytest.mark.parametrize(
    ("args", "gates", "expected"),
    [
        pytest.param(("VolumeBinding", "{shape: [{utilization: 5, score: 11}]}"), "StorageCapacityScoring=true", [".shape[0].score: Invalid value: 11: not in valid range [0, 10]"], id="shape is checked when its gate is on"),
        pytest.param(("DynamicResources", "{filterTimeout: 1s, bindingTimeout: 2s}"), "DRASchedulerFilterTimeout=false,DRADeviceBindingConditions=false", [".filterTimeout: Forbidden: DRASchedulingFilterTimeout feature gate is disabled", ".bindingTimeout: Forbidden: DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled"], id="time limits are forbidden when their gates are off"),
    ],
)  # fmt: skip
def test_gates_decide_about_args(args, gates, expected):
    """Fields behind a gate follow the gate."""
    assert _problems(_HEADER + _args(*args), gates) == [_ARGS + line for line in expected]


def test_fit_args_of_a_disabled_plugin_are_not_checked():
    """kube-scheduler checks them only when it makes the plugin."""
    plugins = "\n  plugins: {multiPoint: {disabled: [{name: NodeResourcesFit}]}}\n"

    load((_HEADER + _args("NodeResourcesFit", "{scoringStrategy: {type: Foo}}").rstrip() + plugins).encode())
