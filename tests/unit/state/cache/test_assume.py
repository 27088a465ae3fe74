"""AssumedPods: deadlines exist only with a ttl and a finished binding."""

from scheduler.state.cache.assume import AssumedPods


def test_without_ttl_nothing_ever_expires():
    """The default of kube-scheduler 1.36."""
    pods = AssumedPods(None)
    pods.add("u1")
    pods.finish("u1", 0.0)

    assert pods.expired(1e12) == []
    assert "u1" in pods


def test_deadline_starts_when_the_binding_is_done():
    """A binding under way is never given up."""
    pods = AssumedPods(30.0)
    pods.add("u1")
    pods.add("u2")
    pods.finish("u1", 100.0)

    assert pods.expired(129.9) == []
    assert pods.expired(130.0) == ["u1"]
    assert frozenset({"u1", "u2"}) == pods.uids()


def test_confirmed_pod_has_no_deadline():
    """A late answer for a pod that is no longer assumed is nothing."""
    pods = AssumedPods(30.0)
    pods.add("u1")
    pods.discard("u1")
    pods.discard("u1")
    pods.finish("u1", 0.0)

    assert len(pods) == 0
    assert pods.expired(1e12) == []


def test_first_bound_pod_that_the_watch_has_not_shown():
    """Pods whose binding is under way do not count, nor those that were shown, or excused."""
    pods = AssumedPods(None)
    for uid in ("u1", "u2", "u3"):
        pods.add(uid)
    assert pods.unconfirmed_since_s is None

    pods.finish("u1", 10.0)
    pods.finish("u2", 11.0)
    assert pods.unconfirmed_since_s == 10.0
    pods.discard("u1")
    assert pods.unconfirmed_since_s == 11.0
    assert pods.excuse(11.0) == ["u2"]
    assert pods.unconfirmed_since_s is None
    assert "u2" in pods
