"""G10: what a scheduler says of itself while things go wrong is what others know to be so.

Each sample is held against the audit log (who led, what had been listed, what was bound), against the control plane (a
dead server says nothing), and against the samples before it. What depends on the process getting on is given `SLACK_S`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from tests.faults.history.leadership import terms
from tests.faults.history.record import History, Request, Sample, Violation
from tests.integration.daemon import Metrics

SLACK_S = 5.0
FORGOTTEN = 3
"""So many renewals in a row must be unknown to the metric before it is called wrong."""
REQUIRED = ("pods", "nodes")
_HEARD = re.compile(r"^watch (\w+): (synced|not synced), last heard (\d+)s ago$", re.MULTILINE)
_UNAVAILABLE = re.compile(r"^watch (\w+): (?!synced|not synced)", re.MULTILINE)


class Process:
    """The samples of one process, with their metrics read."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self.samples = samples
        self.first = samples[0]
        self.metrics = [Metrics("\n".join(sample.metrics)) for sample in samples]

    def pairs(self) -> Iterator[tuple[Sample, Metrics]]:
        """Return the samples whose metrics could be read, with these."""
        return ((sample, read) for sample, read in zip(self.samples, self.metrics, strict=True) if sample.metrics)

    def lie(self, sample: Sample, what: str) -> Violation:
        return Violation("G10", f"{sample.scheduler} (start {sample.start}) {what}", sample.asked_s)


def dishonest_status(history: History) -> list[Violation]:
    """G10: readiness, leadership, silence and counters are what they are said to be; the first lie of each kind counts."""
    found: list[Violation] = []
    for process in processes(history):
        lies = (
            ready_before_sync(history, process),
            ready_while_ending(process),
            false_leader(history, process),
            hidden_leader(history, process),
            hidden_silence(process),
            two_faces(process),
            backward(process),
            binds_never_sent(history, process),
        )
        found += [first for each in lies if (first := next(each, None)) is not None]
    return found


def processes(history: History) -> list[Process]:
    """Return the samples of each process."""
    by_process: dict[tuple[str, int], list[Sample]] = {}
    for sample in history.samples:
        by_process.setdefault((sample.scheduler, sample.start), []).append(sample)
    return [Process(samples) for samples in by_process.values()]


def ready_before_sync(history: History, process: Process) -> Iterator[Violation]:
    """Who is ready has been given all pods and nodes, and says so of each kind that may be read."""
    listed_s = {
        resource: min(
            (r.finished_s for r in history.requests if _is_list(r, process, resource)),
            default=float("inf"),
        )
        for resource in REQUIRED
    }
    for sample in process.samples:
        if sample.ready != 200:
            continue
        waiting = {kind for kind, state, _ in _HEARD.findall(sample.page) if state != "synced"}
        if waiting - set(_UNAVAILABLE.findall(sample.page)):
            yield process.lie(sample, f"is ready, and waits for {', '.join(sorted(waiting))}")
        if process.first.started_s < history.since_s:
            continue
        for resource, at_s in listed_s.items():
            if at_s > sample.answered_s + SLACK_S:
                yield process.lie(sample, f"is ready, and has not been given the {resource}")


def _is_list(request: Request, process: Process, resource: str) -> bool:
    asked = request.user == process.first.user and request.verb == "list" and request.resource == resource
    return asked and request.is_done and request.received_s >= process.first.started_s


def ready_while_ending(process: Process) -> Iterator[Violation]:
    """Who has been asked to end is not ready."""
    for sample in process.samples:
        if sample.ready == 200 and sample.stopping_since_s and sample.asked_s > sample.stopping_since_s + SLACK_S:
            yield process.lie(sample, "has been asked to end, and is ready")


def false_leader(history: History, process: Process) -> Iterator[Violation]:
    """Who says that it leads has written itself into the lease, which has neither run out nor gone to somebody else."""
    known = terms(history)
    for sample, metrics in process.pairs():
        leads = metrics.total("leader_election_master_status") == 1
        if sample.user not in history.elected:
            if not leads and sample.ready == 200:
                yield process.lie(sample, "takes part in no election, and says that it does not lead")
            continue
        if not leads:
            continue
        past = [term for term in known if term.since_s <= sample.answered_s + SLACK_S]
        own = [n for n, term in enumerate(past) if term.user == sample.user]
        if not own:
            yield process.lie(sample, "says that it leads, and has never had the lease")
        elif sample.asked_s > past[own[-1]].until_s:
            gone_s = sample.asked_s - past[own[-1]].until_s
            yield process.lie(sample, f"says that it leads, {gone_s:.1f} s after its lease had run out")
        elif any(term.since_s < sample.asked_s - SLACK_S for term in past[own[-1] + 1 :]):
            yield process.lie(sample, "says that it leads, and another one has the lease")


def hidden_leader(history: History, process: Process) -> Iterator[Violation]:
    """Who has renewed the lease again and again, before and after and in time, leads and says so."""
    first = process.first
    successors_s = [s.started_s for s in history.samples if s.scheduler == first.scheduler and s.start > first.start]
    ended_s = min(successors_s, default=float("inf"))
    known = [term for term in terms(history) if first.started_s <= term.since_s < ended_s]
    for sample, metrics in process.pairs():
        if metrics.total("leader_election_master_status") == 1 or sample.user not in history.elected:
            continue
        past = [term for term in known if term.since_s < sample.asked_s - SLACK_S][-FORGOTTEN:]
        later = [term for term in known if term.since_s > sample.answered_s][:1]
        is_ours = {term.user for term in (*past, *later)} == {sample.user}
        if is_ours and len(past) == FORGOTTEN and later and later[0].since_s < past[-1].until_s:
            yield process.lie(sample, "renews the lease, and says that it does not lead")


def hidden_silence(process: Process) -> Iterator[Violation]:
    """Nobody hears anything from a dead server."""
    known_since_s: dict[str, float] = {}
    for sample, metrics in process.pairs():
        heard = {labels["kind"]: value for labels, value in metrics.series("podium_watch_staleness_seconds")}
        for kind, staleness_s in heard.items():
            since_s = max(sample.silent_since_s, known_since_s.setdefault(kind, sample.answered_s))
            if sample.silent_since_s and staleness_s < sample.asked_s - since_s - SLACK_S:
                silent_s = sample.asked_s - since_s
                yield process.lie(
                    sample,
                    f"heard of {kind} {staleness_s:.1f} s ago, from a server that had been silent for {silent_s:.1f} s",
                )


def two_faces(process: Process) -> Iterator[Violation]:
    """Readiness page and metrics tell the same, and the page's last line what its status says."""
    for sample in process.samples:
        if sample.ready and ("readyz check passed" in sample.page) is not (sample.ready == 200):
            yield process.lie(sample, f"answers {sample.ready} with a page that says otherwise: {sample.page!r}")
    for sample, metrics in process.pairs():
        heard = {labels["kind"]: value for labels, value in metrics.series("podium_watch_staleness_seconds")}
        for kind, _, text in _HEARD.findall(sample.page):
            page_s, metric_s = float(text), heard.get(kind, float(text))
            # The page was asked after the metrics: seconds may have passed, and unless the server is dead a line come.
            is_older = page_s > metric_s + sample.answered_s - sample.asked_s + 1.0
            if is_older or (sample.silent_since_s and page_s < metric_s - 1.0):
                yield process.lie(sample, f"last heard of {kind} {page_s:g} s ago, or {metric_s:g} s ago")


def backward(process: Process) -> Iterator[Violation]:
    """Counters of one process never shrink."""
    before: Mapping[str, float] = {}
    for sample in process.samples:
        now = dict(_counters(sample))
        for series, value in now.items():
            if value < before.get(series, 0.0):
                yield process.lie(sample, f"counted {series} back from {before[series]:g} to {value:g}")
        before = {**before, **now}


def _counters(sample: Sample) -> Iterator[tuple[str, float]]:
    for line in sample.metrics:
        series, _, value = line.rpartition(" ")
        if series.partition("{")[0].endswith("_total"):
            yield series, float(value)


def binds_never_sent(history: History, process: Process) -> Iterator[Violation]:
    """No more pods are said to be bound than the server was asked to bind, refusals aside."""
    if process.first.started_s < history.since_s:
        return
    sent_s = [
        request.received_s
        for request in history.binds()
        if request.user == process.first.user
        and request.received_s >= process.first.started_s
        and not 400 <= request.code < 409
    ]
    for sample, metrics in process.pairs():
        said = sum(metrics.total("podium_bind_outcomes_total", outcome=o) for o in ("bound", "unknown_bound"))
        asked = sum(at_s <= sample.answered_s + SLACK_S for at_s in sent_s)
        if said > asked:
            yield process.lie(sample, f"says that it bound {said:g} pods, and had asked for {asked}")
