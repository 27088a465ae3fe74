"""The command line: forms of flags, defaults, kube-scheduler's error texts, precedence over the file."""

import pytest

from scheduler.config.errors import ConfigError, UsageError
from scheduler.config.flag_table import FLAGS, INERT, SECTIONS
from scheduler.config.flags import complete, parse_flags
from scheduler.config.help import help_text
from scheduler.config.load import default_configuration
from scheduler.config.options import SchedulerOptions

_HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


@pytest.mark.parametrize(
    ("argv", "name", "value"),
    [
        pytest.param(["--secure-port=1"], "secure-port", 1, id="value after ="),
        pytest.param(["--secure-port", "0x10"], "secure-port", 16, id="value as next word, Go's number syntax"),
        pytest.param(["--leader-elect"], "leader-elect", True, id="a boolean alone is true"),
        pytest.param(["--leader-elect=false"], "leader-elect", False, id="a boolean with ="),
        pytest.param(["--leader-elect=F"], "leader-elect", False, id="Go's booleans"),
        pytest.param(["-v", "3"], "v", 3, id="short, next word"),
        pytest.param(["-v=3"], "v", 3, id="short with ="),
        pytest.param(["-v3"], "v", 3, id="short, attached"),
        pytest.param(["--v=3"], "v", 3, id="long form of a short one"),
        pytest.param(["-h"], "help", True, id="help"),
        pytest.param(["--version"], "version", "true", id="version alone"),
        pytest.param(["--version=raw"], "version", "raw", id="raw version"),
        pytest.param(["--config", "-"], "config", "-", id="a dash is a value"),
        pytest.param(["--config="], "config", "", id="an empty value"),
        pytest.param(["--leader-elect-lease-duration=1m30s"], "leader-elect-lease-duration", 90.0, id="duration"),
        pytest.param(["--kube-api-qps=1e2"], "kube-api-qps", 100.0, id="float"),
        pytest.param(["--bind-address=::1"], "bind-address", "::1", id="address"),
        pytest.param(["--authorization-always-allow-paths=/a,/b", "--authorization-always-allow-paths=/c"], "authorization-always-allow-paths", ("/a", "/b", "/c"), id="lists replace the default and add up"),
        pytest.param(["--requestheader-allowed-names="], "requestheader-allowed-names", (), id="an empty list"),
        pytest.param(["--feature-gates=NodeDeclaredFeatures=false"], "feature-gates", ("NodeDeclaredFeatures=false",), id="gates"),
        pytest.param(["--allow-metric-labels=m,l=v1,v2"], "allow-metric-labels", {"m,l": "v1,v2"}, id="map"),
        pytest.param(["--secure-port=1", "--secure-port=2"], "secure-port", 2, id="the last one wins"),
        pytest.param(["", "--"], "secure-port", 10259, id="empty words are let through"),
    ],
)  # fmt: skip
def test_forms(argv, name, value):
    """Every form that kube-scheduler takes."""
    assert parse_flags(argv)[name] == value


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        pytest.param(["--foo"], "unknown flag: --foo", id="unknown"),
        pytest.param(["--leader"], "unknown flag: --leader", id="no abbreviations"),
        pytest.param(["-x"], "unknown shorthand flag: 'x' in -x", id="unknown short"),
        pytest.param(["foo"], '"podium run" does not take any arguments, got ["foo"]', id="positional"),
        pytest.param(["--leader-elect", "false"], '"podium run" does not take any arguments, got ["false"]', id="a boolean does not take the next word"),
        pytest.param(["--", "x"], '"podium run" does not take any arguments, got ["x"]', id="positional after dashes"),
        pytest.param(["--config"], "flag needs an argument: --config", id="missing value"),
        pytest.param(["-v"], "flag needs an argument: 'v' in -v", id="missing value, short"),
        pytest.param(["---x"], "bad flag syntax: ---x", id="three dashes"),
        pytest.param(["--=x"], "bad flag syntax: --=x", id="no name"),
        pytest.param(["--leader-elect=maybe"], 'invalid argument "maybe" for "--leader-elect" flag: strconv.ParseBool: parsing "maybe": invalid syntax', id="no boolean"),
        pytest.param(["--secure-port=abc"], 'invalid argument "abc" for "--secure-port" flag: strconv.ParseInt: parsing "abc": invalid syntax', id="no number"),
        pytest.param(["--kube-api-burst=9999999999"], 'invalid argument "9999999999" for "--kube-api-burst" flag: strconv.ParseInt: parsing "9999999999": value out of range', id="out of range"),
        pytest.param(["--v=-1"], 'invalid argument "-1" for "-v, --v" flag: strconv.ParseUint: parsing "-1": invalid syntax', id="negative verbosity"),
        pytest.param(["--leader-elect-lease-duration=5"], 'invalid argument "5" for "--leader-elect-lease-duration" flag: time: missing unit in duration "5"', id="no duration"),
        pytest.param(["--bind-address=foo"], 'invalid argument "foo" for "--bind-address" flag: failed to parse IP: "foo"', id="no address"),
        pytest.param(["--allow-metric-labels=foo"], 'invalid argument "foo" for "--allow-metric-labels" flag: foo must be formatted as key=value', id="no pair"),
        pytest.param(["--vmodule=foo"], 'invalid argument "foo" for "--vmodule" flag: "foo" does not have the pattern=N format', id="no pattern"),
        pytest.param(["--version=foo"], 'invalid argument "foo" for "--version" flag: strconv.ParseBool: parsing "foo": invalid syntax', id="odd version"),
        pytest.param(["--secure-port=70000"], "--secure-port 70000 must be between 0 and 65535, inclusive; 0 turns HTTPS off", id="no port"),
        pytest.param(["--logging-format=xml"], 'format: Invalid value: "xml": Unsupported log format', id="unknown log format"),
        pytest.param(["--tls-min-version=Foo"], 'unknown tls version "Foo"', id="unknown TLS version"),
        pytest.param(["--feature-gates=Foo=true"], "unrecognized feature gate: Foo", id="unknown gate"),
    ],
)  # fmt: skip
def test_usage_errors(argv, message):
    """With the texts of kube-scheduler's flag library."""
    with pytest.raises(UsageError) as caught:
        parse_flags(argv)

    assert str(caught.value) == message


def test_defaults_of_the_table_are_upstream_s():
    """A sample over all sections."""
    flags = parse_flags([])

    expected = {
        "config": "", "bind-address": "0.0.0.0", "secure-port": 10259, "cert-dir": "",
        "authentication-tolerate-lookup-failure": True, "authentication-token-webhook-cache-ttl": 10.0,
        "requestheader-username-headers": ("x-remote-user",), "requestheader-group-headers": ("x-remote-group",),
        "requestheader-extra-headers-prefix": ("x-remote-extra-",), "requestheader-uid-headers": (),
        "authorization-always-allow-paths": ("/healthz", "/readyz", "/livez"),
        "authorization-webhook-cache-authorized-ttl": 10.0, "kube-api-qps": 50.0, "kube-api-burst": 100,
        "pod-max-in-unschedulable-pods-duration": 300.0, "leader-elect": True, "leader-elect-lease-duration": 15.0,
        "leader-elect-renew-deadline": 10.0, "leader-elect-retry-period": 2.0, "leader-elect-resource-lock": "leases",
        "leader-elect-resource-name": "kube-scheduler", "leader-elect-resource-namespace": "kube-system",
        "logging-format": "text", "v": 0, "log-flush-frequency": 5.0, "profiling": True,
    }  # fmt: skip
    assert {name: flags[name] for name in expected} == expected
    assert not flags.is_given("v")
    assert FLAGS.keys() >= INERT


def test_help_lists_every_flag_in_its_section():
    """The text is grouped as kube-scheduler's."""
    text = help_text("podium run", 120)

    assert all(f"\n{title} flags:\n" in text for title in SECTIONS)
    assert all(f"--{name}" in text for name in FLAGS)
    assert "      --leader-elect-lease-duration duration     How long" in text
    assert "(default 15s)" in text
    assert max(map(len, text.splitlines())) <= 120


# --- precedence -----------------------------------------------------------------------------------------------------


def _complete(*argv, **files):
    named = {f"{name}.yaml": text.encode() for name, text in files.items()}
    return complete(parse_flags(argv), named.__getitem__)


def test_without_a_file_flags_change_the_defaults():
    """Deprecated and leader-election flags apply."""
    completed = _complete("--kubeconfig=k", "--kube-api-qps=5", "--kube-api-burst=6", "--profiling=false", "--leader-elect=false", "--leader-elect-resource-name=x")  # fmt: skip

    connection = completed.configuration.client_connection
    assert (connection.kubeconfig, connection.qps, connection.burst) == ("k", 5.0, 6)
    assert completed.configuration.enable_profiling is False
    assert completed.configuration.leader_election.leader_elect is False
    assert completed.configuration.leader_election.resource_name == "x"
    assert completed.configuration.profiles == default_configuration().profiles
    assert completed.notes == ()


def test_with_a_file_leader_election_flags_win_and_deprecated_ones_are_ignored():
    """Only what was given on the command line wins."""
    text = _HEADER + "clientConnection: {kubeconfig: file}\nleaderElection: {resourceName: file, leaseDuration: 20s}\n"

    completed = _complete(
        "--config=c.yaml", "--leader-elect-resource-name=flag", "--kubeconfig=flag", "--kube-api-qps=5", c=text
    )

    election = completed.configuration.leader_election
    assert (election.resource_name, election.lease_duration_s) == ("flag", 20.0)
    assert completed.configuration.client_connection.kubeconfig == "file"
    assert completed.configuration.client_connection.qps is None
    assert completed.notes == (
        "--kube-api-qps is ignored: a configuration file was given",
        "--kubeconfig is ignored: the configuration file names a kubeconfig",
    )


def test_kubeconfig_flag_helps_a_file_that_names_none():
    """A difference to kube-scheduler, which would look for a service account then."""
    completed = _complete("--config=c.yaml", "--kubeconfig=flag", c=_HEADER)

    assert completed.configuration.client_connection.kubeconfig == "flag"
    assert completed.notes == ()


def test_flags_that_make_the_configuration_invalid_are_refused():
    """The result is validated, not only the file."""
    with pytest.raises(ConfigError, match="must be greater than `RenewDeadline`"):
        _complete("--leader-elect-lease-duration=1s")
    with pytest.raises(ConfigError, match="resourceLock"):
        _complete("--config=c.yaml", "--leader-elect-resource-lock=endpoints", c=_HEADER)


def test_the_rest_is_carried_along():
    """Options, gates, master, waiting time and notes."""
    options = "apiVersion: podium.dev/v1alpha1\nkind: SchedulerOptions\nbindConcurrency: 8\n"

    completed = _complete("--options=o.yaml", "--master=http://x", "--feature-gates=NodeDeclaredFeatures=false,GangScheduling=true", "--pod-max-in-unschedulable-pods-duration=1m", "--vmodule=a=1", o=options)  # fmt: skip

    assert completed.options == SchedulerOptions(bind_concurrency=8)
    assert completed.master == "http://x"
    assert completed.pod_max_in_unschedulable_s == 60.0
    assert completed.gates.enabled("NodeDeclaredFeatures") is False
    assert "NodeDeclaredFeatures" not in set(completed.configuration.profiles[0].plugins.names())
    assert completed.notes == (
        "--vmodule is accepted and has no effect here",
        "feature gate GangScheduling is accepted and has no effect here",
    )


def test_missing_file_is_a_configuration_error(tmp_path):
    """With the path and the reason."""
    path = tmp_path / "nope.yaml"

    with pytest.raises(ConfigError) as caught:
        complete(parse_flags([f"--config={path}"]))

    assert caught.value.problems == (f"open {path}: no such file or directory",)
