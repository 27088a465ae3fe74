"""One profile by itself, as a SchedulerProfile object gives it: the file's rules and texts, other paths."""

import pytest

from scheduler.config.errors import ConfigError
from scheduler.config.gates import DEFAULT_GATES
from scheduler.config.load import load, load_profile

_FILE = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: one}, {schedulerName: two}]
extenders: [{urlPrefix: "http://x", filterVerb: f, managedResources: [{name: acme.io/gpu, ignoredByScheduler: true}]}]
"""
CONFIGURATION = load(_FILE.encode())


def profile(**spec):
    return load_profile(spec, CONFIGURATION, DEFAULT_GATES, "spec")


def test_it_is_completed_like_a_profile_of_the_file():
    """Default plugins, default args, and what extenders account for."""
    first = CONFIGURATION.profiles[0]
    made = profile(schedulerName="three", percentageOfNodesToScore=7)
    assert (made.scheduler_name, made.percentage_of_nodes_to_score) == ("three", 7)
    assert (made.plugins, made.plugin_config) == (first.plugins, first.plugin_config)
    assert made.plugin_config["NodeResourcesFit"].ignored_resources == ("acme.io/gpu",)


def test_who_has_the_name_is_not_asked_here():
    assert profile(schedulerName="one").scheduler_name == "one"


QUEUE_SORT = {"queueSort": {"disabled": [{"name": "*"}], "enabled": [{"name": "Mine"}]}}


@pytest.mark.parametrize(
    ("spec", "problems"),
    [
        pytest.param({}, ["spec.schedulerName: Required value"], id="nothing given"),
        pytest.param(
            {"schedulerName": "x", "foo": 1, "plugins": {"score": {"enabled": [{"name": "A", "weight": "9"}]}}},
            [
                'strict decoding error: unknown field "spec.foo"',
                "spec.plugins.score.enabled[0].weight: cannot unmarshal string into a field of type int32",
            ],
            id="what cannot be read",
        ),
        pytest.param(
            {
                "schedulerName": "x",
                "percentageOfNodesToScore": 101,
                "plugins": {"filter": {"enabled": [{"name": "EBSLimits"}]}},
                "pluginConfig": [
                    {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "Best"}}},
                    {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 101}},
                    {"name": "InterPodAffinity", "args": {"hardness": 1}},
                ],
            },
            [
                (
                    "strict decoding error: decoding .spec.pluginConfig[2]: strict decoding error: decoding args for plugin "
                    'InterPodAffinity: strict decoding error: unknown field "hardness"'
                ),
                "spec.percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
                (
                    'spec.plugins.filter.enabled[0]: Invalid value: "EBSLimits": was invalid in version "v1" '
                    '(KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1")'
                ),
                (
                    'spec.pluginConfig[0].args.scoringStrategy.type: Unsupported value: "Best": supported values: '
                    '"LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"'
                ),
                "spec.pluginConfig[1].args.hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]",
                'spec.pluginConfig[2]: Duplicate value: "InterPodAffinity"',
            ],
            id="everything at once",
        ),
        pytest.param(
            {"schedulerName": "x", "plugins": QUEUE_SORT},
            [
                (
                    'spec.plugins.queueSort: Invalid value: {"Enabled":[{"Name":"Mine","Weight":0}],'
                    '"Disabled":[{"Name":"*","Weight":0}]}: must be the same for all profiles'
                )
            ],
            id="another order of the queue",
        ),
    ],
)
def test_refusals(spec, problems):
    """All reasons, in the file's words, with the object's paths."""
    with pytest.raises(ConfigError) as caught:
        profile(**spec)
    assert list(caught.value.problems) == problems
