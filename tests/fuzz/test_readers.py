"""Whatever bytes come: a reader returns a value or raises the one error that it documents, and whole input is cut anywhere."""

from __future__ import annotations

import contextlib
import functools
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from scheduler.api import ExtenderError, NodesView, Pod
from scheduler.config.errors import ConfigError
from scheduler.config.gates import DEFAULT_GATES
from scheduler.config.load import default_configuration, load, load_profile
from scheduler.config.types import Extender as ExtenderConfiguration
from scheduler.controllers.objects import SchedulerProfile, decode_list
from scheduler.framework.extender import Extender
from scheduler.kube.errors import CredentialsError, ProtocolError
from scheduler.kube.framing import LineSplitter
from scheduler.kube.http1 import HttpSyntaxError, ResponseParser
from scheduler.kube.known import Known
from scheduler.kube.kubeconfig import load_kubeconfig
from scheduler.model.decode import decode_watch_line
from scheduler.model.delta import Added, Changed, Rejected, Removed
from scheduler.testing import Harness, node, pod
from tests.fuzz.regressions import (
    CONFIGURATIONS,
    EXTENDER_ANSWERS,
    HTTP_ANSWERS,
    KUBECONFIGS,
    PROFILE_LISTS,
    WATCH_STREAMS,
    fuzzed,
    tried_first,
)

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9)
)


def trees(*keys: str) -> st.SearchStrategy[Any]:
    """Return JSON with these keys, nested as it comes."""
    names = st.sampled_from(keys)
    return st.recursive(
        scalars | names,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4),
        max_leaves=20,
    )


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    """Return the data in pieces of these sizes, and the rest."""
    pieces = []
    for size in sizes:
        pieces.append(data[:size])
        data = data[size:]
    return [*pieces, data]


# --- HTTP/1.1 --------------------------------------------------------------------------------------------------------

heads = st.lists(
    st.sampled_from([
        b"HTTP/1.1 200 OK", b"HTTP/1.1 404 No", b"HTTP/1.0 200 OK", b"HTTP/1.1 100 Go", b"HTTP/1.1 204 None", b"\r\n",
        b"Content-Length: 3", b"Content-Length: 10", b"Transfer-Encoding: chunked", b"Connection: close", b"A: b", b"x",
        b"3", b"abc", b"0", b"a", b"0;x=y", b"",
    ]),
    max_size=14,
).map(b"\r\n".join)  # fmt: skip


def parsed(pieces: list[bytes]) -> tuple[Any, ...]:
    """Return all that the parser says about an answer that came in these pieces and then ended."""
    parser, body = ResponseParser(), b""
    try:
        for piece in pieces:
            if piece:
                body += parser.feed(piece)
        parser.end()
    except HttpSyntaxError:
        return ("broken",)
    return parser.status, dict(parser.headers), body, parser.is_complete


@fuzzed
@tried_first(HTTP_ANSWERS)
@given(heads | st.binary(max_size=200))
def test_http_answers_raise_one_error(data: bytes) -> None:
    """A complete answer has a status; its body is no longer than what came."""
    result = parsed([data])
    if result != ("broken",):
        assert 200 <= result[0] <= 599
        assert len(result[2]) <= len(data)


@fuzzed
@given(st.sampled_from(HTTP_ANSWERS) | heads, st.lists(st.integers(0, 9), max_size=12))
def test_http_answers_may_come_in_any_pieces(data: bytes, sizes: list[int]) -> None:
    """The network decides where they are cut."""
    assert parsed(cut(data, sizes)) == parsed([data])


# --- watches ---------------------------------------------------------------------------------------------------------

objects = trees("metadata", "name", "namespace", "uid", "resourceVersion", "spec", "nodeName", "containers", "status")
lines = st.builds(
    lambda kind, obj: json.dumps({"type": kind, "object": obj}).encode(),
    st.sampled_from(["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR", "OTHER"]),
    objects | st.builds(lambda name, version: {"metadata": {"name": name, "resourceVersion": version, "uid": name}},
                        st.sampled_from("abc"), st.integers(1, 9).map(str)),
)  # fmt: skip
streams = st.lists(lines | st.binary(max_size=20), max_size=8).map(lambda found: b"\n".join([*found, b""]))


def told(pieces: list[bytes]) -> list[Any]:
    """Return what a watch of pods in these pieces tells intake."""
    deltas: list[Any] = []
    known, splitter = Known(deltas.append), LineSplitter()
    for piece in pieces:
        for line in splitter.feed(piece):
            said = decode_watch_line(Pod, line)
            if said.obj is None:
                continue
            if said.type == "DELETED":
                known.remove(said.obj)
            elif isinstance(said.obj, Rejected):
                known.reject(said.obj)
            else:
                known.put(said.obj)
    return deltas


@fuzzed
@tried_first(WATCH_STREAMS)
@given(streams)
def test_watch_streams_make_sense_to_intake(data: bytes) -> None:
    """Nothing is changed or removed that was not added, nothing is added twice."""
    there: set[str] = set()
    for delta in told([data]):
        match delta:
            case Added(obj):
                assert obj.key not in there
                there.add(obj.key)
            case Changed(old, obj):
                assert old.key == obj.key in there
            case Removed(obj):
                there.remove(obj.key)
            case Rejected():
                assert delta.reason


@fuzzed
@given(st.sampled_from(WATCH_STREAMS) | streams, st.lists(st.integers(0, 30), max_size=12))
def test_watch_streams_may_come_in_any_pieces(data: bytes, sizes: list[int]) -> None:
    """The network decides where they are cut."""
    assert told(cut(data, sizes)) == told([data])


# --- configuration ---------------------------------------------------------------------------------------------------

CONFIGURATION_KEYS = (
    "apiVersion", "kind", "profiles", "schedulerName", "plugins", "multiPoint", "filter", "enabled", "disabled", "name",
    "weight", "pluginConfig", "args", "extenders", "urlPrefix", "tlsConfig", "managedResources", "leaderElection",
    "leaseDuration", "clientConnection", "qps", "parallelism", "NodeAffinity", "NodeResourcesFit", "PodTopologySpread",
    "scoringStrategy", "resources", "defaultConstraints", "addedAffinity",
)  # fmt: skip
HEADER = b'{"apiVersion":"kubescheduler.config.k8s.io/v1","kind":"KubeSchedulerConfiguration",'
trees_of_configuration = trees(*CONFIGURATION_KEYS)
configurations = trees_of_configuration.map(
    lambda tree: (
        HEADER + json.dumps(tree).encode()[1:] if isinstance(tree, dict) and tree else json.dumps(tree).encode()
    )
)


@fuzzed
@tried_first(CONFIGURATIONS)
@given(configurations | st.binary(max_size=100) | st.text("{}[]:,-&*!|>%@'\"#? \n\tab1.", max_size=60).map(str.encode))
def test_configurations_raise_one_error(data: bytes) -> None:
    """Every problem is a line with its path, or the configuration stands."""
    assert_problems_or(lambda: load(data).profiles)


@fuzzed
@given(trees_of_configuration)
def test_profiles_of_objects_raise_one_error(spec: Any) -> None:
    """The spec of a SchedulerProfile, of whatever shape an old schema let in."""
    assert_problems_or(lambda: load_profile(spec, default_configuration(), DEFAULT_GATES, "spec").scheduler_name)


def assert_problems_or(found: Callable[[], object]) -> None:
    """Check that what is found is something, or that every problem is said."""
    problems: tuple[str, ...] | None = None
    try:
        result = found()
    except ConfigError as error:
        problems = error.problems
    if problems is None:
        assert result
    else:
        assert problems
        assert all(problems)


@fuzzed
@tried_first(PROFILE_LISTS)
@given(
    trees("items", "metadata", "name", "uid", "spec", "schedulerName", "status").map(lambda t: json.dumps(t).encode())
)
def test_lists_of_profiles_raise_one_error(data: bytes) -> None:
    """Each object that is returned has a name."""
    try:
        found = decode_list(data)
    except ProtocolError:
        return
    assert all(isinstance(each, SchedulerProfile) and isinstance(each.scheduler_name, str) for each in found)


KUBECONFIG_KEYS = (
    "current-context", "contexts", "context", "clusters", "cluster", "users", "user", "name", "server", "token", "tokenFile",
    "client-certificate-data", "client-key-data", "certificate-authority-data", "insecure-skip-tls-verify",
    "tls-server-name", "exec", "proxy-url",
)  # fmt: skip


@fuzzed
@tried_first(KUBECONFIGS)
@given(trees(*KUBECONFIG_KEYS).map(lambda tree: json.dumps(tree).encode()) | st.binary(max_size=60))
def test_kubeconfigs_raise_one_error(data: bytes) -> None:
    """What is wrong, and in which file; never a part of the file itself, which may be secret."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "kubeconfig"
        file.write_bytes(data)
        said = ""
        try:
            load_kubeconfig(file)
        except CredentialsError as error:
            said = str(error)
        assert not said or directory in said


# --- extenders -------------------------------------------------------------------------------------------------------


@functools.cache
def two_nodes() -> NodesView:
    """Return the snapshot of a cluster of n1 and n2."""
    cluster = Harness()
    cluster.put(*(node(f"n{i}").capacity(cpu="4", memory="8Gi", pods="10").obj() for i in (1, 2)))
    cluster.schedule(pod("first").obj())
    cluster.close()
    return cluster.core.snapshot


answers = trees(
    "Nodes", "NodeNames", "FailedNodes", "FailedAndUnresolvableNodes", "Error", "Host", "Score", "items", "metadata", "name",
    "NodeNameToMetaVictims", "Pods", "UID", "NumPDBViolations", "n1", "n2", "n3",
).map(lambda tree: json.dumps(tree).encode())  # fmt: skip


@fuzzed
@tried_first(EXTENDER_ANSWERS)
@given(answers | st.binary(max_size=60))
def test_extender_answers_raise_one_error(body: bytes) -> None:
    """What is kept was asked about, scores are int64, victims run where they are said to."""
    configuration = ExtenderConfiguration(
        url_prefix="http://x",
        filter_verb="f",
        prioritize_verb="p",
        bind_verb="b",
        preempt_verb="e",
        weight=1,
        node_cache_capable=True,
    )
    extender = Extender(configuration, lambda url, verb, question: body)
    nodes, asking = two_nodes(), pod("web").obj()
    with contextlib.suppress(ExtenderError):
        assert set(extender.filter(asking, nodes).kept) <= {"n1", "n2"}
    with contextlib.suppress(ExtenderError):
        scores, _ = extender.prioritize(asking, nodes)
        assert all(-(2**63) <= score < 2**63 for score in scores.values())
    with contextlib.suppress(ExtenderError):
        assert extender.preempt(asking, {}, nodes).keys() <= {"n1", "n2"}
    with contextlib.suppress(ExtenderError):
        extender.bind(asking, "n1")
