"""SchedulerOptions: Podium's own second file, as strict as the first."""

import pytest

from scheduler.config.errors import ConfigError
from scheduler.config.options import LiveProfilesOptions, PluginFaults, SchedulerOptions, load_options

_HEADER = "apiVersion: podium.dev/v1alpha1\nkind: SchedulerOptions\n"


def test_what_happens_to_faulty_plugins():
    """For all profiles, and for one of them in its place."""
    text = "pluginFaults: {policy: SkipPlugin}\nprofiles: {strict: {pluginFaults: {budgetMilliseconds: 200, quarantineAfter: 3, windowSeconds: 10, quarantineSeconds: 5}}, other: {}}\n"

    options = load_options((_HEADER + text).encode())

    assert options.plugin_faults_of("strict") == PluginFaults("FailPod", 200, 3, 10.0, 5.0)
    assert options.plugin_faults_of("other") == options.plugin_faults_of("any") == PluginFaults("SkipPlugin")


@pytest.mark.parametrize(
    ("faults", "expected"),
    [
        pytest.param(PluginFaults("FailPod"), 0, id="one that fails pods has none"),
        pytest.param(PluginFaults("SkipPlugin"), 10, id="one that skips plugins has"),
        pytest.param(PluginFaults("SkipPlugin", quarantine_after=0), 0, id="unless it says no"),
        pytest.param(PluginFaults("FailPod", quarantine_after=5), 5, id="or says when"),
    ],
)
def test_quarantine_by_policy(faults, expected):
    """After faults on how many pods."""
    assert faults.pods_before_quarantine == expected


def test_defaults():
    """An empty file changes nothing."""
    assert load_options(_HEADER.encode()) == SchedulerOptions(True, 5.0, 64, 90.0)


def test_everything_set():
    """Each field has its name in the file."""
    text = (
        "honorForeignNominations: false\npluginBudgetSeconds: 0.25\nbindConcurrency: 128\nwatchStaleAfterSeconds: 60\n"
        "comparePeriodSeconds: 10\nliveProfiles: {enabled: true, resyncSeconds: 5}\n"
    )

    assert load_options((_HEADER + text).encode()) == SchedulerOptions(
        False, 0.25, 128, 60.0, 10.0, live_profiles=LiveProfilesOptions(enabled=True, resync_s=5.0)
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("foo: 1\n", ('strict decoding error: unknown field "foo"',), id="unknown field"),
        pytest.param("bindConcurrency: x\n", ("bindConcurrency: cannot unmarshal string into a field of type int32",), id="wrong type"),
        pytest.param("bindConcurrency: 0\npluginBudgetSeconds: -1\nwatchStaleAfterSeconds: 0\ncomparePeriodSeconds: 0\n", ("pluginBudgetSeconds: Invalid value: -1: must be greater than zero", "bindConcurrency: Invalid value: 0: must be greater than zero", "watchStaleAfterSeconds: Invalid value: 0: must be greater than zero", "comparePeriodSeconds: Invalid value: 0: must be greater than zero"), id="not positive"),
        pytest.param("liveProfiles: {resyncSeconds: 0, on: 1}\n", ('strict decoding error: unknown field "liveProfiles.true"', "liveProfiles.resyncSeconds: Invalid value: 0: must be greater than zero"), id="live profiles"),
        pytest.param("profiles: {a: {pluginFaults: {policy: Ignore, budgetMilliseconds: 0, quarantineAfter: -1}}, b: {x: 1}}\n", ('strict decoding error: unknown field "profiles.b.x"', 'profiles.a.pluginFaults.policy: Unsupported value: "Ignore": supported values: "FailPod", "SkipPlugin"', "profiles.a.pluginFaults.budgetMilliseconds: Invalid value: 0: must be greater than zero", "profiles.a.pluginFaults.quarantineAfter: Invalid value: -1: must not be negative"), id="faults"),
        pytest.param("bindConcurrency: 1\nbindConcurrency: 2\n", ('strict decoding error: yaml: line 4: key "bindConcurrency" already set in map',), id="duplicate field"),
    ],
)  # fmt: skip
def test_refusals(text, expected):
    """All problems at once."""
    with pytest.raises(ConfigError) as caught:
        load_options((_HEADER + text).encode())

    assert caught.value.problems == expected


def test_kinds_are_not_mixed_up():
    """The upstream kind is not taken for ours."""
    with pytest.raises(ConfigError, match=", Kind=SchedulerOptions"):
        load_options(b"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
