"""``podium check-config``: output, exit codes, plugins of third parties."""

import json
import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest

from scheduler.api import FilterPlugin, PluginArgs
from scheduler.cli.check_config import check_config
from scheduler.cli.configuration_problems import installed_plugins
from scheduler.framework.registry import ENTRY_POINT_GROUP, Registry
from scheduler.plugins import IN_TREE

_HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


class QuietArgs(PluginArgs):
    max_pods: int = 10


class Coscheduling(FilterPlugin):
    name = "Coscheduling"
    Args = QuietArgs

    def filter(self, state, pod, node):
        return None


def installed(*targets):
    """Return a registry in which these attributes of this module are installed plugins."""
    return Registry(
        IN_TREE, [EntryPoint(target.split(".")[0], f"{__name__}:{target}", ENTRY_POINT_GROUP) for target in targets]
    )


@pytest.fixture
def run(tmp_path, capsys):
    """Check a text; return exit code, standard output and the file's path."""

    def check(text, *flags, registry=Registry(IN_TREE)):  # noqa: B008  it holds nothing but names
        path = tmp_path / "config.yaml"
        path.write_text(_HEADER + text)
        code = check_config([str(path), *flags], lambda: registry)
        return code, capsys.readouterr().out, str(path)

    return check


def test_good_file(run):
    """One line, exit 0."""
    code, out, path = run("")

    assert (code, out) == (0, f"{path}: ok\n")


def test_every_problem_has_its_line(run):
    """Exit 1."""
    code, out, _ = run("foo: 1\nparallelism: 0\n")

    assert code == 1
    assert out.splitlines() == [
        'strict decoding error: unknown field "foo"',
        "parallelism: Invalid value: 0: should be an integer value greater than zero",
    ]


@pytest.mark.parametrize(("elect", "expected"), [("true", 1), ("false", 0)])
def test_an_election_that_the_daemon_would_refuse(run, elect, expected):
    """kube-scheduler's checks of a file let it pass; its elector does not, and neither does ours."""
    times = "leaseDuration: 3s, renewDeadline: 2s, retryPeriod: 1900ms"

    code, out, path = run(f"leaderElection: {{leaderElect: {elect}, {times}}}\n")

    refusal = "leaderElection: renewDeadline must be greater than retryPeriod*JitterFactor"
    assert (code, out) == (expected, f"{refusal if expected else f'{path}: ok'}\n")


def test_json_output(run):
    """Path and message apart, notes, verdict."""
    code, out, path = run("foo: 1\nparallelism: 0\n", "--output", "json")

    assert code == 1
    assert json.loads(out) == {
        "file": path,
        "ok": False,
        "problems": [
            {"path": "foo", "message": 'strict decoding error: unknown field "foo"'},
            {"path": "parallelism", "message": "Invalid value: 0: should be an integer value greater than zero"},
        ],
        "notes": [],
    }


def test_json_output_of_a_good_file_has_notes(run):
    """What is ignored is said there, too."""
    code, out, _ = run("parallelism: 4\n", "--output=json")

    report = json.loads(out)
    assert (code, report["ok"], report["problems"], len(report["notes"])) == (0, True, [], 1)


@pytest.mark.parametrize(
    ("plugins", "targets", "expected"),
    [
        pytest.param("multiPoint: {enabled: [{name: Coscheduling}]}", (), 'profiles[0].plugins: plugin "Coscheduling" is neither part of Podium nor offered by an installed package (podium.plugins)', id="a plugin that nobody has"),
        pytest.param("multiPoint: {enabled: [{name: Coscheduling}]}", ("Coscheduling",), None, id="a plugin that is installed"),
        pytest.param("multiPoint: {enabled: [{name: Missing}]}", ("Missing",), f"profiles[0].plugins: loading plugin \"Missing\" of unknown ({__name__}:Missing): AttributeError: module '{__name__}' has no attribute 'Missing'", id="a package without the class"),
        pytest.param("score: {enabled: [{name: Coscheduling}]}", ("Coscheduling",), 'profiles[0].plugins: initializing profiles: creating profile for scheduler name default-scheduler: plugin "Coscheduling" does not extend ScorePlugin plugin', id="a third party's plugin at the wrong point"),
        pytest.param("filter: {enabled: [{name: ImageLocality}]}", (), 'profiles[0].plugins: initializing profiles: creating profile for scheduler name default-scheduler: plugin "ImageLocality" does not extend FilterPlugin plugin', id="a plugin at the wrong point"),
        pytest.param("multiPoint: {disabled: [{name: '*'}]}", (), 'profiles[0].plugins: initializing profiles: creating profile for scheduler name default-scheduler: only one queue sort plugin required for profile with scheduler name "default-scheduler", but got 0', id="no queue sort"),
    ],
)  # fmt: skip
def test_profiles_are_expanded_as_the_daemon_will(run, plugins, targets, expected):
    """Mistakes that show only at start-up are found here."""
    code, out, path = run(f"profiles: [{{plugins: {{{plugins}}}}}]\n", registry=installed(*targets))

    assert (code, out) == ((0, f"{path}: ok\n") if expected is None else (1, f"{expected}\n"))


def test_feature_gates_decide(run):
    """The file is checked as it will be used."""
    text = "profiles: [{pluginConfig: [{name: VolumeBinding, args: {shape: [{utilization: 0, score: 1}]}}]}]\n"

    assert run(text)[0] == 1
    assert run(text, "--feature-gates=StorageCapacityScoring=true")[0] == 0


@pytest.mark.parametrize(
    "argv",
    [
        pytest.param([], id="no file"),
        pytest.param(["a", "b"], id="two files"),
        pytest.param(["a", "--foo"], id="unknown flag"),
        pytest.param(["a", "--output"], id="missing value"),
        pytest.param(["a", "--output=xml"], id="unknown output"),
        pytest.param(["a", "--feature-gates=Foo=true"], id="unknown gate"),
    ],
)
def test_usage_errors_exit_2(argv, capsys):
    """The reason and the usage go to standard error."""
    assert check_config(argv, tuple) == 2
    assert "usage: podium check-config" in capsys.readouterr().err


def test_missing_file_exits_1(capsys):
    """It cannot be good."""
    assert check_config(["/nonexistent/config.yaml"], tuple) == 1
    assert capsys.readouterr().out == "open /nonexistent/config.yaml: no such file or directory\n"


def test_help_exits_0(capsys):
    """On standard output."""
    assert check_config(["--help"], tuple) == 0
    assert capsys.readouterr().out.startswith("usage: podium check-config FILE")


def test_installed_plugins_are_podiums_and_those_of_packages():
    """Entry points are read without importing anything."""
    assert set(IN_TREE) <= set(installed_plugins().names)


def test_file_that_cannot_be_read_needs_no_plugins(tmp_path):
    """What is wrong with it is said at once: most of a start is the loading of plugins."""
    path = tmp_path / "config.yaml"
    path.write_text("profiles: [")
    program = (
        "import sys; from scheduler.cli.check_config import check_config; "
        "code = check_config(sys.argv[1:]); sys.exit('numpy' in sys.modules or 'scheduler.plugins' in sys.modules or code - 1)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.partition(":")[0], done.stderr) == (0, "yaml", "")


def test_arguments_of_plugins_are_decoded(run):
    """What does not fit the type that the plugin names has its path in the file."""
    profile = "profiles: [{plugins: {multiPoint: {enabled: [{name: Coscheduling}]}}, pluginConfig: [{name: NodeAffinity}, {name: Coscheduling, args: %s}]}]\n"
    registry = installed("Coscheduling")
    path = "profiles[0].pluginConfig[1].args"
    wrong = "plugin Coscheduling: Expected `int`, got `str`"
    assert run(profile % "{maxPods: many}", registry=registry)[:2] == (1, f"{path}.maxPods: {wrong}\n")
    unknown = "plugin Coscheduling: Object contains unknown field `limit`"
    assert run(profile % "{limit: 3}", registry=registry)[:2] == (1, f"{path}: {unknown}\n")
    assert run(profile % "{maxPods: 3}", registry=registry)[0] == 0


def test_names_offered_twice_are_refused(run):
    """The daemon would not start."""
    code, out, _ = run("", registry=Registry(IN_TREE, [EntryPoint("NodeName", "acme:NodeName", ENTRY_POINT_GROUP)]))
    assert (code, out) == (
        1,
        'a plugin named "NodeName" is offered by podium (in-tree) and unknown (acme:NodeName): uninstall all but one\n',
    )
