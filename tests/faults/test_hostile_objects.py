"""Hostile and malformed objects in a real cluster: told about on themselves, while their neighbours go on.

What the API server accepts comes through it; what it refuses is put into lists and watches by the fault proxy.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from scheduler.model.decode import decode_object
from scheduler.model.pod import Pod
from scheduler.state.queue.backoff import MAX_EARLY
from scheduler.testing.pod_builder import PodBuilder
from tests.benchmarks.core_hostile import World, ordinary, rare_collections
from tests.faults.bench import FaultBench, fault
from tests.faults.neighbours import compare, wait_done
from tests.faults.proxy import Line, Lines, Match, Rewrite, Rule
from tests.faults.proxy.watch_actions import LineAction, Memory
from tests.faults.results import at_least, at_most, exactly
from tests.integration.api import Client, Cluster, Json, eventually
from tests.integration.settled import notes, wait_told

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
HOSTNAME = "kubernetes.io/hostname"
TEXT = "text"
FITS_NOWHERE, UNREADABLE = "Insufficient cpu", "cannot be understood"

QUANTITIES = {
    "power": ("1e1000", FITS_NOWHERE),
    "large-power": ("1e10000000", FITS_NOWHERE),
    "negative": ("-1", UNREADABLE),
    "tiny": ("0.0000001n", ""),
    "nines": ("9" * 5_000, FITS_NOWHERE),
    "arabic": ("\u0661", UNREADABLE),
    "suffix": ("1Zi", UNREADABLE),
    "nothing": ("", UNREADABLE),
}
ACCEPTED = ("power", "tiny", "nines")
"""By the API server. It takes `1e10000000`, too, and then needs seconds for each look at it, so that only the proxy sends
it here."""


def asks_for(name: str) -> Callable[[Json], Json]:
    """Return what changes the request of pods that are labelled with the name of a text."""

    def edit(pod: Json) -> Json:
        text = pod["metadata"].get("labels", {}).get(TEXT)
        if text is not None:
            pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": QUANTITIES[text][0]}}
        return pod

    edit.__name__ = name
    return edit


def cost_s(text: str) -> float:
    """Return the CPU seconds from a pod's bytes to its requests."""
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": text}}}]}
    data = json.dumps({"metadata": {"name": "a", "namespace": "b"}, "spec": spec}).encode()
    begun_s = time.process_time()
    decoded = decode_object(Pod, data)
    if isinstance(decoded, Pod):
        assert decoded.requests["cpu"] >= 0
    return time.process_time() - begun_s


@fault(37, "quantities such as 1e10000000, -1 and 5,000 nines, by the API and by the proxy", starred=True)
def test_hostile_quantities(bench: FaultBench) -> None:
    """Each is told about on its pod, in words or by the verdict; neighbours are bound as if there were none."""
    bench.figure("CPU for the dearest text", at_most(0.005), max(cost_s(t) for t, _ in QUANTITIES.values()), "s")
    scheduler = bench.scheduler(elect=False, proxied=True)
    cluster = bench.cluster
    alone = wait_done(bench, bench.load_l1(pods=200))
    rule = scheduler.proxy.add(Rule(Match(resource="pods"), Rewrite(asks_for("quantities"))))
    beside = bench.load(200, 50.0, prefix="beside")
    for name, (text, _) in QUANTITIES.items():
        manifest = cluster.pod(f"api-{name}").requests(cpu=text).create_manifest()
        status, answer = (
            cluster.client.call("POST", cluster.pod_path(""), manifest) if name != "large-power" else (0, 0)
        )
        assert (status == 201) == (name in ACCEPTED), (name, status, answer)
        cluster.create(cluster.pod(f"wire-{name}").label(TEXT, name))
    bench.note(f"through the API: {', '.join(ACCEPTED)}, the others but one being refused, and by the proxy: all")
    bench.note("1e10000000 is not sent to the API server, which takes it and then needs seconds for each look at it")
    wait_done(bench, beside)
    made = [f"api-{name}" for name in ACCEPTED] + [f"wire-{name}" for name in QUANTITIES]
    for name in made:
        _, words = QUANTITIES[name.partition("-")[2]]
        if not words:
            cluster.wait_bound(name)
        elif words == UNREADABLE:
            eventually(lambda n=name: notes(cluster, n, UNREADABLE), f"{name} to be told")
        else:
            wait_told(cluster, name, words)
    rejected = scheduler.daemon.metrics().total("podium_rejected_objects_total", kind="Pod")
    bench.figure("objects counted as rejected", at_least(4), rejected)
    compare(bench, alone, beside)
    bench.figure("restarts", exactly(0), scheduler.restarts)
    cluster.delete(*made)
    rule.remove()
    bench.settle()
    bench.verdict()


@dataclass(frozen=True, slots=True)
class Replace(LineAction):
    """Bytes are replaced by others in the lines of watches that are meant."""

    old: bytes
    new: bytes
    lines: Lines

    def apply(self, line: Line, memory: Memory, now_s: float) -> list[Line]:
        return [line.with_raw(line.raw.replace(self.old, self.new))]


def replaced(marked: bytes, old: bytes, new: bytes) -> Rule:
    """Return what replaces bytes in the lines about pods that hold a mark."""
    return Rule(Match(resource="pods"), Replace(old, new, Lines(where=lambda line: marked in line.raw)))


def large_pods(pod: Callable[[str], PodBuilder]) -> list[PodBuilder]:
    """Return pods as large as the API server takes them, each in another way."""

    def terms(kind: str, selector: Callable[[int], Json]) -> Json:
        return {kind: {REQUIRED: [{"topologyKey": HOSTNAME, "labelSelector": selector(i)} for i in range(500)]}}

    def equal(i: int) -> Json:
        return {"matchLabels": {"app": f"a{i}"}}

    def within(i: int) -> Json:
        return {"matchExpressions": [{"key": "app", "operator": "In", "values": [f"a{i}"]}]}

    values = [f"value-{i}" for i in range(50_000)]
    node_terms = [{"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": values}]}]
    return [
        pod("containers").set("spec.containers", [{"name": f"c{i}", "image": "x"} for i in range(5_000)]),
        pod("tolerations").set("spec.tolerations", [{"key": f"k{i}", "operator": "Exists"} for i in range(1_000)]),
        pod("near").set("spec.affinity", terms("podAffinity", equal)),
        pod("apart").set("spec.affinity", terms("podAntiAffinity", equal)),
        pod("apart-by-expressions").set("spec.affinity", terms("podAntiAffinity", within)),
        pod("values").set("spec.affinity", {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": node_terms}}}),
    ]


WIRE, MANY_CONTAINERS = "wire", [{"name": f"c{i}", "image": "x"} for i in range(10_000)]


def attempt_s(made: PodBuilder) -> float:
    """Return the CPU seconds of one attempt of the pod among 50 nodes with 1,000 pods."""
    world = World(50)
    for number in range(1_000):
        world.place(ordinary(number))
    world.put(made.obj())
    with rare_collections():
        return world.try_all()


@fault(38, "pods with 5,000 containers (10,000 by the proxy), 1,000 tolerations, 500 terms, 50,000 values")
def test_large_pods(bench: FaultBench) -> None:
    """Each takes its own time, not that of others."""
    from scheduler.testing.builders import pod

    by_proxy = pod("10,000 containers").set("spec.containers", MANY_CONTAINERS)
    for made in (*large_pods(pod), by_proxy):
        name = made.manifest()["metadata"]["name"]
        bench.figure(f"CPU for one attempt, {name}", at_most(0.25), attempt_s(made), "s")
    scheduler = bench.scheduler(elect=False, proxied=True)
    cluster = bench.cluster
    containers = json.dumps(MANY_CONTAINERS).encode()
    more = replaced(f'"name":"{WIRE}"'.encode(), b'"containers":[', b'"containers":%s,"was":[' % containers)
    handle = scheduler.proxy.add(more)
    alone = wait_done(bench, bench.load_l1(pods=200))
    beside = bench.load(200, 50.0, prefix="beside")
    cluster.create(*large_pods(cluster.pod), cluster.pod(WIRE))
    wait_done(bench, beside)
    cluster.wait_bound("containers", "tolerations", "apart", "apart-by-expressions", WIRE, timeout_s=120)
    assert handle.hits, "10,000 containers were sent"
    wait_told(cluster, "near", "node(s) didn't match pod affinity rules", timeout_s=60)
    wait_told(cluster, "values", "node(s) didn't match Pod's node affinity/selector", timeout_s=60)
    compare(bench, alone, beside)
    cluster.delete("near")  # the checkers know nothing of pod affinity
    bench.settle()
    bench.verdict()


SAMPLED = "scheduler_plugin_execution_duration_seconds"
WILD_TEXT = "Ünïcødé \u202e\u0007\x1b[2J\r\nlevel=error msg=forged \U0001f4a9 " * 200


def spoilt_text(obj: Json) -> Json:
    """Fill what a marked object says with strange texts, and with its own name."""
    name, labels = obj["metadata"].get("name"), obj["metadata"].setdefault("labels", {})
    if labels.get(TEXT) == "node":
        obj["metadata"]["annotations"] = {"a": WILD_TEXT * 500}
        labels.update({f"example.com/{name}-{i}": "v" for i in range(20_000)})
    elif labels.get(TEXT) == "pod":
        obj["spec"]["schedulingGates"] = None
        obj["spec"]["nodeSelector"] = {f"x{name}{WILD_TEXT}": WILD_TEXT}
        obj["spec"]["containers"][0]["resources"] = {"requests": {"cpu": WILD_TEXT}}
    return obj


def strange(cluster: Cluster, name: str, pods: int) -> list[str]:
    """Create a node and pods that are spoilt on their way, and one that asks for 200 devices; returns the pods' names."""
    cluster.create(cluster.node(f"wild-{name}", cpu="4").label(TEXT, "node"))
    wild = [f"wild-{name}-{i}" for i in range(pods)]
    cluster.create(*(cluster.pod(each).label(TEXT, "pod") for each in wild))
    long, devices = f"long-{name}", [f"example.com/{name}-device-{i}-{'x' * 40}" for i in range(200)]
    cluster.create(cluster.pod(long).requests(dict.fromkeys(devices, "1")).limits(dict.fromkeys(devices, "1")))
    for each in wild:
        eventually(lambda n=each: notes(cluster, n, UNREADABLE), f"{each} to be told")
    wait_told(cluster, long, f"Insufficient example.com/{name}-device-0")
    return [long, *wild]


@fault(39, "a node with 5 MB of annotations, 20,000 labels, control characters in whatever is said")
def test_strange_texts(bench: FaultBench) -> None:
    """Every line of the log is JSON, no event is too long, and no text of a tenant becomes a series."""
    scheduler = bench.scheduler(elect=False, proxied=True)
    cluster = bench.cluster
    rules = [scheduler.proxy.add(Rule(Match(resource=kind), Rewrite(spoilt_text))) for kind in ("nodes", "pods")]
    alone = wait_done(bench, bench.load_l1(pods=100))
    made = strange(cluster, "first", 1)  # with all series that there are about pods of this kind
    known = scheduler.daemon.metrics().names
    beside = bench.load(100, 50.0, prefix="beside")
    made += strange(cluster, "then", 19)
    wait_done(bench, beside)
    said = [event["note"] for name in made for event in cluster.events(name)]
    bench.figure("bytes of the longest event", at_most(1_024), max(len(note.encode()) for note in said))
    lines = scheduler.log().splitlines()
    bench.figure("lines of the log that are no JSON", exactly(0), sum(not is_json(line) for line in lines))
    shown = scheduler.daemon.metrics().names
    bench.figure("series", at_most(5_000), len(shown))
    new = sorted(name for name in shown - known if not name.startswith(SAMPLED))
    print(*new[:20], sep="\n")
    bench.figure("series more than after the first of them", exactly(0), len(new))
    bench.note(f"not counted: {SAMPLED}, which begin when the first pod of a kind falls into the sample")
    tenants = ("wild", "device-", "example.com/", "forged")
    bench.figure("series that name what tenants wrote", exactly(0), sum(any(t in x for t in tenants) for x in shown))
    compare(bench, alone, beside)
    cluster.delete(*made)
    for rule in rules:
        rule.remove()
    bench.settle()
    bench.verdict()


def is_json(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


MALFORMED: dict[str, tuple[bytes, bytes]] = {
    "null-list": (b'"containers":[', b'"containers":null,"was":['),
    "wrong-type": (b'"containers":[', b'"containers":"none","was":['),
    "unknown-phase": (b'"phase":"Pending"', b'"phase":"Banana"'),
    "huge-int": (b'"priority":0', b'"priority":' + b"9" * 5_000),
    "deep": (b'"priority":0', b'"priority":0,"deep":' + b"[" * 100_000 + b"]" * 100_000),
    "not-a-number": (b'"priority":0', b'"priority":NaN'),
    "no-metadata": (b'"metadata":{', b'"metadata":null,"was":{'),
    "bad-utf8": (b'"phase":"Pending"', b'"phase":"\xff\xfe"'),
    "cut": (b'"status":', b'"status"'),
}
UNDERSTOOD = {"null-list", "unknown-phase"}
UNKNOWN = {"deep", "no-metadata", "not-a-number", "cut"}
"""Whose owner cannot be read; they are counted and logged."""


@fault(40, "malformed objects in watches: null lists, wrong types, huge numbers, 100,000 levels, bad UTF-8")
def test_malformed_objects(bench: FaultBench) -> None:
    """They are rejected and counted while the stream goes on; once they can be read they are scheduled."""
    scheduler = bench.scheduler(elect=False, proxied=True)
    cluster = bench.cluster
    cluster.create(cluster.node("n", cpu="64"))
    handles = []
    for name, (old, new) in MALFORMED.items():
        handles.append(scheduler.proxy.add(replaced(f'"{TEXT}":"{name}"'.encode(), old, new)))
    for name in MALFORMED:
        cluster.create(cluster.pod(name).label(TEXT, name))
        cluster.create(cluster.pod(f"behind-{name}"))
        cluster.wait_bound(f"behind-{name}")
    cluster.wait_bound(*UNDERSTOOD)
    counted = scheduler.daemon.metrics().total("podium_rejected_objects_total", kind="Pod")
    bench.figure("objects counted as rejected", at_least(len(MALFORMED) - len(UNDERSTOOD)), counted)
    for name in MALFORMED.keys() - UNDERSTOOD - UNKNOWN:
        eventually(lambda n=name: notes(cluster, n, UNREADABLE), f"{name} to be told")
    bench.figure("restarts", exactly(0), scheduler.restarts)
    for handle in handles:
        handle.remove()
    for name in MALFORMED.keys() - UNDERSTOOD:
        cluster.patch(cluster.pod_path(name), {"metadata": {"labels": {TEXT: "legible"}}})
    cluster.wait_bound(*MALFORMED)
    bench.settle()
    bench.verdict()


@contextmanager
def stormed(bench: FaultBench, path: str, threads: int = 2) -> Iterator[list[int]]:
    """Patch an object over and over while the block runs; yields the counts of patches."""
    counts, stop = [0] * threads, threading.Event()

    def run(number: int) -> None:
        client = Client(bench.plane)
        while not stop.is_set():
            patch: Json = {"metadata": {"labels": {f"storm-{number}": str(counts[number])}}}
            client.ok("PATCH", path, patch, content_type="application/strategic-merge-patch+json")
            counts[number] += 1
        client.close()

    workers = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(threads)]
    for worker in workers:
        worker.start()
    try:
        yield counts
    finally:
        stop.set()
        for worker in workers:
            worker.join(60)


@fault(42, "as many updates a second as the API server takes on one pending pod, for 60 s")
def test_update_storm(bench: FaultBench) -> None:
    """Its attempts are bounded by its back-off; the others are bound as before."""
    scheduler = bench.scheduler(elect=False)
    cluster = bench.cluster
    alone = wait_done(bench, bench.load_l1(pods=300))
    nobody = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "nobody"}}}
    # Its own labels count in pod affinity, so each of the updates may help it, as far as anybody knows.
    cluster.create(cluster.pod("stormed").set("spec.affinity", {"podAffinity": {REQUIRED: [nobody]}}))
    wait_told(cluster, "stormed", "pod affinity rules")
    attempts = scheduler.daemon.counting()
    begun_s = time.monotonic()
    with stormed(bench, cluster.pod_path("stormed")) as counts:
        beside = wait_done(bench, bench.load(300, 50.0, prefix="beside"))
        time.sleep(max(0.0, begun_s + 60.0 - time.monotonic()))
    seconds = time.monotonic() - begun_s
    bench.note(f"{sum(counts) / seconds:.0f} updates/s, all that the API server takes here; 1,000 were wanted")
    tried = attempts("scheduler_schedule_attempts_total", result="unschedulable")
    bench.figure("attempts in 60 s", at_most(MAX_EARLY + 8 * max(seconds / 60.0, 1.0)), tried)
    bench.figure("attempts at least, since it may have helped", at_least(3), tried)
    compare(bench, alone, beside)
    cluster.delete("stormed")  # the checkers know nothing of pod affinity
    bench.settle()
    bench.verdict()
