"""AssumeCache: facts of upstream's passive_assume_cache_test.go, and a law."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.model.storage import PersistentVolume
from scheduler.plugins.volume_binding.assume_cache import AssumeCache, AssumeError
from scheduler.state.store import Store
from scheduler.testing import obj


def volume(name, version, note=""):
    meta = {"name": name, "resourceVersion": str(version), "annotations": {"note": note} if note else {}}
    return obj(PersistentVolume, {"metadata": meta})


@pytest.fixture
def store():
    made = Store()
    made.put(volume("a", 1))
    return made


@pytest.fixture
def cache(store):
    return AssumeCache(store, "persistentvolumes")


def test_assumed_counts_until_the_watch_moves_on(store, cache):
    """The watch's version wins, whether or not it is what was assumed."""
    assumed = volume("a", 1, "assumed")
    cache.assume(assumed)
    assert cache.get("a") is assumed
    assert list(cache.list()) == [assumed]
    assert cache.get_watched("a").annotations == {}
    store.put(volume("a", 2))
    assert cache.get("a").metadata.resource_version == "2"
    assert [v.metadata.resource_version for v in cache.list()] == ["2"]


def test_restore(store, cache):
    """Takes back what was assumed on the same version, and nothing else."""
    first = volume("a", 1, "first")
    cache.assume(first)
    cache.restore(volume("a", 2))
    assert cache.get("a") is first
    cache.restore(first)
    assert cache.get("a") is store.get("a")
    cache.restore(first)


def test_assume_again(cache):
    """A later assumption on the same version replaces an earlier one."""
    second = volume("a", 1, "second")
    cache.assume(volume("a", 1, "first"))
    cache.assume(second)
    assert cache.get("a") is second


@pytest.mark.parametrize(
    ("assumed", "text"),
    [
        pytest.param(volume("b", 1), 'persistentvolumes "b" not found', id="gone"),
        pytest.param(volume("a", 2), '"a" is out of sync (stored: 1, assume: 2)', id="another version"),
    ],
)
def test_assumptions_on_nothing(cache, assumed, text):
    """What is not as it was when the decision was made cannot be assumed."""
    with pytest.raises(AssumeError) as caught:
        cache.assume(assumed)
    assert str(caught.value) == text


def test_missing_object(store, cache):
    """An assumed object that is deleted is gone."""
    cache.assume(volume("a", 1, "assumed"))
    store.remove(store.get("a"))
    assert cache.get("a") is None
    assert list(cache.list()) == []


@given(st.lists(st.tuples(st.integers(0, 199), st.booleans()), max_size=400))
def test_stale_assumptions_do_not_pile_up(steps):
    """However objects are assumed and confirmed, at most about twice the assumptions that still count are kept."""
    store, cache = Store(), None
    for i in range(200):
        store.put(volume(f"v{i}", 1))
    cache = AssumeCache(store, "persistentvolumes")
    for i, confirmed in steps:
        known = store.get(f"v{i}")
        cache.assume(known)
        if confirmed:
            version = str(int(known.metadata.resource_version) + 1)
            meta = msgspec.structs.replace(known.metadata, resource_version=version)
            store.put(msgspec.structs.replace(known, metadata=meta))
    live = len({i for i, confirmed in steps if not confirmed})
    assert len(cache) <= max(64, 2 * live + 1)
