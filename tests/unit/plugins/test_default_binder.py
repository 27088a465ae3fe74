"""DefaultBinder hands the pod to the engine's bind call."""

from scheduler.api import CycleState
from scheduler.plugins.default_binder import NAME
from scheduler.testing import pod


def test_bind_goes_to_the_engine(bench):
    """What the engine's awaitable says is the answer."""
    plugin = bench.make(NAME)
    assert plugin.bind(CycleState(), pod("p").obj(), "n1") == "an awaitable"
    assert bench.handle.bound == [("p", "n1")]
    assert not plugin.events()
