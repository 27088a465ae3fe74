"""Extenders of the configuration: which objects are kept whole for them."""

import json

import pytest

from scheduler.app.extenders import originals_of
from scheduler.config.types import Extender, SchedulerConfiguration
from scheduler.model.decode import decode_watch_line
from scheduler.model.meta import Namespace
from scheduler.model.node import Node
from scheduler.model.pod import Pod
from scheduler.testing import node, pod

PROFILES = {"default-scheduler"}
BINDS = Extender(url_prefix="http://b", bind_verb="bind")
FILTERS = Extender(url_prefix="http://f", filter_verb="filter")
CACHES = Extender(url_prefix="http://c", prioritize_verb="rank", node_cache_capable=True)
PREEMPTS = Extender(url_prefix="http://p", preempt_verb="preempt", node_cache_capable=True)


def keeps(kind, extenders, made):
    """Say whether the object's text is kept."""
    originals = originals_of(kind, SchedulerConfiguration(extenders=extenders), PROFILES)
    if originals is None:
        return None
    line = json.dumps({"type": "ADDED", "object": made.manifest()}).encode()
    decoded = decode_watch_line(kind, line)
    originals.of_line(decoded.obj, line)
    return decoded.obj.original is not None


@pytest.mark.parametrize(
    ("kind", "extenders", "made", "kept"),
    [
        pytest.param(Pod, (), pod(), None, id="no extenders"),
        pytest.param(Pod, (BINDS,), pod(), None, id="a binder gets names only"),
        pytest.param(Pod, (FILTERS,), pod(), True, id="pending pod"),
        pytest.param(Pod, (PREEMPTS,), pod(), True, id="pending pod for the preempt verb"),
        pytest.param(Pod, (FILTERS,), pod().on("n"), False, id="running pod"),
        pytest.param(Pod, (FILTERS,), pod().scheduler("other"), False, id="pod of another scheduler"),
        pytest.param(Node, (FILTERS,), node(), True, id="node"),
        pytest.param(Node, (CACHES, PREEMPTS), node(), None, id="extenders that keep nodes themselves"),
    ],
)
def test_what_is_kept(kind, extenders, made, kept):
    """No more than extenders may be shown."""
    assert keeps(kind, extenders, made) is kept


def test_other_kinds():
    """Extenders see pods and nodes only."""
    assert originals_of(Namespace, SchedulerConfiguration(extenders=(FILTERS,)), PROFILES) is None
