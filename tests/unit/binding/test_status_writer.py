"""StatusWriter: newest word first come, bounded, and in order for each pod."""

import asyncio

import pytest

from scheduler.binding.status_writer import RETRY_S, StatusWriter
from scheduler.kube.errors import TransportError
from scheduler.model.meta import Condition
from scheduler.state.outbox import PatchPodStatus
from scheduler.testing import pod


def pod_named(name):
    return pod(name).uid(f"uid-{name}").obj()


def word(name, message="no room", nominated=None):
    condition = Condition(type="PodScheduled", status="False", reason="Unschedulable", message=message)
    return PatchPodStatus(pod_named(name), condition if message else None, nominated)


class Bench:
    def __init__(self, transport, clock, **options):
        self.transport = transport
        self.dropped = 0
        self.may_write = True
        self.writer = StatusWriter(
            transport, clock=clock, may_write=lambda seconds: self.may_write, on_dropped=self._drop, **options
        )

    def _drop(self):
        self.dropped += 1

    @property
    def told(self):
        """Return (pod, message, nomination) of each patch that was sent."""
        found = []
        for _, path, body in self.transport.sent:
            conditions = body["status"].get("conditions", [{}])
            nominated = body["status"].get("nominatedNodeName", "-")
            found.append((path.split("/")[-2], conditions[0].get("message", "-"), nominated))
        return found

    def play(self, script):
        """Run the writer while the script acts, until nothing is left to write."""

        async def run():
            task = asyncio.create_task(self.writer.run())
            await asyncio.sleep(0)
            await script()
            for _ in range(1000):
                if not len(self.writer) and not self.transport.under_way:
                    break
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(run())


@pytest.fixture
def bench_of(server, clock):
    return lambda *answers, **options: Bench(server(*answers), clock, **options)


def test_pods_are_told(bench_of):
    """One patch a pod, by UID, on the status sub-resource."""
    bench = bench_of()

    async def script():
        bench.writer.put(word("a"))
        bench.writer.put(word("b", nominated="n1"))

    bench.play(script)
    assert bench.told == [("a", "no room", "-"), ("b", "no room", "n1")]
    method, path, body = bench.transport.sent[0]
    assert (method, path) == ("PATCH", "/api/v1/namespaces/default/pods/a/status")
    assert body["metadata"] == {"uid": "uid-a"}


@pytest.mark.parametrize(
    ("earlier", "later", "told"),
    [
        pytest.param(word("a", "old"), word("a", "new"), ("a", "new", "-"), id="the newest condition"),
        pytest.param(word("a", "old", "n1"), word("a", "new"), ("a", "new", "n1"), id="keeps the earlier nomination"),
        pytest.param(word("a", "old", "n1"), word("a", "", "n2"), ("a", "old", "n2"), id="keeps the earlier condition"),
        pytest.param(word("a", "old", "n1"), word("a", "", ""), ("a", "old", "-"), id="clearing replaces"),
    ],
)
def test_words_about_one_pod_become_one(bench_of, earlier, later, told):
    """What the later word leaves open is taken from the earlier one."""
    bench = bench_of()

    async def script():
        bench.writer.put(earlier)
        bench.writer.put(later)
        assert len(bench.writer) == 1

    bench.play(script)
    assert bench.told == [told]


def shown(message="no room", **fields):
    """Return a word about pod a as the watch has shown it: with a condition."""
    known = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"} | fields
    told = pod("a").uid("uid-a")._with([known], "status", "conditions").obj()
    return PatchPodStatus(told, word("a", message).condition, None)


@pytest.mark.parametrize(
    ("patch", "is_written"),
    [
        pytest.param(shown(), False, id="the pod says so already"),
        pytest.param(shown(message="other"), True, id="another message"),
        pytest.param(shown(reason="SchedulerError"), True, id="another reason"),
        pytest.param(shown(status="True"), True, id="another status"),
        pytest.param(shown(type="Ready"), True, id="another condition"),
    ],
)
def test_what_a_pod_says_already_is_not_said(bench_of, patch, is_written):
    """The API server is not bothered with what it knows, be it said once or twice."""
    bench = bench_of()

    async def script():
        for _ in range(2):
            bench.writer.put(patch)
            await asyncio.sleep(0.01)

    bench.play(script)
    assert bool(bench.told) is is_written


def test_word_that_the_watch_shows_replaces_one_that_waits(bench_of, sleep):
    """Without the lease an error has waited to be told; meanwhile the pod fits nowhere, as it said before the error."""
    bench = bench_of(sleep=sleep)
    bench.may_write = False

    async def script():
        bench.writer.put(shown("an error"))
        await asyncio.sleep(0)
        bench.writer.put(shown("no room"))
        bench.may_write = True

    bench.play(script)
    assert bench.told == []
    assert not len(bench.writer)


def test_word_that_the_watch_shows_follows_one_that_is_being_written(bench_of):
    """The API server has the error by then."""
    bench = bench_of()

    async def script():
        bench.transport.gate = asyncio.Event()
        bench.writer.put(shown("an error"))
        await asyncio.sleep(0)
        bench.writer.put(shown("no room"))
        bench.transport.gate.set()

    bench.play(script)
    assert [message for _, message, _ in bench.told] == ["an error", "no room"]


@pytest.mark.parametrize("answer", [None, TransportError("no answer", sent=True)], ids=["taken", "perhaps taken"])
def test_word_that_the_watch_shows_follows_one_that_it_has_not_shown_yet(bench_of, sleep, answer):
    """The watch is late: what it shows is what was said before the last word."""
    bench = bench_of(*([answer] if answer else []), sleep=sleep)

    async def script():
        bench.writer.put(shown("an error"))
        await asyncio.sleep(0)
        bench.writer.put(shown("no room"))
        await asyncio.sleep(0.01)
        bench.writer.put(shown("no room"))

    bench.play(script)
    assert [message for _, message, _ in bench.told][:2] == ["an error", "no room"]
    assert bench.transport.sent[1][2]["status"]["conditions"][0]["lastTransitionTime"]


def test_oldest_word_is_dropped_when_too_many_wait(bench_of):
    """And counted; a word that is renewed is not the oldest any more."""
    bench = bench_of(capacity=2)

    async def script():
        bench.writer.put(word("a"))
        bench.writer.put(word("b"))
        bench.writer.put(word("a", "again"))
        bench.writer.put(word("c"))

    bench.play(script)
    assert bench.dropped == 1
    assert [name for name, _, _ in bench.told] == ["a", "c"]


def test_few_requests_are_under_way_at_a_time(bench_of):
    """A storm of failing pods does not become a storm of requests."""
    bench = bench_of(workers=3)

    async def script():
        for i in range(20):
            bench.writer.put(word(f"p{i}"))

    bench.play(script)
    assert bench.transport.most_under_way == 3
    assert len(bench.told) == 20


def test_refusal_costs_one_word(bench_of, say):
    """It is logged; the pod's next attempt will say it again, and the worker goes on."""
    bench = bench_of(say(403, "no"), say(422, "no"), say(200), workers=1)

    async def script():
        for name in "abc":
            bench.writer.put(word(name))

    bench.play(script)
    assert [name for name, _, _ in bench.told] == ["a", "b", "c"]


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(lambda say: TransportError("cut", sent=True), id="no answer"),
        pytest.param(lambda say: say(429, "later"), id="too many requests"),
        pytest.param(lambda say: say(504, "slow"), id="the server's time is over"),
    ],
)
def test_word_that_could_not_be_taken_is_said_again(bench_of, say, sleep, failure):
    """A pod that fits nowhere may have no other attempt for minutes; the worker pauses, so the server can recover."""
    bench = bench_of(failure(say), say(200), say(200), workers=1, sleep=sleep)

    async def script():
        bench.writer.put(word("a"))
        bench.writer.put(word("b"))

    bench.play(script)
    assert [name for name, _, _ in bench.told] == ["a", "b", "a"]
    assert sleep.slept == [RETRY_S]


def test_newer_word_replaces_one_that_could_not_be_taken(bench_of, sleep):
    """The old condition is not said again after the new one; what the new word leaves open is kept."""
    bench = bench_of(TransportError("cut", sent=True), workers=1, sleep=sleep)

    async def script():
        bench.transport.gate = asyncio.Event()
        bench.writer.put(word("a", "old", "n1"))
        await asyncio.sleep(0)
        bench.writer.put(word("a", "new"))
        bench.transport.gate.set()

    bench.play(script)
    assert bench.told == [("a", "old", "n1"), ("a", "new", "n1")]


def test_nothing_is_written_without_the_lease(bench_of, sleep):
    """The word waits: the lease may come back, and if it does not the next leader says its own."""
    bench = bench_of(sleep=sleep)
    bench.may_write = False

    async def script():
        bench.writer.put(word("a"))
        await bench.writer.nominate(pod_named("b"), "n1")

    bench.play(script)
    assert bench.told == []

    async def lease_is_back():
        bench.may_write = True

    bench.play(lease_is_back)
    assert bench.told == [("a", "no room", "-")]


def test_pod_is_not_spoken_about_once_it_is_silent(bench_of):
    """Before a bind: what waits is forgotten, what is on its way has arrived."""
    bench = bench_of()

    async def script():
        bench.transport.gate = asyncio.Event()
        bench.writer.put(word("a", "first"))
        await asyncio.sleep(0)
        bench.writer.put(word("a", "second"))
        silent = asyncio.create_task(bench.writer.fall_silent("uid-a"))
        await asyncio.sleep(0)
        assert not silent.done()
        bench.transport.gate.set()
        await silent
        assert not bench.transport.under_way

    bench.play(script)
    assert bench.told == [("a", "first", "-")]


def test_word_that_was_withdrawn_while_it_was_written_is_not_said_again(bench_of, sleep):
    """Its answer was lost, and meanwhile the pod is on its way: said again, it would deny the binding."""
    bench = bench_of(TransportError("no answer", sent=True), sleep=sleep)

    async def script():
        bench.transport.gate = asyncio.Event()
        bench.writer.put(word("a", "first"))
        await asyncio.sleep(0)
        silent = asyncio.create_task(bench.writer.fall_silent("uid-a"))
        await asyncio.sleep(0)
        bench.transport.gate.set()
        await silent
        for _ in range(20):
            await asyncio.sleep(0)
        bench.writer.put(word("a", "later"))

    bench.play(script)
    assert [message for _, message, _ in bench.told] == ["first", "later"]


def test_word_about_a_pod_that_somebody_has_bound_is_not_said(bench_of, sleep):
    """The watch has shown its node while the word could not be taken."""
    bound = set()
    failure = TransportError("no answer", sent=True)
    bench = bench_of(failure, sleep=sleep, is_pending=lambda pod: pod.name not in bound)

    async def script():
        bench.transport.gate = asyncio.Event()
        bench.writer.put(word("a"))
        await asyncio.sleep(0)
        bound.add("a")
        bench.transport.gate.set()

    bench.play(script)
    assert [name for name, _, _ in bench.told] == ["a"]


def test_words_about_one_pod_are_written_in_order(bench_of):
    """The second waits for the first, although workers are free; other pods need not wait."""
    bench = bench_of(workers=4)

    async def script():
        bench.transport.gate = asyncio.Event()
        bench.writer.put(word("a", "first"))
        await asyncio.sleep(0)
        bench.writer.put(word("a", "second"))
        bench.writer.put(word("b"))
        for _ in range(5):
            await asyncio.sleep(0)
        assert [message for _, message, _ in bench.told] == ["first", "no room"]
        bench.transport.gate.set()

    bench.play(script)
    assert bench.told == [("a", "first", "-"), ("b", "no room", "-"), ("a", "second", "-")]


def test_nomination_is_written_when_it_returns(bench_of):
    """The binding goes on only when others can see the nomination."""
    bench = bench_of()

    async def script():
        await bench.writer.nominate(pod_named("a"), "n1")
        assert bench.told == [("a", "-", "n1")]

    bench.play(script)


def test_nomination_is_cleared_before_the_watch_has_shown_it(bench_of):
    """The binding that it was written for failed at once; the pod as we know it has no nomination to clear."""
    bench = bench_of()

    async def script():
        await bench.writer.nominate(pod_named("a"), "n1")
        bench.writer.put(word("a", "", nominated=""))

    bench.play(script)

    assert bench.told == [("a", "-", "n1"), ("a", "-", None)]


def test_pod_without_a_nomination_has_none_cleared(bench_of):
    """Also one whose nomination was cleared before: a patch that changes nothing is not sent."""
    bench = bench_of()

    async def script():
        await bench.writer.nominate(pod_named("a"), "n1")
        for _ in range(2):
            bench.writer.put(word("a", "", nominated=""))
            await asyncio.sleep(0.01)
        bench.writer.put(word("b", "", nominated=""))

    bench.play(script)

    assert bench.told == [("a", "-", "n1"), ("a", "-", None)]


def test_nomination_is_not_undone_by_an_older_word(bench_of):
    """A word that still waits, say one that clears the nomination, goes out with it and not behind it."""
    bench = bench_of()

    async def script():
        bench.writer.put(word("a", "no room", ""))
        await bench.writer.nominate(pod_named("a"), "n1")

    bench.play(script)
    assert bench.told == [("a", "no room", "n1")]


def test_nomination_waits_for_a_word_that_is_being_written(bench_of):
    """Both reach the server in their order."""
    bench = bench_of()

    async def script():
        bench.transport.gate = asyncio.Event()
        bench.writer.put(word("a", "first"))
        await asyncio.sleep(0)
        nominating = asyncio.create_task(bench.writer.nominate(pod_named("a"), "n1"))
        await asyncio.sleep(0)
        assert len(bench.told) == 1
        bench.transport.gate.set()
        await nominating

    bench.play(script)
    assert bench.told == [("a", "first", "-"), ("a", "-", "n1")]


def test_nomination_that_fails_does_not_fail_the_binding(bench_of, say):
    """It is logged only."""
    bench = bench_of(say(403, "no"))

    async def script():
        await bench.writer.nominate(pod_named("a"), "n1")

    bench.play(script)
    assert len(bench.told) == 1


def test_withdrawn_word_is_not_written(bench_of):
    """A pod that is on its way to a node must not be called unschedulable afterwards."""
    bench = bench_of()

    async def script():
        bench.writer.put(word("a"))
        bench.writer.withdraw("uid-a")
        bench.writer.withdraw("unknown")

    bench.play(script)
    assert bench.told == []


@pytest.mark.parametrize("later", [[], [("a", "new", "-")]], ids=["nothing since", "a newer word since"])
def test_word_that_fails_after_it_was_withdrawn_is_not_said_again(bench_of, say, sleep, later):
    """It was being refused just as the pod's bind began; a retry would call a bound pod unschedulable."""
    bench = bench_of(say(429, "try again later"), workers=1, sleep=sleep)

    async def script():
        bench.transport.gate = asyncio.Event()
        bench.writer.put(word("a", "old"))
        await asyncio.sleep(0)
        silent = asyncio.create_task(bench.writer.fall_silent("uid-a"))
        await asyncio.sleep(0)
        bench.transport.gate.set()
        await silent
        for name, message, _ in later:
            bench.writer.put(word(name, message))

    bench.play(script)
    assert bench.told == [("a", "old", "-"), *later]


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        pytest.param([RuntimeError("bug")], ["a", "b", "a"], id="once: it is told a little later"),
        pytest.param([RuntimeError("bug"), None, RuntimeError("bug")], ["a", "b", "a"], id="again: it is given up"),
    ],
)
def test_a_bug_costs_at_most_its_own_word(bench_of, say, answers, told):
    """The others are told, and the writer goes on."""
    slept = []

    async def sleep(seconds):
        slept.append(seconds)
        await asyncio.sleep(0)

    bench = bench_of(*(answer or say(200) for answer in answers), workers=1, sleep=sleep)

    async def script():
        bench.writer.put(word("a"))
        bench.writer.put(word("b"))
        while len(bench.transport.sent) < len(told):  # noqa: ASYNC110
            await asyncio.sleep(0)

    bench.play(script)
    assert sorted(name for name, _, _ in bench.told) == sorted(told)
    assert slept == [RETRY_S]
    assert len(bench.writer) == 0
