"""Writing a configuration: nothing is lost, secrets stay out of /configz."""

import json

import msgspec
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.config import types as t
from scheduler.config.dump import REDACTED, configz, dump, to_v1, write_configuration
from scheduler.config.load import default_configuration, load
from scheduler.config.merge import merge_plugins

_TEXTS = st.one_of(
    st.sampled_from(["y", "on", "0x10", "1_0", "~", "null", "2001-01-01", ".inf", "<<", "a: b", "- x", "", "é"]),
    st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufeff\ufffe\uffff"), max_size=8),
)
_NAMES = _TEXTS.filter(bool)
_MILLISECONDS = st.integers(min_value=1, max_value=10**9).map(lambda number: number / 1000)
_REFS = st.lists(
    st.builds(t.PluginRef, st.sampled_from(["A", "B", "y", "NodeName"]), st.integers(0, 100)),
    max_size=3,
    unique_by=lambda ref: ref.name,  # a plugin that is enabled twice never gets past expansion
).map(tuple)
_DISABLED = st.lists(st.builds(t.PluginRef, st.sampled_from(["*", "ImageLocality", "on"])), max_size=2).map(tuple)
_SETS = st.builds(t.PluginSet, _REFS, _DISABLED)
_TLS = st.builds(
    t.ExtenderTLS,
    st.booleans(),
    _TEXTS,
    _TEXTS,
    _TEXTS,
    st.just(""),
    st.binary(max_size=5),
    st.binary(max_size=5),
    st.just(b""),
)
_EXTENDERS = st.builds(
    t.Extender,
    url_prefix=_TEXTS,
    filter_verb=_TEXTS,
    weight=st.integers(1, 2**63 - 1),
    enable_https=st.booleans(),
    tls_config=st.one_of(st.none(), _TLS),
    http_timeout_s=_MILLISECONDS,
    node_cache_capable=st.booleans(),
    ignorable=st.booleans(),
)
_PLAIN = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        _TEXTS,
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_TEXTS, inner, max_size=3)),
    max_leaves=5,
)


@st.composite
def _configurations(draw):
    """Return configurations as ``load`` returns them."""
    base = default_configuration()
    profiles = []
    for name in draw(st.lists(_NAMES, min_size=1, max_size=2, unique=True)):
        custom = t.Plugins(filter=draw(_SETS), score=draw(_SETS), multi_point=draw(_SETS))
        plugins = merge_plugins(base.profiles[0].plugins, custom)
        args = {**base.profiles[0].plugin_config, "Foreign": draw(st.dictionaries(_TEXTS, _PLAIN, max_size=2))}
        profiles.append(t.Profile(name, draw(st.one_of(st.none(), st.integers(0, 100))), plugins, args))
    return t.SchedulerConfiguration(
        parallelism=draw(st.integers(1, 100)),
        leader_election=t.LeaderElection(draw(st.booleans()), 100.0, draw(st.integers(1, 99_000).map(lambda number: number / 1000)), 2.0),
        client_connection=t.ClientConnection(draw(_TEXTS), "", "application/json", draw(st.one_of(st.none(), st.sampled_from([0.5, 20.0, -1.0]))), draw(st.one_of(st.none(), st.integers(1, 500)))),
        percentage_of_nodes_to_score=draw(st.integers(0, 100)),
        profiles=tuple(profiles),
        extenders=tuple(draw(st.lists(_EXTENDERS, max_size=2))),
        enable_profiling=draw(st.sampled_from([None, True, False])),
        delay_cache_until_active=draw(st.booleans()),
    )  # fmt: skip


def _refs_are_valid(configuration):
    return all(
        tls is None or not (extender.enable_https and tls.insecure and tls.ca_file)
        for extender in configuration.extenders
        for tls in [extender.tls_config]
    )


@settings(max_examples=60, deadline=None)
@given(_configurations().filter(_refs_are_valid))
def test_load_of_dump_is_the_same_configuration(configuration):
    """For every configuration, including texts that YAML would take for something else."""
    assert load(dump(configuration).encode()) == configuration


def test_default_configuration_survives():
    """The simplest case, without generated data."""
    assert load(dump(default_configuration()).encode()) == default_configuration()


def test_dump_quotes_what_would_be_read_as_something_else():
    """``y`` is a boolean to kube-scheduler's reader, though not to PyYAML's."""
    configuration = load(
        b"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{schedulerName: 'y'}]\n"
    )

    assert '  schedulerName: "y"\n' in dump(configuration)


def test_settings_that_were_not_given_are_left_out():
    """Written out they would mean something: a client limit, profiling."""
    document = to_v1(default_configuration())

    assert "enableProfiling" not in document
    assert document["clientConnection"] == {
        "kubeconfig": "",
        "acceptContentTypes": "",
        "contentType": "application/vnd.kubernetes.protobuf",
    }


def test_write_configuration(tmp_path):
    """The file is v1 YAML."""
    path = tmp_path / "out.yaml"

    write_configuration(default_configuration(), str(path))

    assert yaml.safe_load(path.read_text())["kind"] == "KubeSchedulerConfiguration"


def test_configz_hides_private_keys():
    """Everything else is shown as in the file."""
    extender = t.Extender(url_prefix="https://x", tls_config=t.ExtenderTLS(cert_data=b"cert", key_data=b"secret"))
    configuration = msgspec.structs.replace(default_configuration(), extenders=(extender,))

    document = json.loads(configz(configuration))["componentconfig"]

    assert document["apiVersion"] == "kubescheduler.config.k8s.io/v1"
    assert document["extenders"][0]["tlsConfig"] == {"certData": "Y2VydA==", "keyData": REDACTED}


@pytest.mark.parametrize("seconds", [0.5, 90.0, 3600.0])
def test_durations_are_go_texts(seconds):
    """Durations are written so that kube-scheduler reads them."""
    configuration = msgspec.structs.replace(
        default_configuration(), leader_election=t.LeaderElection(lease_duration_s=seconds)
    )

    assert (
        to_v1(configuration)["leaderElection"]["leaseDuration"]
        == {0.5: "500ms", 90.0: "1m30s", 3600.0: "1h0m0s"}[seconds]
    )
