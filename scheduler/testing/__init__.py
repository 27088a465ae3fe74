"""Test support for plugin authors, and the embedded API server.

The engine in memory (``Harness``), builders of pods and nodes, words for selectors, and a clock that tests move by
hand. SemVer covers what is exported here.
"""

from scheduler.testing.builders import (
    NodeBuilder,
    PodBuilder,
    absent,
    all_of,
    exists,
    field_in,
    field_not_in,
    gt,
    in_,
    lt,
    node,
    not_in,
    obj,
    pod,
    selector,
    stable_uid,
)
from scheduler.testing.clock import FakeClock
from scheduler.testing.harness import Harness

__all__ = [
    "FakeClock",
    "Harness",
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
