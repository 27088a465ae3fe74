"""Files as users have them mean here what they mean to kube-scheduler.

``files/`` holds the files; ``completed/`` holds what kube-scheduler 1.36.3 wrote for each with
``--config FILE --write-config-to COMPLETED --master http://127.0.0.1:1 --secure-port 0``.
"""

from pathlib import Path

import pytest
import yaml

from scheduler.config.default_plugins import KNOWN_POINTS
from scheduler.config.dump import dump, to_v1
from scheduler.config.expand import expand
from scheduler.config.load import load, load_with_notes

_HERE = Path(__file__).parent
_NAMES = sorted(path.name for path in (_HERE / "completed").glob("*.yaml"))
_THIRD_PARTY = "scheduler-plugins.yaml"


def _read(name):
    return (_HERE / "files" / name).read_bytes()


def _without_own_defaults(document):
    """Drop the fields whose absence means something else in Podium (design: client limits, profiling)."""
    document = dict(document)
    for field in ("enableProfiling", "enableContentionProfiling"):
        document.pop(field, None)
    connection = dict(document["clientConnection"])
    if (connection.get("qps"), connection.get("burst")) == (50, 100):
        del connection["qps"], connection["burst"]
    return {**document, "clientConnection": connection}


@pytest.mark.parametrize("name", _NAMES)
def test_completes_as_kube_scheduler_does(name):
    """The completed configuration equals the one that the real kube-scheduler wrote."""
    theirs = yaml.safe_load((_HERE / "completed" / name).read_bytes())

    ours = to_v1(load(_read(name)))

    assert _without_own_defaults(ours) == _without_own_defaults(theirs)


@pytest.mark.parametrize("name", [*_NAMES, _THIRD_PARTY])
def test_written_file_loads_to_the_same_configuration(name):
    """``--write-config-to`` loses nothing."""
    configuration = load(_read(name))

    assert load(dump(configuration).encode()) == configuration


@pytest.mark.parametrize("name", _NAMES)
def test_completed_file_of_kube_scheduler_loads(name):
    """What kube-scheduler wrote is itself a good file, with the same profiles."""
    theirs = load((_HERE / "completed" / name).read_bytes())

    assert theirs.profiles == load(_read(name)).profiles


@pytest.mark.parametrize("name", _NAMES)
def test_profiles_expand(name):
    """Every profile has a queue sort and a bind plugin after expansion."""
    for profile in load(_read(name)).profiles:
        points = expand(profile, lambda point, plugin: point in KNOWN_POINTS[plugin]).points

        assert [ref.name for ref in points["queue_sort"]] == ["PrioritySort"]
        assert [ref.name for ref in points["bind"]] == ["DefaultBinder"]


def test_args_of_third_party_plugins_stay_plain():
    """Args of plugins that Kubernetes does not have are handed on as they are."""
    (profile,) = load(_read(_THIRD_PARTY)).profiles

    assert profile.plugin_config["Coscheduling"] == {"permitWaitingTimeSeconds": 10}
    assert profile.plugin_config["NodeResourceTopologyMatch"]["kind"] == "NodeResourceTopologyMatchArgs"


def test_expansion_orders_multi_point_as_kube_scheduler_does():
    """Weights and order of the score plugins of a file that changes both."""
    (profile,) = load(_read("multipoint.yaml")).profiles

    points = expand(profile, lambda point, plugin: point in KNOWN_POINTS[plugin]).points

    # as kube-scheduler 1.36.3 lists them with -v=2
    assert [(ref.name, ref.weight) for ref in points["score"]] == [
        ("TaintToleration", 1),
        ("NodeResourcesFit", 1),
        ("VolumeBinding", 1),
        ("InterPodAffinity", 2),
        ("DynamicResources", 2),
        ("NodeResourcesBalancedAllocation", 1),
        ("ImageLocality", 7),
        ("NodeAffinity", 9),
    ]
    assert "NodePorts" in {ref.name for ref in points["pre_filter"]}
    assert "NodePorts" not in {ref.name for ref in points["filter"]}


def test_notes_say_what_is_ignored():
    """Fields that mean something to Go programs only are accepted with a sentence each."""
    assert load_with_notes(_read("kubeadm.yaml")).notes == (
        "clientConnection.contentType is accepted and ignored: Podium speaks JSON",
    )
    assert load_with_notes(_read("two-profiles.yaml")).notes == (
        "parallelism is accepted and ignored: nodes are evaluated all at once, on one thread",
    )
