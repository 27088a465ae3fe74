"""Store: the newest version of each object, and a version number that tells whether anything changed."""

from scheduler.model.pod import Pod
from scheduler.state.store import Store, Stores
from scheduler.testing import pod


def test_newest_version_is_kept():
    """Objects are known by key; a removal of an older namesake leaves the newer one."""
    store: Store[Pod] = Store()
    old, new = pod("a").uid("1").obj(), pod("a").uid("2").obj()
    store.put(old)
    store.put(new)
    store.remove(old)
    assert store.get("default/a") is new
    assert list(store.list()) == [new]
    store.remove(new)
    assert store.get("default/a") is None
    assert len(store) == 0


def test_version_grows_with_every_change():
    """Who keeps what he worked out of the objects compares the version; a removal without effect is no change."""
    store = Stores().of(Pod)
    seen = [store.version]
    for change in (store.put, store.put, store.remove):
        change(pod("a").uid("1").obj())
        seen.append(store.version)
    assert seen == sorted(set(seen))
    store.remove(pod("a").uid("1").obj())
    assert store.version == seen[-1]
