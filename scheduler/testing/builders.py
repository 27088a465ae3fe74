"""Builders of test objects: ``pod("web").requests(cpu="2").obj()``, ``node("n1").capacity(cpu="4").obj()``.

Builders are immutable, so one can be the start of many objects. ``obj()`` encodes the manifest and decodes it as if it
had come from the API server; ``manifest()`` gives the dictionary for tests that talk to a server. ``obj(kind, {…})``
does the same for kinds without a builder.
"""

from scheduler.testing.manifests import Builder, obj, stable_uid
from scheduler.testing.node_builder import NodeBuilder, node
from scheduler.testing.pod_builder import PodBuilder, pod
from scheduler.testing.terms import (
    absent,
    all_of,
    exists,
    field_in,
    field_not_in,
    gt,
    in_,
    lt,
    not_in,
    selector,
)

__all__ = [
    "Builder",
    "NodeBuilder",
    "PodBuilder",
    "absent",
    "all_of",
    "exists",
    "field_in",
    "field_not_in",
    "gt",
    "in_",
    "lt",
    "node",
    "not_in",
    "obj",
    "pod",
    "selector",
    "stable_uid",
]
