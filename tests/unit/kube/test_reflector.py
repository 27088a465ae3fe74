"""The reflector on a scripted API server: what intake hears, what the server is asked, how long we wait."""

import asyncio
import json
import random
from collections import Counter
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

import pytest

from scheduler.kube.errors import TransportError, api_error
from scheduler.kube.reflector import FORBIDDEN, NOT_SERVED, Reflector, ReflectorSettings
from scheduler.kube.starting import STARTING
from scheduler.kube.transport import JSON, Response
from scheduler.model.delta import Added, Changed, Rejected, Removed, Synced, Unavailable
from scheduler.model.node import Node
from scheduler.testing.clock import FakeClock

REFUSED = TransportError("connection refused", sent=False, refused=True)
NO_HANDSHAKE = TransportError("no connection: connection reset by peer", sent=False)
RESET = TransportError("connection reset", sent=True)


class ScriptEnd(Exception):  # noqa: N818  no error
    """The script has no step left; ends ``Reflector.run``."""


def node(name, version, uid=None):
    return {"metadata": {"name": name, "uid": uid or f"uid-{name}", "resourceVersion": str(version)}}


def line(kind, obj):
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


def added(name, version, uid=None):
    return line("ADDED", node(name, version, uid))


def modified(name, version, uid=None):
    return line("MODIFIED", node(name, version, uid))


def deleted(name, version, uid=None):
    return line("DELETED", node(name, version, uid))


def bookmark(version, *, initial_end=False):
    annotations = {"k8s.io/initial-events-end": "true"} if initial_end else {}
    return line("BOOKMARK", {"kind": "Node", "metadata": {"resourceVersion": str(version), "annotations": annotations}})


def error_line(code, reason, message="no"):
    return line("ERROR", {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message})


def listing(version, *items, more=""):
    body = {"kind": "NodeList", "metadata": {"resourceVersion": str(version), "continue": more}, "items": items}
    return Response(200, {}, json.dumps(body).encode())


def refusal(code, reason="", message="no", headers=None):
    body = {"kind": "Status", "code": code, "reason": reason, "message": message}
    return Response(code, headers or {}, json.dumps(body).encode())


class Stream:
    """One answer to a watch: chunks or errors, then the end after ``lasts_s``; ``hangs`` never ends."""

    def __init__(self, *chunks, lasts_s=60.0, hangs=False):
        self.chunks, self.lasts_s, self.hangs = chunks, lasts_s, hangs


class ScriptedServer:
    """A Transport that answers from a script, in order."""

    def __init__(self, clock, steps):
        self.clock, self.steps, self.calls = clock, list(steps), []
        self.on_call = lambda: None

    def _next(self, call, path):
        query = {key: values[0] for key, values in parse_qs(urlsplit(path).query).items()}
        query.pop("timeoutSeconds", None)
        query.pop("allowWatchBookmarks", None)
        if not self.steps:
            raise ScriptEnd
        self.calls.append((call, query))
        self.on_call()
        step = self.steps.pop(0)
        if isinstance(step, Exception):
            raise step
        return step

    async def request(self, method, path, *, body=None, content_type="", accept=JSON, timeout_s):
        step = self._next("list", path)
        assert isinstance(step, Response), f"the script has {step} where a list came"
        return step

    @asynccontextmanager
    async def stream(self, path, *, connect_timeout_s):
        step = self._next("watch", path)
        if isinstance(step, Response):
            raise api_error(step.status, step.headers, step.body)
        assert isinstance(step, Stream), f"the script has {step} where a watch came"
        yield self._chunks(step)

    async def _chunks(self, step):
        for chunk in step.chunks:
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk
        if step.hangs:
            await asyncio.Event().wait()
        self.clock.advance(step.lasts_s)

    async def close(self):
        pass


def in_short(delta):
    match delta:
        case Added(obj):
            return f"+{obj.name}@{obj.metadata.resource_version}"
        case Changed(old, obj):
            return f"{obj.name}@{old.metadata.resource_version}>{obj.metadata.resource_version}"
        case Removed(obj, is_stale):
            return f"-{obj.name}@{obj.metadata.resource_version}{'?' if is_stale else ''}"
        case Synced():
            return "synced"
        case Unavailable(_, reason):
            return f"unavailable: {reason}"
        case Rejected():
            return f"rejected {delta.name}@{delta.resource_version}"
    raise AssertionError(delta)


class Run:
    """A reflector that has been run to the end of its script."""

    def __init__(self, *steps, on_call=None, **settings):
        self.clock = FakeClock()
        self.server = ScriptedServer(self.clock, steps)
        self.told, self.delays = [], []
        self._waited_s = Counter()
        self.reflector = Reflector(
            Node,
            self.server,
            lambda delta: self.told.append(in_short(delta)),
            clock=self.clock,
            random=random.Random(3),
            sleep=self._sleep,
            settings=ReflectorSettings(**{"idle_limit_s": 0.02, **settings}),
        )
        if on_call is not None:
            self.server.on_call = lambda: on_call(self)
        with pytest.raises(ScriptEnd):
            asyncio.run(self.reflector.run())
        self.stats = self.reflector.stats

    async def _sleep(self, seconds):
        if seconds:
            self.delays.append(seconds)
            self._waited_s[len(self.server.calls)] += seconds
            self.clock.advance(seconds)

    def waited_before_call(self, index):
        return self._waited_s[index % len(self.server.calls)]

    @property
    def watched_from(self):
        return [query.get("resourceVersion") for call, query in self.server.calls if call == "watch"]

    @property
    def lists(self):
        return [query for call, query in self.server.calls if call == "list"]


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        pytest.param(
            [listing(10, node("a", 3), node("b", 4)), Stream(modified("a", 11) + deleted("b", 12) + added("c", 13))],
            ["+a@3", "+b@4", "synced", "a@3>11", "-b@12", "+c@13"],
            id="a list, then a watch",
        ),
        pytest.param([listing(10)], ["synced"], id="an empty list is synced as well"),
        pytest.param(
            [listing(10, node("a", 3)), Stream(modified("a", 11)), Stream(modified("a", 12))],
            ["+a@3", "synced", "a@3>11", "a@11>12"],
            id="a stream that the server ended goes on from its last version",
        ),
        pytest.param(
            [
                listing(10, node("a", 3), node("b", 4)),
                refusal(410, "Expired"),
                listing(20, node("b", 4), node("c", 15)),
            ],
            ["+a@3", "+b@4", "synced", "+c@15", "-a@3?"],
            id="a version refused as expired leads to a list that tells the missed deletion",
        ),
        pytest.param(
            [
                listing(10, node("a", 3)),
                Stream(modified("a", 11), error_line(410, "Expired"), modified("a", 12)),
                listing(20, node("a", 19)),
            ],
            ["+a@3", "synced", "a@3>11", "a@11>19"],
            id="410 in the middle of a stream ends it there",
        ),
        pytest.param(
            [listing(10, node("a", 3, "u1")), Stream(modified("a", 11, "u2"))],
            ["+a@3", "synced", "-a@3?", "+a@11"],
            id="another uid under the same name in one update",
        ),
        pytest.param(
            [listing(10, node("a", 3, "u1")), refusal(410), listing(20, node("a", 15, "u2"))],
            ["+a@3", "synced", "-a@3?", "+a@15"],
            id="another uid under the same name in a list",
        ),
        pytest.param(
            [
                listing(10, node("a", 3)),
                Stream(
                    added("a", 3)
                    + modified("a", 11)
                    + modified("a", 11)
                    + modified("a", 3)
                    + deleted("a", 12)
                    + deleted("a", 12)
                ),
            ],
            ["+a@3", "synced", "a@3>11", "-a@12"],
            id="repeated and older versions are told once",
        ),
        pytest.param(
            [
                listing(10, node("a", 3, "u1")),
                Stream(deleted("a", 11, "u1") + added("a", 12, "u2") + deleted("a", 11, "u1")),
            ],
            ["+a@3", "synced", "-a@11", "+a@12"],
            id="a late deletion of an earlier uid does not touch the new object",
        ),
        pytest.param(
            [listing(10, node("a", 3)), Stream(b"{not json\n" + modified("a", 12))],
            ["+a@3", "synced", "rejected @", "a@3>12"],
            id="a line that cannot be read is rejected and the stream goes on",
        ),
        pytest.param(
            [
                listing(10, node("a", 3), {"metadata": {"name": "bad", "resourceVersion": "4"}, "spec": 7}),
                Stream(modified("a", 12)),
                refusal(410),
                listing(20, node("a", 12), {"metadata": {"name": "bad", "resourceVersion": "4"}, "spec": 7}),
            ],
            ["+a@3", "rejected bad@4", "synced", "a@3>12"],
            id="an object that cannot be understood is rejected once a version",
        ),
        pytest.param(
            [listing(10, node("a", 3)), Stream(line("MODIFIED", {"metadata": node("a", 11)["metadata"], "spec": 7}))],
            ["+a@3", "synced", "rejected a@11"],
            id="a known object keeps its last good version when a new one is rejected",
        ),
        pytest.param(
            [listing(10, node("a", 3)), Stream(line("FUTURE", {}) + modified("a", 12))],
            ["+a@3", "synced", "rejected @", "a@3>12"],
            id="a line of a type from the future is rejected",
        ),
    ],
)
def test_intake_hears_the_whole_story(steps, told):
    """Every object that exists and every one that is gone is told, once."""
    assert Run(*steps).told == told


def test_first_list_is_a_quorum_read_in_pages():
    """No version is given, and each page continues the one before."""
    run = Run(listing(10, node("a", 1), more="t1"), listing(10, node("b", 2)), page_size=1)
    assert run.lists == [{"limit": "1"}, {"limit": "1", "continue": "t1"}]
    assert run.told == ["+a@1", "+b@2", "synced"]
    assert run.stats.objects == 2


def test_expired_continue_token_starts_a_whole_list():
    """What the abandoned list showed and the new one does not is gone."""
    run = Run(listing(10, node("a", 1), more="t1"), refusal(410, "Expired"), listing(20, node("b", 15)), page_size=1)
    assert run.lists == [{"limit": "1"}, {"limit": "1", "continue": "t1"}, {}]
    assert run.told == ["+a@1", "+b@15", "-a@1?", "synced"]


def test_resumes_from_bookmarks():
    """A bookmark moves the version from which the next watch starts, and tells intake nothing."""
    run = Run(listing(10), Stream(bookmark(25)), Stream(bookmark(31)))
    assert run.watched_from == ["10", "25"]
    assert run.stats.last_resource_version == "31"
    assert run.told == ["synced"]


def test_cut_streams_resume_without_a_list():
    """Whether a stream is cut between lines, in a line or by a reset: nothing is lost and nothing is listed."""
    whole = modified("a", 12)
    run = Run(
        listing(10, node("a", 3)),
        Stream(modified("a", 11), whole[:20]),
        Stream(whole, RESET),
        Stream(modified("a", 13)[:7], modified("a", 13)[7:]),
    )
    assert run.told == ["+a@3", "synced", "a@3>11", "a@11>12", "a@12>13"]
    assert run.watched_from == ["10", "11", "12"]
    assert (run.stats.lists, run.stats.streams_cut) == (1, 2)
    assert all(delay <= 0.2 for delay in run.delays)


def test_streams_that_end_at_once_do_not_make_us_spin():
    """Empty short streams are opened with growing delays; a healthy one resets them."""
    run = Run(listing(10), *[Stream(lasts_s=0.0)] * 4, Stream(lasts_s=300.0), Stream(lasts_s=0.0))
    assert [0.1 <= d <= 0.2 * 2**i for i, d in enumerate(run.delays[:4])] == [True] * 4
    assert run.delays[3] >= 0.8
    assert run.delays[4] <= 0.2


def test_silent_stream_is_given_up_and_counted():
    """Without a byte for the limit the stream is dead; the version is compared before it is opened again."""
    run = Run(listing(10), Stream(bookmark(11), hangs=True), listing(12), Stream(bookmark(13)))
    assert run.stats.streams_silent == 1
    assert run.watched_from == ["10", "11"]
    assert run.lists == [{"limit": "500"}, {"limit": "1"}]
    assert run.stats.lists == 1


@pytest.mark.parametrize(
    "away",
    [
        pytest.param(REFUSED, id="nothing listens"),
        pytest.param(NO_HANDSHAKE, id="what stands before the server gives us no connection"),
    ],
)
def test_outage_is_retried_quickly_at_first(away):
    """A server without a connection: every half second for 30 s, then with delays up to 5 s."""
    run = Run(*[away] * 100, listing(10))
    start = 0.0
    for delay in run.delays:
        assert delay <= (0.5 if start < 30.0 else 5.0)
        start += delay
    assert max(run.delays) > 2.5
    assert run.told == ["synced"]


def test_server_that_starts_is_asked_every_second():
    """However many requests it cannot answer yet: the seconds it asks for, and no back-off on top."""
    starting = refusal(503, "ServiceUnavailable", STARTING, {"retry-after": "1"})
    assert Run(*[starting] * 12, listing(10)).delays == [1.0] * 12


@pytest.mark.parametrize(
    "useless",
    [
        pytest.param(refusal(410, "Expired"), id="expired"),
        pytest.param(Stream(error_line(410, "Expired"), lasts_s=0.0), id="expired, in the stream"),
        pytest.param(refusal(504, "Timeout", "Too large resource version: 10, current: 3"), id="rewound"),
    ],
)
def test_version_that_an_outage_made_useless_is_answered_by_a_list_at_once(useless):
    """The back-off that the outage has made long is not waited for: we decide by what was true before it."""
    outage = [Stream(RESET, lasts_s=60.0), *[RESET] * 6, listing(10)]
    run = Run(listing(10, node("a", 3)), Stream(bookmark(10)), *outage, useless, listing(20, node("a", 15)))
    assert run.told == ["+a@3", "synced", "a@3>15"]
    assert max(run.delays) > 2.5
    assert run.waited_before_call(-1) == 0.0


def test_server_that_calls_its_own_lists_expired_is_asked_ever_more_slowly():
    """A list, a version that is of no use, a list: with delays that double to 5 s."""
    run = Run(listing(10), Stream(bookmark(11)), *[refusal(410), listing(12)] * 8)
    waits = [run.waited_before_call(index) for index in range(3, 3 + 2 * 8, 2)]
    assert waits[0] == 0.0
    bounds = [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert all(bound / 2 <= wait <= bound for wait, bound in zip(waits[1:], bounds, strict=True))


def test_other_failures_back_off():
    """From 0.2 s doubling to 5 s, each spread over its upper half."""
    run = Run(*[RESET] * 8, listing(10))
    bounds = [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0]
    assert all(bound / 2 <= delay <= bound for delay, bound in zip(run.delays, bounds, strict=True))


def test_watch_resumes_after_an_outage():
    """The same server came back: no list, only a comparison of versions."""
    run = Run(listing(10, node("a", 3)), Stream(RESET), REFUSED, listing(10), Stream(modified("a", 11)))
    assert run.told == ["+a@3", "synced", "a@3>11"]
    assert run.stats.lists == 1


def test_restored_server_is_listed_again():
    """A server that came back with an older state is believed, and its objects replace ours."""
    run = Run(listing(90, node("a", 80), node("b", 85)), REFUSED, listing(50), listing(50, node("a", 40)), Stream())
    assert run.told == ["+a@80", "+b@85", "synced", "a@80>40", "-b@85?"]
    assert run.watched_from == ["90", "50"]
    assert run.stats.relists == 1


def test_too_large_version_is_listed_again():
    """The server says itself that our version is from its future."""
    run = Run(
        listing(90), refusal(504, "Timeout", "Too large resource version: 90, current: 50"), listing(50), Stream()
    )
    assert run.watched_from == ["90", "50"]


def test_retry_after_is_obeyed():
    """An overloaded server says how long to stay away."""
    run = Run(refusal(429, "TooManyRequests", headers={"retry-after": "7"}), listing(10))
    assert run.delays == [7.0]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        pytest.param(404, NOT_SERVED.format(kind="Node", group_version="v1"), id="the server does not have the kind"),
        pytest.param(403, FORBIDDEN.format(kind="Node", plural="nodes"), id="RBAC refuses"),
    ],
)
def test_unavailable_kind_is_told_once_and_retried_slowly(code, reason):
    """An optional kind is asked for ever more rarely, and is synced when it appears."""
    run = Run(*[refusal(code)] * 9, listing(10, node("a", 3)), optional=True)
    assert run.told == [f"unavailable: {reason}", "+a@3", "synced"]
    assert 30.0 <= run.delays[-1] <= 60.0
    assert run.stats.unavailable_reason == ""
    assert run.stats.is_synced


def test_needed_kind_is_retried_every_few_seconds():
    """A kind that we cannot live without is asked for again within 5 s."""
    assert max(Run(*[refusal(403)] * 9, listing(10)).delays) <= 5.0


def test_kind_that_is_taken_away_is_synced_again_later():
    """Rights that are withdrawn while we watch make the kind unavailable, and a list makes up for the gap."""
    run = Run(listing(10, node("a", 3)), refusal(403), listing(20))
    assert run.told[:2] == ["+a@3", "synced"]
    assert run.told[2].startswith("unavailable: ")
    assert run.told[3:] == ["-a@3?", "synced"]


def test_streamed_list():
    """The initial objects come as a stream that goes on as the watch."""
    run = Run(
        Stream(added("a", 3) + added("b", 4), bookmark(10, initial_end=True) + modified("a", 11)),
        Stream(modified("a", 12)),
        streamed=True,
    )
    assert run.told == ["+a@3", "+b@4", "synced", "a@3>11", "a@11>12"]
    assert run.server.calls[0] == (
        "watch",
        {"watch": "true", "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"},
    )
    assert run.watched_from == [None, "11"]


def test_streamed_list_that_is_cut_starts_again():
    """Objects of an unfinished stream that are gone in the next one are told as deletions."""
    run = Run(Stream(added("a", 3), RESET), Stream(added("b", 4) + bookmark(10, initial_end=True)), streamed=True)
    assert run.told == ["+a@3", "+b@4", "-a@3?", "synced"]


def test_server_without_streamed_lists_is_listed_in_pages():
    """An older server refuses the parameters once, and is not asked again."""
    run = Run(refusal(422, "Invalid"), listing(10, node("a", 3)), Stream(), streamed=True)
    assert run.told == ["+a@3", "synced"]
    assert run.delays == []


def test_staleness_is_the_time_without_a_word_from_the_server():
    """Chunks reset it; waiting and failing do not."""
    run = Run(listing(10), Stream(bookmark(11), lasts_s=40.0), RESET)
    assert run.reflector.staleness_s == pytest.approx(40.0 + sum(run.delays))


def test_server_that_answers_all_but_watches_is_not_heard():
    """Something between may swallow long requests only; that it has no newer version is no sign of the watch."""
    run = Run(listing(10), Stream(bookmark(11), lasts_s=40.0), RESET, listing(11), RESET, listing(11), RESET)
    assert [call for call, _ in run.server.calls] == ["list", "watch", *("watch", "list") * 2, "watch"]
    assert run.reflector.staleness_s == pytest.approx(40.0 + sum(run.delays))


def test_relist_on_request_interrupts_a_quiet_stream():
    """The comparer asks for a list when it finds that an event was lost."""

    def ask(run):
        if len(run.server.calls) == 2:
            asyncio.get_running_loop().call_later(0.001, run.reflector.request_relist)

    run = Run(listing(10, node("a", 3)), Stream(hangs=True), listing(12), Stream(), on_call=ask, idle_limit_s=5.0)
    assert run.told == ["+a@3", "synced", "-a@3?"]
    assert (run.stats.relists, run.stats.stale_deletions, run.stats.streams_silent) == (1, 1, 0)


def test_an_object_that_cannot_be_understood_is_known_to_be_missing():
    """Until a good version comes, or it is gone."""
    bad = {"metadata": {"name": "a", "uid": "uid-a", "resourceVersion": "3"}, "status": {"allocatable": {"cpu": "x"}}}
    run = Run(listing(10, bad, node("b", 4)), Stream(), REFUSED)
    assert run.reflector.is_rejected("a")
    assert not run.reflector.is_rejected("b")
    run = Run(listing(10, bad), Stream(modified("a", 11)), REFUSED)
    assert not run.reflector.is_rejected("a")


def test_relist_may_be_asked_for_while_the_stream_is_being_ended():
    """Two who find the same thing out at the same time."""

    async def ask_twice(run):
        await asyncio.sleep(0.001)
        run.reflector.request_relist()
        await asyncio.sleep(0)
        assert run.reflector.request_relist() == 2

    asked = []

    def ask(run):
        if len(run.server.calls) == 2:
            asked.append(asyncio.get_running_loop().create_task(ask_twice(run)))

    run = Run(listing(10, node("a", 3)), Stream(hangs=True), listing(12), Stream(), on_call=ask, idle_limit_s=5.0)
    assert run.told == ["+a@3", "synced", "-a@3?"]
    assert asked[0].exception() is None
    assert (run.stats.relists, run.stats.streams_silent) == (1, 0)


def test_list_under_way_does_not_serve_a_request_for_a_fresh_one():
    """A new leader must see what the old one did until a moment ago, which a list that began before may lack."""
    served = []

    def ask(run):
        if len(run.server.calls) == 1:
            assert run.reflector.request_relist() == 1
        served.append(run.reflector.stats.relists_served)

    run = Run(listing(10, node("a", 3)), listing(12, node("a", 3), node("b", 11)), Stream(), on_call=ask)
    assert run.told == ["+a@3", "synced", "+b@11"]
    assert (run.stats.lists, served[:3]) == (2, [0, 0, 1])


def test_newest_version_is_read_beside_the_stream():
    """A new leader compares it with what the watch has shown."""
    heard = []

    async def read(run):
        reflector = run.reflector
        heard.append((reflector.is_streaming, reflector.num_objects, await reflector.read_version(1.0)))
        reflector.request_relist()

    def ask(run):
        if len(run.server.calls) == 2:
            asyncio.get_running_loop().call_later(0.001, lambda: asyncio.ensure_future(read(run)))

    steps = [listing(10, node("a", 3)), Stream(added("b", 11), hangs=True), listing(17, node("a", 3)), listing(18)]
    run = Run(*steps, on_call=ask, idle_limit_s=5.0)
    assert heard == [(True, 2, "17")]
    assert run.server.calls[2] == ("list", {"limit": "1"})
    assert not run.reflector.is_streaming


def test_garbage_instead_of_a_list_is_retried():
    """A proxy's page with status 200 is not taken for an empty cluster."""
    run = Run(Response(200, {}, b"<html>hello</html>"), Response(200, {}, b"{}"), listing(10, node("a", 3)))
    assert run.told == ["+a@3", "synced"]
    assert run.stats.failures == 2
