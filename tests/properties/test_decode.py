"""Decoding never raises and never lets a bad quantity through."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.model.decode import decode_list, decode_object, decode_watch_line
from scheduler.model.delta import Rejected
from scheduler.model.kinds import KINDS
from scheduler.model.pod import Pod

kinds = st.sampled_from(list(KINDS))
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
names = st.sampled_from(
    [
        "metadata",
        "name",
        "uid",
        "labels",
        "spec",
        "status",
        "containers",
        "initContainers",
        "resources",
        "requests",
        "cpu",
        "overhead",
        "affinity",
        "taints",
        "capacity",
        "allocatable",
        "devices",
        "items",
        "type",
        "object",
    ]
)
plain = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=5),
    max_leaves=15,
)


@given(kinds, st.binary(max_size=200))
def test_no_bytes_make_decoding_raise(kind: Any, data: bytes) -> None:
    """Arbitrary bytes."""
    decode_object(kind, data)
    decode_list(kind, data)
    decode_watch_line(kind, data)


@settings(max_examples=300)
@given(kinds, plain)
def test_no_json_makes_decoding_raise(kind: Any, manifest: Any) -> None:
    """Well-formed JSON of the wrong shape."""
    data = json.dumps({"metadata": {"name": "a"}, **manifest} if isinstance(manifest, dict) else manifest).encode()
    decode_object(kind, data)
    decode_list(kind, data)
    decode_watch_line(kind, data)


@given(st.dictionaries(st.sampled_from(["cpu", "memory", "a.b/c"]), st.text("0123456789.-emKi", max_size=6)))
def test_a_pod_that_decodes_has_requests(requests: dict[str, str]) -> None:
    """Behind decode nobody needs to expect a bad or negative quantity."""
    spec = {"containers": [{"resources": {"requests": requests}}], "overhead": requests}
    decoded = decode_object(Pod, json.dumps({"metadata": {"name": "a"}, "spec": spec}).encode())
    if not isinstance(decoded, Rejected):
        assert all(amount >= 0 for amount in decoded.requests.values())
        assert all(amount >= 0 for amount in decoded.non_zero_requests.values())
