"""The election's state machine, call by call (client-go's leaderelection tests as a table)."""

import pytest

from scheduler.kube.election import Answer, Call, Election, Record, Verb, record_of, with_record

ME, OTHER = "me_1", "other_2"
WALL = "2026-01-31T08:15:00.000000Z"
LATER = "2026-01-31T08:15:09.000000Z"


def lease(holder=ME, *, duration_s=15, acquire=WALL, renew=WALL, transitions=3, version="7"):
    base = {
        "metadata": {"namespace": "kube-system", "name": "podium", "resourceVersion": version, "labels": {"a": "b"}}
    }
    return with_record(base, Record(holder, duration_s, acquire, renew, transitions))


@pytest.fixture
def election():
    return Election(identity=ME, namespace="kube-system", name="podium", duration_s=15.0)


def get(election, found, now_s):
    """Run begin and the answer to its GET."""
    call = election.begin(now_s, LATER)
    assert call.verb is Verb.GET
    return election.answer(call, Answer(found), now_s, LATER)


def lead(election, now_s=100.0):
    """Win the lease that nobody had."""
    call = election.begin(now_s, WALL)
    call = election.answer(call, Answer(is_not_found=True), now_s, WALL)
    assert election.answer(call, Answer(lease(transitions=0)), now_s, WALL) is True


def test_missing_lease_is_created_with_no_transitions(election):
    call = election.answer(election.begin(100.0, WALL), Answer(is_not_found=True), 100.0, WALL)
    assert call.verb is Verb.CREATE
    assert call.lease["metadata"] == {"namespace": "kube-system", "name": "podium"}
    assert record_of(call.lease) == Record(ME, 15, WALL, WALL, 0)
    assert election.answer(call, Answer(call.lease), 100.5, WALL) is True
    assert election.is_leader


def test_failed_create_means_not_leading(election):
    call = election.answer(election.begin(100.0, WALL), Answer(is_not_found=True), 100.0, WALL)
    assert election.answer(call, Answer(), 100.0, WALL) is False
    assert not election.is_leader


@pytest.mark.parametrize(
    ("found", "transitions", "acquire"),
    [
        pytest.param(lease(holder=""), 4, LATER, id="free lease is taken at once"),
        pytest.param(lease(holder=ME), 3, WALL, id="our own lease of before is kept with its acquire time"),
        pytest.param(lease(holder=OTHER, duration_s=0), 4, LATER, id="lease without a duration has expired"),
    ],
)
def test_lease_that_may_be_taken_is_updated(election, found, transitions, acquire):
    call = get(election, found, 100.0)
    assert isinstance(call, Call)
    assert call.verb is Verb.UPDATE
    assert record_of(call.lease) == Record(ME, 15, acquire, LATER, transitions)
    assert call.lease["metadata"] == found["metadata"], "version and labels of others stay"


def test_version_of_the_lease_before_it_was_ours_is_known(election):
    """All that the leader before us wrote is older."""
    assert election.found_version == ""
    get(election, lease(holder="", version="41"), 100.0)
    assert election.found_version == "41"
    call = get(election, lease(holder="", version="42"), 102.0)
    assert election.answer(call, Answer(lease(version="43")), 102.0, LATER) is True
    assert election.begin(104.0, LATER).is_optimistic
    assert election.found_version == "42"


@pytest.mark.parametrize("metadata", [None, {}, {"resourceVersion": 7}], ids=str)
def test_lease_without_a_readable_version_is_no_bug(election, metadata):
    """Something between us and the server may answer anything."""
    get(election, lease(holder="") | {"metadata": metadata}, 100.0)
    assert election.found_version == ""


def test_lease_that_we_have_made_had_no_version(election):
    """Nobody can have led before us."""
    lead(election)
    assert election.found_version == ""


def test_lease_of_another_is_respected_until_its_duration_passed_on_our_clock(election):
    """Times inside the record do not count, only when we saw it change."""
    found = lease(holder=OTHER, renew="1999-01-01T00:00:00.000000Z")
    assert get(election, found, 100.0) is False
    assert get(election, found, 114.9) is False
    assert get(election, found, 115.0).verb is Verb.UPDATE


def test_each_change_of_the_record_starts_the_wait_anew(election):
    assert get(election, lease(holder=OTHER), 100.0) is False
    assert get(election, lease(holder=OTHER, renew=LATER), 110.0) is False
    assert get(election, lease(holder=OTHER, renew=LATER), 124.9) is False
    assert get(election, lease(holder=OTHER, renew=LATER), 125.0).verb is Verb.UPDATE


def test_leader_renews_optimistically_and_falls_back_to_reading(election):
    lead(election)
    call = election.begin(102.0, LATER)
    assert (call.verb, call.is_optimistic) == (Verb.UPDATE, True)
    assert record_of(call.lease) == Record(ME, 15, WALL, LATER, 0)
    call = election.answer(call, Answer(), 102.0, LATER)
    assert call.verb is Verb.GET
    call = election.answer(call, Answer(lease(version="9")), 102.0, LATER)
    assert (call.verb, call.is_optimistic) == (Verb.UPDATE, False)
    assert call.lease["metadata"]["resourceVersion"] == "9"
    assert election.slow_renewals == 1


def test_expired_leader_reads_before_it_writes(election):
    """Frozen for longer than the lease: somebody else may have it."""
    lead(election, 100.0)
    assert election.begin(115.0, LATER).verb is Verb.GET


def test_failed_update_means_not_renewed(election):
    lead(election)
    call = election.answer(election.begin(102.0, LATER), Answer(), 102.0, LATER)
    call = election.answer(call, Answer(lease()), 102.0, LATER)
    assert election.answer(call, Answer(), 102.0, LATER) is False
    assert election.is_leader, "nobody else was seen"


def test_writes_are_valid_from_the_moment_the_renewal_was_sent(election):
    lead(election, 100.0)
    assert election.valid_until_s == 114.0
    call = election.begin(102.0, LATER)
    assert election.answer(call, Answer(lease()), 106.0, LATER) is True
    assert election.valid_until_s == 116.0, "sent at 102, answered at 106"


def test_seeing_another_holder_closes_the_gate(election):
    lead(election)
    call = election.answer(election.begin(102.0, LATER), Answer(), 102.0, LATER)
    assert election.answer(call, Answer(lease(holder=OTHER)), 102.0, LATER) is False
    assert election.valid_until_s == 0
    assert not election.is_leader


def test_unreadable_lease_is_an_error_and_not_a_win(election):
    with pytest.raises(ValueError, match="holderIdentity"):
        get(election, {"metadata": {}, "spec": {"holderIdentity": 5}}, 100.0)


def test_release_empties_the_holder_and_keeps_the_transitions(election):
    lead(election)
    call = election.release(lease(transitions=3, version="12"), 103.0, LATER)
    assert record_of(call.lease) == Record("", 1, LATER, LATER, 3)
    assert call.lease["metadata"]["resourceVersion"] == "12"
    election.released(call, call.lease, 103.0)
    assert not election.is_leader
    assert election.valid_until_s == 0


def test_lease_that_is_not_ours_any_more_is_not_released(election):
    lead(election)
    assert election.release(lease(holder=OTHER), 103.0, LATER) is None
    assert election.observed.holder == OTHER


def test_strategy_and_preferred_holder_are_written_only_if_set():
    record = Record(ME, 15, WALL, WALL, 1, "OldestEmulationVersion", OTHER)
    assert record_of(with_record({}, record)) == record
    assert set(with_record({}, Record(ME, 15, WALL, WALL, 1))["spec"]) == {
        "holderIdentity",
        "leaseDurationSeconds",
        "acquireTime",
        "renewTime",
        "leaseTransitions",
    }


@pytest.mark.parametrize(
    "edited",
    [
        pytest.param(None, id="deleted"),
        pytest.param({}, id="emptied"),
        pytest.param({"holderIdentity": "", "leaseDurationSeconds": 15}, id="nobody, but not as a leader releases it"),
        pytest.param({"holderIdentity": "garbage", "leaseDurationSeconds": 1}, id="somebody for a second"),
    ],
)
def test_holder_that_did_not_release_keeps_its_time(election, edited):
    """It may not know before its next renewal that somebody has edited the lease, and so still write."""
    assert get(election, lease(holder=OTHER), 100.0) is False
    found = None if edited is None else {**lease(), "spec": edited}
    for now_s in (101.0, 114.9):
        call = election.begin(now_s, LATER)
        assert election.answer(call, Answer(found, is_not_found=found is None), now_s, LATER) is False
    call = election.begin(116.0, LATER)
    taken = election.answer(call, Answer(found, is_not_found=found is None), 116.0, LATER)
    assert taken.verb is (Verb.CREATE if found is None else Verb.UPDATE)
    assert record_of(taken.lease).holder == ME


def test_released_lease_is_taken_at_once(election):
    """Also if it has had several holders meanwhile, whose ends we did not see."""
    assert get(election, lease(holder=OTHER), 100.0) is False
    assert get(election, lease(holder="third"), 101.0) is False
    assert get(election, lease(holder="", duration_s=1), 102.0).verb is Verb.UPDATE


def test_leader_takes_its_edited_lease_back(election):
    """It is the one who may write until its validity ends, so nobody has to be waited for."""
    lead(election)
    call = election.begin(102.0, LATER)
    assert election.answer(call, Answer(), 102.0, LATER).verb is Verb.GET
    again = election.answer(Call(Verb.GET, 102.0), Answer({**lease(), "spec": {}}), 102.0, LATER)
    assert record_of(again.lease).holder == ME
    election.answer(Call(Verb.GET, 102.0), Answer(is_not_found=True), 102.0, LATER)


def test_times_that_somebody_has_removed_are_not_sent_as_empty_texts(election):
    """The API server refuses them (400): the leader could never renew again."""
    lead(election)
    assert election.answer(election.begin(102.0, LATER), Answer(), 102.0, LATER).verb is Verb.GET
    found = lease(acquire="")
    call = election.answer(Call(Verb.GET, 102.0), Answer(found), 102.0, LATER)
    assert call.lease["spec"]["acquireTime"] is None
    assert call.lease["spec"]["renewTime"] == LATER


@pytest.mark.parametrize(
    ("holder", "is_taken_at_once"),
    [
        pytest.param("host_pod_1", True, id="an earlier container of our pod, which its kubelet has ended"),
        pytest.param("host_other_1", False, id="another pod on the same host"),
        pytest.param("host_1", False, id="a process that does not know its pod"),
    ],
)
def test_lease_of_an_earlier_container_of_the_same_pod_is_free(holder, is_taken_at_once):
    """Nobody writes under it any more, so nothing has to be waited for after a crash."""
    election = Election(
        identity="host_pod_2", namespace="kube-system", name="podium", duration_s=15.0, predecessors="host_pod_"
    )
    call = get(election, lease(holder=holder), 100.0)
    assert (call is not False) is is_taken_at_once
    if is_taken_at_once:
        assert call.verb is Verb.UPDATE
        assert record_of(call.lease).transitions == 4
