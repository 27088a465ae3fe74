"""What is known about one run: every version of every pod and node, and every request that the API server answered.

A history is plain data: it can be written to a file, read again, and made by hand in a test of the checkers. All times
are seconds since the epoch on this machine's clock; the API server, the observer and the tests share it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

Json = Mapping[str, Any]

WRITE_VERBS = frozenset({"create", "update", "patch", "delete", "deletecollection"})


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a pod or node, as the observer's watch delivered it.

    Attributes:
        at_s: when the observer read it; later than the change itself, much later after an outage.
        kind: ``Pod`` or ``Node``.
        change: ``ADDED``, ``MODIFIED`` or ``DELETED``; ``LISTED`` if it was there when the record (or epoch) began.
        object: as the API server has it.
        epoch: grows when the server's data are replaced by older ones; versions count within an epoch only.
    """

    at_s: float
    kind: str
    change: str
    object: Json
    epoch: int = 0

    @property
    def number(self) -> int:
        """The resourceVersion: the order of all changes within an epoch."""
        return int(self.object["metadata"]["resourceVersion"])

    @property
    def uid(self) -> str:
        return str(self.object["metadata"]["uid"])

    @property
    def name(self) -> str:
        return str(self.object["metadata"]["name"])

    @property
    def key(self) -> str:
        return key_of(self.object)


@dataclass(frozen=True, slots=True)
class Request:
    """One request, from the audit log.

    Attributes:
        user: who asked.
        received_s: when the API server had it.
        finished_s: when it was answered; 0 if it never was (the server died).
        code: of the answer; 0 if there was none.
        verb: create, update, patch, delete, get, list or watch.
        resource: with its subresource, e.g. ``pods/binding``.
        body: of the request, where the log holds it.
    """

    user: str
    received_s: float
    verb: str
    resource: str
    namespace: str = ""
    name: str = ""
    code: int = 0
    finished_s: float = 0.0
    agent: str = ""
    uri: str = ""
    body: Json | None = None
    epoch: int = 0

    @property
    def is_done(self) -> bool:
        """Tell whether the server said that it did what was asked."""
        return 200 <= self.code < 300

    @property
    def is_write(self) -> bool:
        return self.verb in WRITE_VERBS

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def binding_uid(self) -> str:
        """The UID that a binding names; "" if it names none or the log has no body."""
        return str(((self.body or {}).get("metadata") or {}).get("uid") or "")

    @property
    def target(self) -> str:
        """The node that a binding names; "" if the log has no body."""
        return str(((self.body or {}).get("target") or {}).get("name") or "")


@dataclass(frozen=True, slots=True)
class Belief:
    """What one scheduler says that it believes, beside what the server has at that moment.

    Attributes:
        scheduler: its name.
        nodes: pods (``namespace/name uid``) by node.
        pending: pods (``namespace/name``) in its queue.
        profiles: the schedulerNames that it answers to.
        allocatable: of nodes: CPU in milli-cores, else whole units, without zeros.
    """

    scheduler: str
    nodes: Mapping[str, frozenset[str]]
    pending: frozenset[str]
    profiles: frozenset[str]
    allocatable: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sample:
    """What one process said of itself, and what was so while it was asked.

    Attributes:
        scheduler: its name.
        user: under which it speaks.
        start: which of its processes, from 0.
        started_s: when that was started.
        asked_s: just before the first question.
        answered_s: just after the last answer; what is said was so at some moment between the two.
        ready: status of ``/readyz?verbose``; 500 if not ready.
        page: its text.
        live: status of ``/livez``.
        metrics: lines of ``/metrics`` without comments and most buckets; empty if it was refused.
        silent_since_s: since when the API server had been dead or frozen, if it was so all the time; else 0.
        stopping_since_s: when the process had been asked to end; 0 if it had not.
    """

    scheduler: str
    user: str
    start: int
    started_s: float
    asked_s: float
    answered_s: float
    ready: int
    page: str
    live: int
    metrics: tuple[str, ...]
    silent_since_s: float = 0.0
    stopping_since_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Standstill:
    """The machine stood still; see `standstill`.

    Attributes:
        at_s: the last moment before.
        for_s: how much the time of day was then set forward.
    """

    at_s: float
    for_s: float


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise that was broken.

    Attributes:
        promise: G1 to G10.
        at_s: when; 0 if at the end.
        what: in words.
    """

    promise: str
    what: str
    at_s: float = 0.0

    def __str__(self) -> str:
        moment = f" at {datetime.fromtimestamp(self.at_s).astimezone().time().isoformat('milliseconds')}"
        return f"{self.promise}{moment if self.at_s else ''}: {self.what}"


@dataclass(slots=True)
class History:
    """Everything that the checkers look at.

    Attributes:
        users: ours: the users under which the schedulers speak.
        schedulers: ours: the schedulerNames that pods name.
        elected: those of the users whose schedulers take part in leader election.
        events: the Events about pods, at the end.
        beliefs: what those that decide say that they believe, at the end.
        unheard: who should have said so and did not, in words.
        samples: what the schedulers said of themselves, oldest first for each process.
        since_s: what was asked of the API server before is forgotten.
        bound_before: pods (by UID) and their nodes, of versions that are forgotten.
        standstills: of the machine, oldest first.
    """

    users: frozenset[str]
    schedulers: frozenset[str]
    elected: frozenset[str] = frozenset()
    versions: list[Version] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    events: list[Json] = field(default_factory=list)
    beliefs: list[Belief] = field(default_factory=list)
    unheard: list[str] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    since_s: float = 0.0
    bound_before: frozenset[tuple[str, str]] = frozenset()
    standstills: list[Standstill] = field(default_factory=list)

    def ordered(self) -> list[Version]:
        """Return the versions in the order in which the server made them, what was there at first before all else."""
        return sorted(self.versions, key=lambda version: (version.epoch, version.change != "LISTED", version.number))

    def latest(self, kind: str) -> dict[str, Json]:
        """Return the objects of a kind that exist at the end, by UID."""
        found: dict[str, Json] = {}
        last_epoch = max((version.epoch for version in self.versions), default=0)
        for version in self.ordered():
            if version.kind == kind and version.epoch == last_epoch:
                if version.change == "DELETED":
                    found.pop(version.uid, None)
                else:
                    found[version.uid] = version.object
        return found

    def is_ours(self, pod: Json) -> bool:
        """Tell whether the pod is for one of our schedulers."""
        return pod["spec"].get("schedulerName") in self.schedulers

    def binds(self, *, ours: bool = True) -> list[Request]:
        """Return the requests to bind, ours or those of others."""
        return [r for r in self.requests if is_bind(r) and (r.user in self.users) is ours]

    def bindings(self) -> set[tuple[str, str]]:
        """Return each pod that was ever seen on a node, by UID, and the node."""
        return {*self.bound_before, *bindings_of(self.versions)}

    def bound_at(self) -> dict[str, float]:
        """Return when the server answered a bind with success (of anyone), by UID, else when it was seen bound."""
        found: dict[str, float] = {}
        for version in self.ordered():
            if version.kind == "Pod" and version.object["spec"].get("nodeName"):
                found.setdefault(version.uid, version.at_s)
        uids = {version.key: version.uid for version in self.versions if version.kind == "Pod"}
        for request in self.requests:
            if is_bind(request) and request.is_done:
                found[request.binding_uid or uids.get(request.key, "")] = request.finished_s
        return found

    def save(self, file: Path) -> None:
        """Write everything as JSON lines, one record a line."""
        with file.open("w") as output:
            head = {
                "users": sorted(self.users),
                "schedulers": sorted(self.schedulers),
                "elected": sorted(self.elected),
                "unheard": self.unheard,
                "since_s": self.since_s,
                "bound_before": sorted(self.bound_before),
                "standstills": [asdict(each) for each in self.standstills],
            }
            lines: list[tuple[str, object]] = [("history", head)]
            lines += [("version", asdict(version)) for version in self.versions]
            lines += [("request", asdict(request)) for request in self.requests]
            lines += [("event", event) for event in self.events]
            lines += [("sample", asdict(sample)) for sample in self.samples]
            for belief in self.beliefs:
                nodes = {name: sorted(pods) for name, pods in belief.nodes.items()}
                fields = {"pending": sorted(belief.pending), "profiles": sorted(belief.profiles)}
                fields["allocatable"] = dict(belief.allocatable)
                lines.append(("belief", fields | {"scheduler": belief.scheduler, "nodes": nodes}))
            output.writelines(json.dumps({kind: record}) + "\n" for kind, record in lines)


def load(file: Path) -> History:
    """Read what `History.save` has written."""
    history = History(frozenset(), frozenset())
    for line in file.read_text().splitlines():
        ((kind, record),) = json.loads(line).items()
        if kind == "history":
            history.users, history.schedulers = frozenset(record["users"]), frozenset(record["schedulers"])
            history.elected, history.unheard = frozenset(record["elected"]), record["unheard"]
            history.since_s = record["since_s"]
            history.bound_before = frozenset((uid, node) for uid, node in record["bound_before"])
            history.standstills = [Standstill(**each) for each in record["standstills"]]
        elif kind == "version":
            history.versions.append(Version(**record))
        elif kind == "request":
            history.requests.append(Request(**record))
        elif kind == "event":
            history.events.append(record)
        elif kind == "sample":
            history.samples.append(Sample(**record | {"metrics": tuple(record["metrics"])}))
        else:
            nodes = {name: frozenset(pods) for name, pods in record["nodes"].items()}
            pending, profiles = frozenset(record["pending"]), frozenset(record["profiles"])
            history.beliefs.append(Belief(record["scheduler"], nodes, pending, profiles, record["allocatable"]))
    return history


def bindings_of(versions: Iterable[Version]) -> set[tuple[str, str]]:
    """Return the pods that these versions show on a node, by UID, and the node."""
    pods = ((version.uid, version.object["spec"].get("nodeName")) for version in versions if version.kind == "Pod")
    return {(uid, node) for uid, node in pods if node}


def is_bind(request: Request) -> bool:
    """Tell whether this is a request to bind a pod."""
    return request.resource == "pods/binding" and request.verb == "create"


def key_of(manifest: Json) -> str:
    """Return ``namespace/name``, or the name of a cluster-scoped object."""
    meta = manifest["metadata"]
    return f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else str(meta["name"])


def described(violations: Iterable[Violation], limit: int = 10) -> str:
    """Return the first violations as lines."""
    found: Sequence[Violation] = list(violations)
    more = [f"... and {len(found) - limit} more"] if len(found) > limit else []
    return "\n".join([*map(str, found[:limit]), *more])
