"""The judges are judged: each broken promise is seen in a history that has it, and an honest one passes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scheduler.testing import builders as b
from tests.faults.history import beliefs
from tests.faults.history.audit import AuditReader, lists
from tests.faults.history.checks import CHECKS, broken_promises
from tests.faults.history.record import Belief, History, Request, Version, load

OURS, RIVAL, OTHER = "podium-a", "podium-b", "somebody"
LEASE_S = 15


class Story:
    """A history that is told step by step; a step takes a second unless `at` says otherwise."""

    def __init__(self) -> None:
        self.history = History(frozenset([OURS, RIVAL]), frozenset(["podium"]), frozenset([OURS, RIVAL]))
        self.at_s = 1_000.0
        self._version = 0
        self._epoch = 0
        self._pods: dict[str, b.PodBuilder] = {}

    def wait(self, seconds: float) -> Story:
        self.at_s += seconds
        return self

    def restore(self) -> Story:
        """Begin a new epoch: the server's data are older ones."""
        self._epoch += 1
        self._version = 0
        return self

    def _record(self, kind: str, change: str, manifest: dict[str, Any]) -> Story:
        self.at_s += 1
        self._version += 1
        manifest["metadata"]["resourceVersion"] = str(self._version)
        self.history.versions.append(Version(self.at_s, kind, change, manifest, self._epoch))
        return self

    def node(self, name: str = "n", change: str = "ADDED", cpu: str = "2", *, cordoned: bool = False) -> Story:
        builder = b.node(name).uid(name).capacity(cpu=cpu, memory="8Gi", pods="10")
        return self._record("Node", change, (builder.cordoned() if cordoned else builder).manifest())

    def pod(self, name: str, cpu: str = "1") -> Story:
        self._pods[name] = b.pod(name).uid(f"uid-{name}").scheduler("podium").requests(cpu=cpu)
        return self._record("Pod", "ADDED", self._pods[name].manifest())

    def told(self, name: str, *, on: str = "") -> Story:
        manifest = (self._pods[name].on(on) if on else self._pods[name]).manifest()
        said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
        manifest["status"] = {"conditions": [said]}
        return self._record("Pod", "MODIFIED", manifest)

    def binds(self, name: str, node: str = "n", *, user: str = OURS, code: int = 201, uid: str | None = None,
              seen: bool = True) -> Story:  # fmt: skip
        """Someone binds the pod; the observer sees it if it was done."""
        body = {"metadata": {"name": name, "uid": f"uid-{name}" if uid is None else uid}, "target": {"name": node}}
        asked = Request(user, self.at_s, "create", "pods/binding", "default", name, code, self.at_s, body=body,
                        epoch=self._epoch)  # fmt: skip
        self.history.requests.append(asked)
        if seen:
            self._record("Pod", "MODIFIED", self._pods[name].on(node).manifest())
        return self

    def deleted(self, name: str, node: str = "n") -> Story:
        return self._record("Pod", "DELETED", self._pods[name].on(node).manifest())

    def leads(self, user: str = OURS, holder: str | None = None) -> Story:
        spec = {"holderIdentity": user if holder is None else holder, "leaseDurationSeconds": LEASE_S}
        asked = Request(
            user, self.at_s, "update", "leases", "kube-system", "podium", 200, self.at_s, body={"spec": spec}
        )
        self.history.requests.append(asked)
        return self

    def writes(self, resource: str, verb: str = "patch", user: str = OURS, namespace: str = "default") -> Story:
        self.history.requests.append(Request(user, self.at_s, verb, resource, namespace, "p", 200, self.at_s))
        return self

    def believes(self, pods: dict[str, list[str]], pending: list[str], **offers: dict[str, int]) -> Story:
        nodes = {name: frozenset(f"default/{p} uid-{p}" for p in names) for name, names in pods.items()}
        self.history.beliefs.append(
            Belief("a", nodes, frozenset(f"default/{p}" for p in pending), frozenset(["podium"]), offers)
        )
        return self

    def hears_nothing(self, who: str) -> Story:
        self.history.unheard.append(f"{who} has not said what it believes")
        return self

    def tells(self, name: str, node: str = "n", uid: str | None = None) -> Story:
        regarding = {"namespace": "default", "name": name, "uid": f"uid-{name}" if uid is None else uid}
        note = f"Successfully assigned default/{name} to {node}"
        event = {"reason": "Scheduled", "note": note, "regarding": regarding, "reportingController": "podium"}
        self.history.events.append(event)
        return self


def honest() -> Story:
    """Two pods fill a node, a third one waits and has been told so; the lease is kept."""
    story = Story().leads().node().pod("p").pod("q").binds("p").binds("q").pod("r").writes("pods/status").told("r")
    return story.tells("p").tells("q").believes({"n": ["p", "q"]}, ["r"])


def test_an_event_that_comes_after_its_pod_was_forgotten_is_no_lie() -> None:
    """In long runs what was judged is cut off; an event may wait longer, for a server that asks for patience."""
    history = Story().node().tells("p").history
    assert broken_promises(history)["false claims"]
    history.bound_before = frozenset({("uid-p", "n")})
    assert not broken_promises(history)["false claims"]


def test_an_honest_history_passes() -> None:
    """Every checker has something to look at, and finds nothing."""
    assert broken_promises(honest().history) == {name: [] for name in CHECKS}


Wrong = Callable[[], Story]

BROKEN: list[Any] = [
    # G1
    pytest.param("lost", lambda: Story().node().pod("p"), "default/p fits n", id="pending though it fits"),
    pytest.param("lost", lambda: Story().node(cpu="1").pod("p", cpu="2"), "no condition", id="fits nowhere, untold"),
    pytest.param("lost", lambda: Story().node(cpu="1").pod("p").pod("q").binds("p").told("q").deleted("p"),
                 "default/q fits n", id="pending though there is room again"),
    # G2
    pytest.param("double bookings", lambda: Story().node(cpu="1").pod("p").pod("q").binds("p").binds("q"),
                 "2 of cpu requested, 1 there", id="one place, two pods"),
    pytest.param("double bookings", lambda: Story().node(cpu="1").pod("p").pod("q").binds("p", code=504).binds("q"),
                 "2 of cpu requested", id="the first bind had an unknown outcome"),
    pytest.param("double bookings", lambda: Story().node(cpu="1").pod("p").pod("q").binds("p", user=OTHER).wait(60).binds("q"),
                 "2 of cpu requested", id="somebody else was there long before"),
    pytest.param("double bookings", lambda: Story().node().node(change="MODIFIED", cpu="0").wait(60).pod("p").binds("p"),
                 "1 of cpu requested, 0 there", id="the node had shrunk long before"),
    pytest.param("double bookings", lambda: Story().node().node(change="MODIFIED", cordoned=True).wait(60).pod("p").binds("p"),
                 "cordoned", id="the node had been cordoned long before"),
    pytest.param("double bookings", lambda: Story().node().node(change="DELETED").wait(60).pod("p").binds("p"),
                 "no such node", id="the node was gone"),
    # G3
    pytest.param("double binds", lambda: Story().node().pod("p").binds("p").binds("p"), "bound 2 times", id="bound twice"),
    pytest.param("double binds", lambda: Story().node().node("m").pod("p").binds("p", seen=False).binds("p", "m"),
                 "bound 2 times", id="bound to two nodes"),
    pytest.param("double binds", lambda: Story().node().pod("p").binds("p", uid="", code=409, seen=False),
                 "without a UID", id="would bind whatever has the name"),
    pytest.param("double binds", lambda: Story().node().pod("p").binds("p", uid="uid-of-another"),
                 "which it never was", id="the UID of another pod"),
    pytest.param("double binds", lambda: Story().node().node("m").pod("p").binds("p").binds("p", "m", code=500),
                 "moved from n to m", id="a pod that moves"),
    # G4
    pytest.param("writes after lease end", lambda: Story().leads().wait(LEASE_S + 1).pod("p").node().binds("p"),
                 "its lease ended", id="not renewed"),
    pytest.param("writes after lease end", lambda: Story().leads().wait(1).leads(RIVAL).wait(1).writes("pods/status"),
                 "the lease is podium-b's", id="another one leads"),
    pytest.param("writes after lease end", lambda: Story().leads().wait(1).leads(holder="").wait(1).writes("pods", "delete"),
                 "nobody holds the lease", id="released"),
    pytest.param("writes after lease end", lambda: Story().writes("events", "create"), "nobody holds", id="never led"),
    # G5
    pytest.param("drift", lambda: Story().node().believes({}, []), "does not know n", id="a node unknown"),
    pytest.param("drift", lambda: Story().node().believes({"n": [], "m": []}, []), "believes in m", id="a node invented"),
    pytest.param("drift", lambda: Story().node().pod("p").binds("p").believes({"n": []}, []),
                 "does not know that default/p", id="a pod unknown"),
    pytest.param("drift", lambda: Story().node().pod("p").binds("p").deleted("p").believes({"n": ["p"]}, []),
                 "believes that default/p", id="a pod that is gone"),
    pytest.param("drift", lambda: Story().node().pod("p").believes({"n": []}, []), "has forgotten", id="a pod forgotten"),
    pytest.param("drift", lambda: Story().node().pod("p").binds("p").believes({"n": ["p"]}, ["p"]),
                 "believes that default/p is pending", id="a bound pod in the queue"),
    pytest.param("drift", lambda: Story().node().believes({"n": []}, [], n={"cpu": 9_000}), "believes that n offers",
                 id="a node that offers something else"),
    pytest.param("drift", lambda: Story().node().hears_nothing("a"), "a has not said", id="nothing was said"),
    pytest.param("drift", lambda: Story().node().believes({"n": []}, []).hears_nothing("b"), "b has not said",
                 id="one told the truth, the other nothing"),
    # G10
    pytest.param("false claims", lambda: Story().node().pod("p").binds("p").told("p", on="n"),
                 "says that it is not scheduled", id="bound and called unschedulable"),
    pytest.param("false claims", lambda: Story().node().pod("p").tells("p"), "Successfully assigned", id="never bound"),
    pytest.param("false claims", lambda: Story().node().pod("p").binds("p").tells("p", "m"), "to m", id="another node"),
    pytest.param("false claims", lambda: Story().node().pod("p").binds("p").tells("p").tells("p"), "2 times", id="told twice"),
    pytest.param("false claims", lambda: Story().node().pod("p").binds("p").tells("p", uid="old"), "assigned", id="the old pod"),
]  # fmt: skip


@pytest.mark.parametrize(("criterion", "story", "words"), BROKEN)
def test_every_broken_promise_is_seen(criterion: str, story: Wrong, words: str) -> None:
    """The checker of the criterion names it."""
    found = CHECKS[criterion](story().history)
    assert found
    assert words in "\n".join(map(str, found))


ALLOWED: list[Any] = [
    pytest.param("double bookings", lambda: Story().node(cpu="1").pod("p").pod("q").binds("p", user=OTHER).binds("q"),
                 id="somebody else was faster by a second"),
    pytest.param("double bookings", lambda: Story().node().node(change="MODIFIED", cpu="0").pod("p").binds("p"),
                 id="the node has just shrunk"),
    pytest.param("double bookings", lambda: Story().node(cpu="1").pod("p").pod("q").binds("p").deleted("p").binds("q"),
                 id="the place was free again"),
    pytest.param("double bookings", lambda: Story().node(cpu="1").pod("p").binds("p").restore().node(cpu="1").pod("p")
                 .pod("q").binds("q"), id="the server was restored: the pod is unbound again"),
    pytest.param("double binds", lambda: Story().node().pod("p").binds("p").restore().node().pod("p").binds("p"),
                 id="bound again after the server was restored"),
    pytest.param("writes after lease end", lambda: Story().leads().wait(14).leads().wait(14).writes("pods/status"), id="renewed"),
    pytest.param("writes after lease end", lambda: Story().leads().leads("somebody").wait(1).writes("pods/status"),
                 id="edited by hand a moment ago"),
    pytest.param("writes after lease end", lambda: Story().writes("events", "create", namespace="kube-system"),
                 id="the event about the lease"),
    pytest.param("lost", lambda: Story().node(cpu="1").pod("p", cpu="2").told("p"), id="fits nowhere and is told"),
]  # fmt: skip


@pytest.mark.parametrize(("criterion", "story"), ALLOWED)
def test_what_is_no_fault_passes(criterion: str, story: Wrong) -> None:
    """No checker cries wolf."""
    assert CHECKS[criterion](story().history) == []


def test_a_history_can_be_kept_and_read_again(tmp_path: Path) -> None:
    """A failed run can be judged anew."""
    history = honest().hears_nothing("b").history
    history.save(tmp_path / "history.jsonl")
    assert load(tmp_path / "history.jsonl") == history


# --- reading ---------------------------------------------------------------------------------------------------------


def _entry(stage: str, **fields: Any) -> str:
    entry = {
        "auditID": "1",
        "stage": stage,
        "verb": "create",
        "user": {"username": OURS},
        "requestURI": "/api/v1/namespaces/default/pods/p/binding",
        "objectRef": {"resource": "pods", "namespace": "default", "name": "p", "subresource": "binding"},
        "requestReceivedTimestamp": "2026-01-01T00:00:01.500000Z",
        "stageTimestamp": "2026-01-01T00:00:02.000000Z",
    }
    return json.dumps(entry | fields) + "\n"


def test_a_bind_that_was_never_answered_is_known(tmp_path: Path) -> None:
    """The server was killed between arrival and answer; a half-written line waits for its rest."""
    file = tmp_path / "audit.log"
    reader = AuditReader(file)
    assert reader.read() == []
    answered = _entry("ResponseComplete", responseStatus={"code": 201}, requestObject={"metadata": {"uid": "u"}})
    file.write_text(_entry("RequestReceived") + answered[:40])
    (begun,) = reader.read()
    assert (begun.code, begun.finished_s, begun.key, begun.resource) == (0, 0.0, "default/p", "pods/binding")
    file.write_text(_entry("RequestReceived") + answered)
    (done,) = reader.read()
    assert (done.code, done.finished_s - done.received_s, done.binding_uid) == (201, 0.5, "u")


def test_only_complete_lists_count() -> None:
    """A list of three pages is one list; one that was refused, or asks for a version only, is none."""

    def asked(query: str, *, at_s: float = 5.0, code: int = 200) -> Request:
        return Request(OURS, at_s, "list", "pods", code=code, uri=f"/api/v1/pods?{query}")

    more = asked("limit=500&continue=x", at_s=6.0)
    requests = [asked("limit=500", at_s=1.0), asked("limit=500", code=403), asked("limit=1"), asked("limit=500"), more]
    assert lists(requests, OURS, after_s=4.0) == {"pods": 1}


def test_the_last_complete_dump_counts() -> None:
    """A dump under way is not read; a placeholder that holds nothing is no belief."""
    cached = {"msg": "cached node", "node": "n", "deleted": False, "pods": ["default/p uid-p Pending"],
              "allocatable": {"cpu": 2_000, "example.com/gpu": 0}}  # fmt: skip
    gone = {"msg": "cached node", "node": "m", "deleted": True, "pods": [], "allocatable": {}}
    end = {"msg": "scheduling queue", "pending": ["default/q"]}
    lines = [cached, gone, end, {"msg": "other"}, cached | {"pods": []}]
    log = "".join(json.dumps(line) + "\n" for line in lines) + '{"msg": "cached node", "no'
    expected = Belief("a", {"n": frozenset(["default/p uid-p"])}, frozenset(["default/q"]), frozenset(["podium"]),
                      {"n": {"cpu": 2_000}})  # fmt: skip
    assert beliefs.read_belief("a", log, ["podium"]) == expected
    assert beliefs.dumps(log) == 1


def test_who_holds_the_lease_is_known_after_a_cut(tmp_path: Path) -> None:
    """Runs of hours forget what was judged; the API server's own leases are not confused with ours."""
    lease = {"resource": "leases", "namespace": "kube-system", "name": "podium", "apiGroup": "coordination.k8s.io"}
    written = {"verb": "update", "objectRef": lease, "responseStatus": {"code": 200}, "requestObject": {"spec": {}}}
    file = tmp_path / "audit.log"
    reader = AuditReader(file)
    ours = _entry("ResponseComplete", auditID="2", **written)
    servers = _entry("ResponseComplete", auditID="3", user={"username": "system:apiserver"}, **written)
    file.write_text(_entry("ResponseComplete", responseStatus={"code": 201}) + ours + servers)
    assert len(reader.read()) == 3
    reader.cut()
    assert [request.user for request in reader.read()] == [OURS, "system:apiserver"]
