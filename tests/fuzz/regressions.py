"""Inputs that once broke something, or that somebody thought might: tried first in every run, by target."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from hypothesis import example, settings

__all__ = [
    "CONFIGURATIONS",
    "EXTENDER_ANSWERS",
    "HTTP_ANSWERS",
    "KUBECONFIGS",
    "PROFILE_LISTS",
    "WATCH_STREAMS",
    "fuzzed",
    "tried_first",
]

fuzzed = settings(deadline=None)
"""For every target: a busy machine takes its time; how many examples, the profile says."""

BOMB = b"".join(
    b"a%d: &a%d [%s]\n" % (i, i, b", ".join([b"*a%d" % (i - 1)] * 10 if i else [b"x"] * 10)) for i in range(10)
)
MERGE_BOMB = b"a0: &a0 {x: 1}\n" + b"".join(
    b"a%d: &a%d {<<: [%s]}\n" % (i, i, b", ".join([b"*a%d" % (i - 1)] * 10)) for i in range(1, 10)
)
DEEP_JSON = b"[" * 100_000
DEEP_FLOW = b"{a: " * 20_000

CONFIGURATIONS = (
    b"", b"\0", b"\xff", b"- a", b"a: b: c", b"? {a: b}\n: c", b"<<: 5", b"*a", b"&a *a", b"!!python/object:os.system x",
    b"!!binary x", b"!!set {a}", b"a: !!int x", b"--- a\n--- b", b"%TAG ! x", b'{"a": NaN}', b'{"a": 1e999}', BOMB,
    MERGE_BOMB, DEEP_JSON, DEEP_FLOW, b"parallelism: " + b"9" * 5_000, b"a: 0o" + b"7" * 399, b"\xef\xbb\xbf{}",
    b"profiles: [{pluginConfig: [{name: [], args: {}}]}]", b"profiles: [{plugins: {multiPoint: {enabled: [5]}}}]",
    b"extenders: [{tlsConfig: {keyData: [1]}}]", b"kind: [KubeSchedulerConfiguration]", b"apiVersion: {a: b}",
    b"apiVersion: kubescheduler.config.k8s.io/v1\nkind: [x]",
)  # fmt: skip
KUBECONFIGS = (
    *CONFIGURATIONS,
    b"current-context: a\ncontexts: [{name: a, context: {cluster: b}}]\nclusters: [{name: b, cluster: {server: 'https://['}}]",
    b"current-context: a\ncontexts: [{name: a, context: {cluster: b}}]\nclusters: [{name: b, cluster: {server: 'https://h:x'}}]",
    (b"current-context: a\ncontexts: [{name: a, context: {cluster: b, user: c}}]\nclusters: [{name: b, cluster: {server: h}}]\n"
    b'users: [{name: c, user: {tokenFile: "a\\0b"}}]'),
    b"current-context: 2020-13-45", b"current-context: 2020-01-01", b"contexts: {a: b}\ncurrent-context: a",
)  # fmt: skip
EXTENDER_ANSWERS = (
    b"", b"null", b"[]", b"5", b'"x"', b"{}", b'{"NodeNames": null}', b'{"NodeNames": ["a", "a", 5]}', DEEP_JSON,
    b'{"nodenames": ["n1"], "NODENAMES": ["n2"]}', b'{"FailedNodes": {"n1": null}}', b'{"Error": 5}', b'{"Error": NaN}',
    b'[{"Host": "n1", "Score": 9223372036854775808}]', b'[{"Host": "n1", "Score": 9223372036854775807}]',
    b'[{"Host": null, "Score": 1}]', b'{"Nodes": {"items": [{"metadata": {"name": 5}}]}}', b"\xff",
    b'{"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "u"}], "NumPDBViolations": -1}}}',
)  # fmt: skip
WATCH_STREAMS = (
    b"", b"\n\n\n", b"null\n", b"{}\n", b'{"type":"ADDED"}\n', b'{"type":"ADDED","object":null}\n', DEEP_JSON + b"\n",
    b'{"type":"ERROR","object":{"code":410}}\n', b'{"type":"ERROR","object":[]}\n', b'{"type":"BOOKMARK","object":{}}\n',
    b'{"type":"DELETED","object":{"metadata":{"name":"a"}}}\n', b'{"type":7,"object":{}}\n', b"\xff\xfe\n",
    b'{"type":"ADDED","object":{"metadata":{"name":"a"},"spec":{"priority":' + b"9" * 5_000 + b"}}}\n",
)  # fmt: skip
HTTP_ANSWERS = (
    b"", b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n", b"HTTP/1.1 100 Go\r\n\r\n" * 500,
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n3\r\nabc\r\n0\r\nx: y\r\n\r\nmore",
    b"HTTP/1.1 204 No\r\nContent-Length: 9\r\n\r\n", b"HTTP/2 200\r\n\r\n", b"\r\n\r\n", b"HTTP/1.1 200 OK\r\n a: b\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", b"HTTP/1.0 200 OK\r\n\r\nall", b"HTTP/1.1 101 x\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFF\r\nx", b"A" * 70_000,
)  # fmt: skip
PROFILE_LISTS = (
    b"", b"{}", b'{"items":null}', b'{"items":[null]}', b'{"items":[{}]}', b'{"items":[{"metadata":{}}]}', DEEP_JSON,
    b'{"items":[{"metadata":{"name":"a","uid":"u"},"spec":' + b'{"a":' * 2_000 + b"1" + b"}" * 2_000 + b"}]}",
    b'{"items":[{"metadata":{"name":"a","uid":"u"}},{"metadata":{"name":5,"uid":"u"}}]}',
    b'{"items":[{"metadata":{"name":"a","uid":"u","generation":' + b"9" * 5_000 + b"}}]}",
)  # fmt: skip


def tried_first(inputs: Iterable[Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that has the property tried on these inputs before any other."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for each in inputs:
            function = example(each)(function)
        return function

    return decorate
