"""Live profiles on the real API server: it enforces the schema, and the daemon follows the objects without a restart."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scheduler.config.types import WIRE_POINTS
from tests.controlplane.cluster import ControlPlane
from tests.integration.api import Cluster, condition, eventually, unique
from tests.integration.checker import violations
from tests.integration.conftest import StartDaemon
from tests.integration.daemon import LEASE, Daemon
from tests.integration.live_profiles import CRD, Profiles, lines, make_identity, options_file

UNSERVED = 'no profile named "%s" is live: its SchedulerProfile was deleted or renamed'
BIN_PACKING = [{"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}]
SHORT_ELECTION = {
    "leaderElect": True,
    "resourceName": LEASE,
    "resourceNamespace": "kube-system",
    "leaseDuration": "6s",
    "renewDeadline": "4s",
    "retryPeriod": "1s",
}


@pytest.fixture(scope="module")
def live_identity(control_plane: ControlPlane) -> Path:
    return make_identity(control_plane)


@pytest.fixture
def profiles(control_plane: ControlPlane) -> Iterator[Profiles]:
    """The definition installed, and objects of this test's own."""
    made = Profiles(control_plane)
    made.define()
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def start_live(start_daemon: StartDaemon, live_identity: Path, tmp_path: Path) -> StartDaemon:
    """Start a daemon with live profiles, under exactly their rights."""

    def start(*names: str, resync_s: float = 30.0, **options: Any) -> Daemon:
        settings = {"kubeconfig": live_identity, "flags": options_file(tmp_path, resync_s), **options}
        return start_daemon(*names, **settings)

    return start


def test_profiles_come_change_and_go_while_pods_flow(
    cluster: Cluster, profiles: Profiles, start_live: StartDaemon
) -> None:
    """No restart, no pod lost or bound wrongly, whatever the profiles do meanwhile."""
    name = f"{cluster.scheduler}-live"
    cluster.create(*(cluster.node(n, cpu="100", pods="500") for n in ("a", "b")))
    daemon = start_live(cluster.scheduler)
    daemon.wait_ready()
    cluster.create(cluster.pod("early").scheduler(name).requests(cpu="1"))
    for number in range(6):
        cluster.create(*(cluster.pod(f"steady-{number}-{i}").requests(cpu="10m") for i in range(10)))
        if number == 0:
            profiles.create(name, pluginConfig=BIN_PACKING)
            cluster.wait_bound("early")
            assert "NodeResourcesFit=1" in profiles.wait(name, "Serving")["plugins"]["score"]
        cluster.create(*(cluster.pod(f"live-{number}-{i}").scheduler(name).requests(cpu="10m") for i in range(10)))
        profiles.change(name, percentageOfNodesToScore=10 + number)
    profiles.wait(name, "Serving", generation=7)
    bound = cluster.wait_bound()
    assert violations(cluster.nodes(), cluster.pods(), [cluster.scheduler, name]) == []
    assert len({bound[p] for p in bound if p.startswith(("early", "live-0"))}) == 1, "packed onto one node"
    shown = daemon.configz()["componentconfig"]["profiles"]
    assert [p["schedulerName"] for p in shown] == [cluster.scheduler, name]
    assert shown[1]["percentageOfNodesToScore"] == 15
    assert daemon.metrics().total("scheduler_schedule_attempts_total", profile=name, result="scheduled") == 61
    assert daemon.metrics().total("podium_live_profiles", state="serving") == 1

    cluster.create(cluster.pod("stuck").scheduler(name).requests(cpu="1000"))
    assert "Insufficient cpu" in cluster.wait_unschedulable("stuck")["message"]
    profiles.delete(name)
    told = eventually(lambda: _told(cluster, "stuck", UNSERVED % name), "the word that nobody schedules the pod")
    assert told["reason"] == "SchedulerError", "an autoscaler must not add nodes for it"
    eventually(lambda: UNSERVED % name in {e["note"] for e in cluster.events("stuck", "FailedScheduling")}, "the event")
    cluster.create(cluster.pod("late").scheduler(name).requests(cpu="1"), cluster.pod("last").requests(cpu="1"))
    cluster.wait_bound("last")
    assert "late" not in cluster.bound()
    profiles.create(name)
    cluster.wait_bound("late")
    eventually(lambda: (condition(cluster.get("stuck")) or {}).get("reason") == "Unschedulable", "another try")
    assert "Traceback" not in daemon.log()
    assert "kopf" not in daemon.log(), "nothing that it says is worth a line in ordinary operation"


def test_what_is_wrong_is_said_at_once_and_the_last_good_version_serves(
    cluster: Cluster, profiles: Profiles, start_live: StartDaemon
) -> None:
    """Reasons that the API server cannot know: names taken, plugins unknown, an order of its own, wrong args."""
    name = f"{cluster.scheduler}-live"
    cluster.create(cluster.node(cpu="100"))
    start_live(cluster.scheduler).wait_ready()
    profiles.create(name)
    profiles.wait(name, "Serving")
    profiles.change(
        name,
        plugins={
            "queueSort": {"disabled": [{"name": "*"}], "enabled": [{"name": "Mine"}]},
            "filter": {"enabled": [{"name": "EBSLimits"}]},
        },
        pluginConfig=[{"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "Best"}, "foo": 1}}],
    )
    errors = "\n".join(profiles.wait(name, "Outdated")["errors"])
    for part in ("spec.plugins.queueSort: Invalid value", 'spec.plugins.filter.enabled[0]: Invalid value: "EBSLimits"',
                 'unknown field "foo"'):  # fmt: skip
        assert part in errors
    cluster.create(cluster.pod("p").scheduler(name))
    cluster.wait_bound("p")
    profiles.change(name, plugins=None, pluginConfig=None)
    profiles.wait(name, "Serving", generation=3)
    profiles.change(
        name, plugins={"score": {"enabled": [{"name": "NoSuch"}]}, "permit": {"enabled": [{"name": "Nor"}]}}
    )
    status = profiles.wait(name, "Outdated", generation=4)
    assert (status["servingGeneration"], [e.rpartition(": ")[2] for e in status["errors"]]) == (
        3,
        ['ScorePlugin "NoSuch" does not exist', 'plugin "Nor" does not exist'],
    )
    twin = f"{name}-twin"
    profiles.create(twin, schedulerName=name)
    taken = f'spec.schedulerName: Duplicate value: "{name}": it belongs to SchedulerProfile "{name}", which is older'
    assert profiles.wait(twin, "Refused")["errors"] == [taken]
    of_file = f"{name}-file"
    profiles.create(of_file, schedulerName=cluster.scheduler)
    assert "a profile of the configuration file" in profiles.wait(of_file, "Refused")["errors"][0]
    profiles.delete(name)
    profiles.wait(twin, "Serving")
    cluster.create(cluster.pod("q").scheduler(name))
    cluster.wait_bound("q")


def test_without_the_definition_or_the_rights_everything_else_goes_on(
    cluster: Cluster, profiles: Profiles, start_live: StartDaemon, identity: Path
) -> None:
    """It is ready, it schedules, it says what is missing; and begins when the definition comes."""
    name = f"{cluster.scheduler}-live"
    profiles.undefine()
    cluster.create(cluster.node(cpu="100"))
    daemon = start_live(cluster.scheduler, resync_s=1.0)
    daemon.wait_ready()
    cluster.create(cluster.pod("p"), cluster.pod("early").scheduler(name))
    cluster.wait_bound("p")
    eventually(lambda: "apply deploy/crds/schedulerprofiles.yaml" in lines(daemon), "the reason in /readyz")
    assert "watch not running" in lines(daemon)
    assert daemon.metrics().total("podium_live_profile_errors_total", operation="list") >= 1
    profiles.define()
    profiles.create(name)
    cluster.wait_bound("early")
    eventually(lambda: "1 serving, 0 outdated, 0 refused" in lines(daemon), "the reason to go")
    assert "deploy/crds" not in lines(daemon)

    cluster.scheduler = unique("powerless")
    powerless = start_live(cluster.scheduler, kubeconfig=identity, resync_s=1.0)
    powerless.wait_ready()
    eventually(lambda: "no right to list schedulerprofiles" in lines(powerless), "the reason in /readyz")
    cluster.create(cluster.pod("other"))
    cluster.wait_bound("other")


def test_an_outage_of_the_api_server_loses_no_change(
    control_plane: ControlPlane, cluster: Cluster, profiles: Profiles, start_live: StartDaemon
) -> None:
    """kopf's stream is cut for good; profiles that came and went around the outage are as they should be."""
    names = [f"{cluster.scheduler}-{word}" for word in ("goes", "stays", "comes")]
    cluster.create(cluster.node(cpu="100"))
    daemon = start_live(cluster.scheduler)
    daemon.wait_ready()
    for name in names[:2]:
        profiles.create(name)
        profiles.wait(name, "Serving")
    control_plane.apiserver.kill()
    time.sleep(0.5)
    control_plane.start_apiserver()
    profiles.delete(names[0])
    profiles.create(names[2])
    profiles.wait(names[2], "Serving")
    cluster.create(*(cluster.pod(f"p-{i}").scheduler(name) for i, name in enumerate(names)))
    cluster.wait_bound("p-1", "p-2")
    shown = {p["schedulerName"] for p in daemon.configz()["componentconfig"]["profiles"]}
    assert shown == {cluster.scheduler, *names[1:]}
    assert "p-0" not in cluster.bound()


def test_a_new_leader_serves_what_the_old_one_served(
    cluster: Cluster, profiles: Profiles, start_live: StartDaemon, lease: str
) -> None:
    """The last good version of a profile that is refused too. Only the leader writes, and a standby keeps nothing to
    write later: what it would have said of a pod is stale when it leads."""
    del lease
    name, back = f"{cluster.scheduler}-live", f"{cluster.scheduler}-back"
    cluster.create(cluster.node(cpu="100"))
    settings: dict[str, Any] = {"configuration": {"leaderElection": SHORT_ELECTION}}
    leader = start_live(cluster.scheduler, **settings)
    eventually(lambda: "acquired leader lease" in leader.log(), "the first to lead")
    standby = start_live(cluster.scheduler, **settings)
    leader.wait_ready()
    standby.wait_ready()
    profiles.create(name)
    profiles.wait(name, "Serving")
    cluster.create(*(cluster.pod(f"p{i}").scheduler(name) for i in range(5)))
    cluster.wait_bound()
    eventually(lambda: "1 serving" in lines(standby), "the standby to follow")
    profiles.create(back)
    cluster.create(cluster.pod("moved").scheduler(back).node_selector({"zone": "x"}))
    cluster.wait_unschedulable("moved")
    profiles.delete(back)
    eventually(lambda: _told(cluster, "moved", UNSERVED % back), "the word that nobody schedules the pod")
    eventually(lambda: "1 serving" in lines(standby), "the standby to see that")
    profiles.create(back)
    cluster.patch(f"/api/v1/nodes/{cluster.namespace}-n", {"metadata": {"labels": {"zone": "x"}}})
    cluster.wait_bound("moved")
    assert not standby.metrics().total("rest_client_requests_total", method="PATCH")
    profiles.change(name, plugins={"score": {"enabled": [{"name": "NoSuch"}]}})
    profiles.wait(name, "Outdated")
    eventually(lambda: "1 outdated" in lines(standby), "the standby to see it")
    code, _ = leader.terminate()
    assert code == 0
    cluster.create(*(cluster.pod(f"q{i}").scheduler(name) for i in range(5)))
    cluster.wait_bound()
    assert "acquired leader lease" in standby.log()
    time.sleep(2.0)  # it would be written after one
    assert condition(cluster.get("moved")) is None
    profiles.change(name, plugins=None)
    status = profiles.wait(name, "Serving")
    assert status["servingGeneration"] == 3
    print("pods scheduled, as the status counts them over both leaders:", status["podsScheduled"])


def test_a_package_that_fails_at_import_is_refused_where_it_is_named(
    cluster: Cluster, profiles: Profiles, start_live: StartDaemon, tmp_path: Path
) -> None:
    """Live: in the status, while others serve. In the file: exit 1, with a sentence."""
    site = tmp_path / "site"
    info = site / "acme_broken-2.1.dist-info"
    info.mkdir(parents=True)
    (site / "acme_broken.py").write_text("import acme_engine_that_is_not_there\n")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-broken\nVersion: 2.1\n")
    (info / "entry_points.txt").write_text("[podium.plugins]\nBroken = acme_broken:Broken\n")
    environment = {"PYTHONPATH": str(site)}
    text = (
        'loading plugin "Broken" of acme-broken 2.1 (acme_broken:Broken): '
        "ModuleNotFoundError: No module named 'acme_engine_that_is_not_there'"
    )
    plugins = {"multiPoint": {"enabled": [{"name": "Broken"}]}}
    name = f"{cluster.scheduler}-live"
    cluster.create(cluster.node(cpu="100"))
    start_live(cluster.scheduler, environment=environment).wait_ready()
    profiles.create(f"{name}-bad", plugins=plugins)
    profiles.create(name)
    (error,) = profiles.wait(f"{name}-bad", "Refused")["errors"]
    assert error.endswith(text)
    cluster.create(cluster.pod("p"), cluster.pod("q").scheduler(name))
    cluster.wait_bound()

    started = start_live({"schedulerName": unique("at-start"), "plugins": plugins}, environment=environment)
    assert started.wait_exit() == 1
    assert text in started.log()
    assert "Traceback" not in started.log()


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        pytest.param({"schedulerName": ""}, "spec.schedulerName: Invalid value", id="no name"),
        pytest.param({"percentageOfNodesToScore": 101}, "should be less than or equal to 100", id="percentage"),
        pytest.param({"plugin": {}}, 'unknown field "spec.plugin"', id="unknown field"),
        pytest.param(
            {"plugins": {"score": {"enabled": [{"name": "A", "weight": -1}]}}},
            "spec.plugins.score.enabled[0].weight: Invalid value: -1: spec.plugins.score.enabled[0].weight in body "
            "should be greater than or equal to 0",
            id="weight",
        ),
        pytest.param(
            {"plugins": {"score": {"enabled": [{"name": "A", "weight": 2**31}]}}},
            "spec.plugins.score.enabled[0].weight",
            id="weight beyond int32",
        ),
        pytest.param(
            {"plugins": {"filter": {"enabled": [{"name": "A"}, {"name": "A"}]}}}, "Duplicate value", id="twice"
        ),
        pytest.param(
            {"plugins": {"multiPoint": {"enabled": [{"name": "*"}]}}},
            "'*' stands for all plugins and can only be disabled",
            id="star enabled",
        ),
        pytest.param(
            {"plugins": {"queueSort": {"enabled": [{"name": "A"}, {"name": "B"}]}}},
            "only one queue sort plugin can be enabled",
            id="two orders",
        ),
        pytest.param({"pluginConfig": [{"name": "A"}, {"name": "A"}]}, "Duplicate value", id="config twice"),
    ],
)
def test_the_api_server_refuses_by_the_schema(profiles: Profiles, spec: dict[str, Any], words: str) -> None:
    """What can be known without Podium is refused before anything is stored."""
    code, answer = profiles.try_create(unique("refused"), **spec)
    assert code in {400, 422}, answer
    assert words in answer["message"]


def test_the_scheduler_name_cannot_be_changed(profiles: Profiles) -> None:
    """Pods would lose their profile; another object takes another name."""
    name = unique("fixed")
    profiles.create(name)
    code, answer = profiles.client.call(
        "PATCH",
        f"/apis/scheduling.podium.dev/v1alpha1/schedulerprofiles/{name}",
        {"spec": {"schedulerName": "other"}},
        content_type="application/merge-patch+json",
    )
    assert code == 422
    assert "schedulerName cannot be changed; create another SchedulerProfile" in answer["message"]


def test_the_definition_knows_every_extension_point_and_is_shown_in_columns(profiles: Profiles) -> None:
    """Its schema and the configuration's types may not part."""
    (version,) = profiles.client.ok("GET", CRD)["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    assert spec.keys() == {"schedulerName", "percentageOfNodesToScore", "plugins", "pluginConfig"}
    assert spec["plugins"]["properties"].keys() == set(WIRE_POINTS.values())
    conditions = profiles.client.ok("GET", CRD)["status"]["conditions"]
    found = {c["type"]: c["status"] for c in conditions}
    assert (found["Established"], found.get("NonStructuralSchema", "False")) == ("True", "False")
    names = [column["name"] for column in version["additionalPrinterColumns"]]
    assert names == ["Scheduler", "Ready", "Reason", "Scheduled", "Serving", "Age"]


def _told(cluster: Cluster, name: str, message: str) -> Any:
    found = condition(cluster.get(name))
    return found if found is not None and found["message"] == message else None
