"""Plugins of third parties that raise, hang and answer nonsense, in the daemon as deployed."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.faults.bench import FaultBench, fault
from tests.faults.plugins import wild
from tests.faults.results import at_least, at_most, exactly
from tests.faults.supervisor import SupervisedScheduler
from tests.integration.api import Json, eventually
from tests.integration.settled import wait_told
from tests.integration.third_party.install import install

PLUGINS = ("Raising", "Talking", "Hanging")
POINTS = (
    "QueueSort", "PreEnqueue", "PreFilter", "Filter", "PostFilter", "PreScore", "Score", "Reserve", "Permit", "PreBind",
    "Bind", "PostBind",
)  # fmt: skip
SILENT = {"QueueSort", "PreEnqueue", "PostBind"}
"""Points at which nothing is said to the pod: it has a place in the queue all the same, is looked at again, is bound."""

RAISED = "wild at "


@pytest.fixture
def site(tmp_path: Path) -> dict[str, str]:
    """The environment in which the plugins are installed."""
    return install(tmp_path / "site", Path(wild.__file__), PLUGINS)


def with_plugin(name: str, args: Mapping[str, Any], *, sorts: bool = False) -> Json:
    """Return a profile's fields with the plugin at all its points."""
    plugins: Json = {"multiPoint": {"enabled": [{"name": name}]}}
    if sorts:
        plugins["bind"] = {"enabled": [{"name": name}]}  # before the default binder
        plugins["queueSort"] = {"enabled": [{"name": name}], "disabled": [{"name": "*"}]}
    return {"plugins": plugins, "pluginConfig": [{"name": name, "args": dict(args)}]}


def faults_of(scheduler: SupervisedScheduler, plugin: str, point: str, kind: str = "exception") -> float:
    metrics = scheduler.daemon.metrics()
    return metrics.total("podium_plugin_faults_total", plugin=plugin, extension_point=point, kind=kind)


@fault(33, "a plugin raises at every extension point, for a tenth of 400 pods at 50/s", starred=True)
def test_raising_plugin(bench: FaultBench, site: dict[str, str], tmp_path: Path) -> None:
    """The pods it raises for are told, and bound when it has calmed down; the others do not notice; or it is left alone."""
    each, times = 3, 2
    profile = with_plugin("Raising", {"times": times}, sorts=True)
    scheduler = bench.scheduler(elect=False, profile=profile, environment=site)
    cluster = bench.cluster
    load = bench.load_l1(pods=360)
    load.wait_created(30)
    wild_pods = {f"{point.lower()}-{i}": point for point in POINTS for i in range(each)}
    for name, point in wild_pods.items():
        nowhere = {"nowhere": "yes"} if point == "PostFilter" else {}
        cluster.create(cluster.pod(name).label(wild.RAISES, point).node_selector(nowhere).requests(cpu="10m"))
    load.wait_created()
    eventually(lambda: set(load.created) <= cluster.bound().keys(), "every plain pod to be bound", timeout_s=120)
    created, bound = created_at(bench), bench.bound_at()
    waits = sorted(bound[uid] - created[name][1] for name in load.created if (uid := created[name][0]) in bound)
    bench.figure("plain pods bound", exactly(load.pods), len(waits))
    bench.figure("wait of the slowest of 99 % of the plain pods", at_most(1.0), waits[int(len(waits) * 0.99)], "s")
    for name, point in wild_pods.items():
        if point not in SILENT:
            eventually(lambda n=name, p=point: told_of(bench, n, p), f"{name} to be told", timeout_s=60)
    unbound = {name for name, point in wild_pods.items() if point != "PostFilter"}
    cluster.wait_bound(*unbound, timeout_s=120)
    counted = {point: faults_of(scheduler, "Raising", point) for point in POINTS}
    print(counted)
    bench.figure("points whose faults are counted", exactly(len(POINTS)), sum(n >= each for n in counted.values()))
    bench.figure("restarts", exactly(0), scheduler.restarts)
    left_alone(bench, site, tmp_path)
    bench.settle()
    bench.verdict(tolerated=[RAISED])


def created_at(bench: FaultBench) -> dict[str, tuple[str, float]]:
    """Return UID and time of the first version that was seen of each pod, by name."""
    found: dict[str, tuple[str, float]] = {}
    for version in bench.observer.versions:
        if version.kind == "Pod":
            found.setdefault(version.key.partition("/")[2], (version.uid, version.at_s))
    return found


def told_of(bench: FaultBench, name: str, point: str) -> bool:
    """Say whether an event or the condition of the pod names the plugin and what it raised."""
    texts = [event["note"] for event in bench.cluster.events(name)]
    return any("Raising" in text and RAISED + point in text for text in texts)


def left_alone(bench: FaultBench, site: dict[str, str], tmp_path: Path) -> None:
    """Let a second scheduler skip the plugin and leave it alone after five pods."""
    name = f"{bench.cluster.scheduler}-skips"
    options = tmp_path / "options.yaml"
    faults = {"policy": "SkipPlugin", "quarantineAfter": 5, "windowSeconds": 600, "quarantineSeconds": 600}
    options.write_text(yaml.safe_dump(
        {"apiVersion": "podium.dev/v1alpha1", "kind": "SchedulerOptions", "pluginFaults": faults}
    ))  # fmt: skip
    profile = {"schedulerName": name, **with_plugin("Raising", {"times": 1_000}, sorts=True)}
    scheduler = bench.scheduler("skips", elect=False, profile=profile, environment=site, flags=[f"--options={options}"])
    cluster = bench.cluster
    pods = [cluster.pod(f"skip-{i}").scheduler(name).label(wild.RAISES, "Score").requests(cpu="10m") for i in range(10)]
    for each in pods:  # one after the other, so that no decision about a fifth is under way when the fifth fault counts
        cluster.create(each)
        cluster.wait_bound(each.manifest()["metadata"]["name"])
    quarantined = scheduler.daemon.metrics().total("podium_plugin_quarantined", plugin="Raising")
    bench.figure("plugins in quarantine", exactly(1), quarantined)
    bench.figure("pods it was asked about before", exactly(5), faults_of(scheduler, "Raising", "Score"))
    bench.sampler.wait_asked(scheduler)
    scheduler.terminate()


@fault(34, "a plugin hangs in PreBind, in Filter, in Score")
def test_hanging_plugin(bench: FaultBench, site: dict[str, str], tmp_path: Path) -> None:
    """In PreBind it holds its own pod up. Elsewhere nothing can be decided: `/livez` says so, and a restart recovers."""
    marks = tmp_path / "marks"
    marks.mkdir()
    scheduler = bench.scheduler(
        elect=False, profile=with_plugin("Hanging", {"directory": str(marks)}), environment=site
    )
    cluster = bench.cluster
    cluster.create(cluster.node("n1", cpu="20"), cluster.node("n2", cpu="20"))  # one alone is not scored
    cluster.create(cluster.pod("prebind").label(wild.HANGS, "PreBind"))
    eventually((marks / "prebind.hung").exists, "the hang in PreBind")
    cluster.create(*(cluster.pod(f"beside-{i}") for i in range(20)))
    cluster.wait_bound(*(f"beside-{i}" for i in range(20)))
    assert "prebind" not in cluster.bound()
    assert scheduler.daemon.health("/livez")[0] == 200
    for point in ("Filter", "Score"):
        name = point.lower()
        cluster.create(cluster.pod(name).label(wild.HANGS, point))
        eventually((marks / f"{name}.hung").exists, f"the hang in {point}")
        hung_s = time.monotonic()
        hung = scheduler.daemon
        eventually(lambda d=hung: d.health("/livez")[0] not in (0, 200), f"/livez to notice {point}", timeout_s=300)
        bench.figure(f"/livez fails after a hang in {point}", at_most(60), time.monotonic() - hung_s, "s")
        eventually(lambda d=hung: "a decision hangs" in d.log(), "the word about it")
        (line,) = [line for line in hung.log().splitlines() if "a decision hangs" in line]
        innermost, caller, *_ = json.loads(line)["stack"].splitlines()
        assert innermost.startswith("_at (")
        assert caller.startswith(f"{name} (")
        scheduler.kill()  # what the kubelet does then
        scheduler.wait_ready()
        cluster.create(cluster.pod(f"after-{name}"))
        cluster.wait_bound(name, f"after-{name}", timeout_s=60)
    cluster.wait_bound("prebind", timeout_s=60)
    bench.settle()
    bench.verdict()


SAID = {
    "unknown-node": "0/2 nodes are available",
    "list-of-nodes": "Talking",
    "no-pair": "Talking",
    "true": "Talking",
    "wait-in-filter": "Talking",
    "huge": "Talking",
    "beyond-int64": "Talking",
    "nan": "Talking",
    "negative": "Talking",
    "text": "Talking",
    "nothing": "Talking",
    "fraction": "Talking",
    "permit-nan": "Talking",
    "permit-text": "Talking",
}


@fault(35, "a plugin answers nonsense: 10^18, NaN, texts, unknown nodes, endless waits")
def test_talking_plugin(bench: FaultBench, site: dict[str, str]) -> None:
    """Every such pod is told who said it; none is bound on the strength of it; the others are bound."""
    scheduler = bench.scheduler(elect=False, profile=with_plugin("Talking", {}), environment=site)
    cluster = bench.cluster
    cluster.create(cluster.node("n1", cpu="20"), cluster.node("n2", cpu="20"))
    for said in SAID:
        cluster.create(cluster.pod(said).label(wild.SAYS, said))
    cluster.create(*(cluster.pod(f"beside-{i}") for i in range(20)))
    cluster.wait_bound(*(f"beside-{i}" for i in range(20)))
    for said, who in SAID.items():
        wait_told(cluster, said, who)
    bench.figure("bound on the strength of nonsense", exactly(0), len(SAID.keys() & cluster.bound().keys()))
    bad = scheduler.daemon.metrics().total("podium_plugin_faults_total", plugin="Talking", kind="bad_answer")
    # A node that is not there and a status of the wrong code are read as what they say: no node, and an error.
    bench.figure("bad answers counted", at_least(len(SAID) - 2), bad)
    bench.figure("restarts", exactly(0), scheduler.restarts)
    cluster.delete(*SAID)
    bench.settle()
    bench.verdict()
