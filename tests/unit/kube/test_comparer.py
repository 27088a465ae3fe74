"""The comparer of store and API server: what is lost is found, what is only under way is not."""

import asyncio
import json
from urllib.parse import parse_qs, urlsplit

import pytest

from scheduler.kube.comparer import METADATA_ONLY, Difference, Drift, ServerComparer
from scheduler.kube.errors import ApiError, ProtocolError
from scheduler.kube.transport import Response
from scheduler.model.meta import ObjectMeta
from scheduler.model.node import Node
from scheduler.state.store import Store

GRACE_S = 7.0


def meta(name, version, uid=None):
    return {"metadata": {"name": name, "uid": uid or f"uid-{name}", "resourceVersion": str(version)}}


def listing(version, *items, more=""):
    body = {"metadata": {"resourceVersion": str(version), "continue": more}, "items": items}
    return Response(200, {}, json.dumps(body).encode())


def known(name, version, uid=None):
    return Node(ObjectMeta(name=name, uid=uid or f"uid-{name}", resource_version=str(version)))


class Run:
    """One comparison: what the server lists, what the store holds, and what happens in the grace."""

    def __init__(self, *answers, store=(), rejected=(), watched="10", meanwhile=()):
        self.answers, self.asked, self.slept = list(answers), [], []
        self.store = Store()
        for obj in store:
            self.store.put(obj)
        self.rejected, self.meanwhile = set(rejected), meanwhile
        self.is_caught_up = False
        comparer = ServerComparer(
            Node,
            self,
            store=self.store,
            is_rejected=self.rejected.__contains__,
            watched_version=lambda: watched,
            caught_up=self.caught_up,
            grace_s=GRACE_S,
            sleep=self.sleep,
        )
        self.found = asyncio.run(comparer.compare())
        assert self.answers == [], "the server was asked less often than expected"

    async def request(self, method, path, *, accept, timeout_s):
        assert (method, accept) == ("GET", METADATA_ONLY)
        self.asked.append({key: values[0] for key, values in parse_qs(urlsplit(path).query).items()})
        return self.answers.pop(0)

    async def sleep(self, seconds):
        if seconds:
            self.slept.append(seconds)
            for change in self.meanwhile:
                change(self)

    async def caught_up(self):
        self.is_caught_up = True


def put(obj):
    return lambda run: run.store.put(obj)


def remove(obj):
    return lambda run: run.store.remove(obj)


def drift(difference, name, *, known_version="", listed_version=""):
    uid = f"uid-{name}"
    return Drift(
        difference,
        name,
        (uid, known_version) if known_version else ("", ""),
        (uid, listed_version) if listed_version else ("", ""),
    )


A3, A4, A20 = known("a", 3), known("a", 4), known("a", 20)


@pytest.mark.parametrize(
    ("listed", "store"),
    [
        pytest.param([], [], id="nothing anywhere"),
        pytest.param([meta("a", 3)], [A3], id="the same version"),
        pytest.param([meta("a", 3)], [A4], id="the watch has told a newer version since"),
        pytest.param([meta("a", 3)], [known("a", 20, "uid-2")], id="deleted and created anew since the list"),
        pytest.param([], [A20], id="created since the list"),
    ],
)
def test_a_store_that_is_right_or_ahead_costs_one_list(listed, store):
    """No grace, no second list."""
    run = Run(listing(12, *listed), store=store)
    assert run.found == []
    assert run.slept == []


@pytest.mark.parametrize(
    ("listed", "store", "meanwhile"),
    [
        pytest.param([meta("a", 3)], [], put(A3), id="an addition"),
        pytest.param([meta("a", 4)], [A3], put(A4), id="a change"),
        pytest.param([meta("a", 11)], [A3], put(A4), id="a change on the way to a later one"),
        pytest.param([meta("a", 4)], [A3], remove(A3), id="a deletion after a change"),
        pytest.param([], [A3], remove(A3), id="a deletion"),
        pytest.param([meta("a", 3)], [], lambda run: run.rejected.add("a"), id="an object that nobody understands"),
    ],
)
def test_what_was_under_way_is_no_drift(listed, store, meanwhile):
    """It arrives within the grace, and what has arrived is taken in before the store is looked at again."""
    run = Run(listing(12, *listed), store=store, meanwhile=[meanwhile])
    assert run.found == []
    assert run.slept == [GRACE_S]
    assert run.is_caught_up


@pytest.mark.parametrize(
    ("answers", "store", "expected"),
    [
        pytest.param(
            [listing(12, meta("a", 3)), listing(14, meta("a", 13))],
            [],
            drift(Difference.MISSED, "a", listed_version="3"),
            id="an addition was lost",
        ),
        pytest.param(
            [listing(12, meta("a", 4))],
            [A3],
            drift(Difference.OUTDATED, "a", known_version="3", listed_version="4"),
            id="a change was lost",
        ),
        pytest.param(
            [listing(12, meta("a", 4, "uid-2"))],
            [A3],
            Drift(Difference.OUTDATED, "a", ("uid-a", "3"), ("uid-2", "4")),
            id="deleted and created anew, and both were lost",
        ),
        pytest.param(
            [listing(12)],
            [A3],
            drift(Difference.REDUNDANT, "a", known_version="3"),
            id="a deletion was lost",
        ),
    ],
)
def test_what_was_lost_is_found(answers, store, expected):
    """Each kind of line that a watch can lose; others that are right are not named."""
    answers = [_with_another(answer) for answer in answers]
    run = Run(*answers, store=[*store, known("z", 2)])
    assert run.found == [expected]


def test_a_pod_that_came_and_went_in_the_grace_was_not_lost():
    """It is listed and unknown, but the second list does not show it any more."""
    run = Run(listing(12, meta("a", 3)), listing(15))
    assert run.found == []


def test_a_successor_under_the_name_does_not_speak_for_the_one_that_went():
    """Another UID in the second list: the first one came and went."""
    run = Run(listing(12, meta("a", 3)), listing(15, meta("a", 14, "uid-2")))
    assert run.found == []


@pytest.mark.parametrize("store", [[], [A3]], ids=["unknown", "known in an older version"])
def test_objects_that_cannot_be_understood_are_no_drift(store):
    """They are known to be missing, and have been told of."""
    assert Run(listing(12, meta("a", 4)), store=store, rejected=["a"]).found == []


def test_a_server_that_was_put_back_puts_everything_in_doubt():
    """Its list is older than what its watch had told: versions that are merely ahead would hide that for ever."""
    run = Run(listing(9, meta("a", 3)), store=[A4], watched="10")
    assert run.found == [Drift(Difference.OUTDATED, "", ("", "10"), ("", "9"))]


def test_all_pages_are_one_list_and_a_list_that_begins_again_counts_alone():
    """410 on the second page: the server has forgotten the moment, the whole is read anew."""
    expired = Response(410, {}, b'{"kind":"Status","reason":"Expired"}')
    run = Run(listing(12, meta("gone", 3), more="t"), expired, listing(14, meta("a", 3), meta("b", 5)),
              store=[A3, known("b", 5)])  # fmt: skip
    assert run.found == []
    assert [q.get("continue") for q in run.asked] == [None, "t", None]


def test_the_read_is_as_new_as_the_moment_of_asking():
    """resourceVersion=0 could be answered by the cache that lost the event."""
    run = Run(listing(12))
    assert run.asked == [{"limit": "1000"}]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        pytest.param(Response(403, {}, b"{}"), ApiError, id="refused"),
        pytest.param(Response(200, {}, b"<html>"), ProtocolError, id="no JSON"),
        pytest.param(Response(200, {}, b'{"items":[]}'), ProtocolError, id="no list"),
        pytest.param(
            Response(200, {}, b'{"metadata":{"resourceVersion":"1"},"items":[{}]}'), ProtocolError, id="no object"
        ),
    ],
)
def test_an_answer_that_is_no_list_is_an_error(answer, error):
    """Nothing is concluded from it."""
    with pytest.raises(error):
        Run(answer, store=[A3])


def _with_another(answer):
    body = json.loads(answer.body)
    return listing(body["metadata"]["resourceVersion"], *body["items"], meta("z", 2))
