"""Each deployed right is taken away: the rest goes on as `docs/reference/rights.md` says, and what is missing is named."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from scheduler.testing.pod_builder import PodBuilder
from tests.controlplane.cluster import ControlPlane
from tests.faults.bench import FaultBench, fault
from tests.faults.proxy import DropAnswer, FaultProxy, HoldLines, Lines, Match, Rule
from tests.faults.results import exactly
from tests.faults.rights import Right, deployed, documented, grant_all, identity_without
from tests.integration.api import Cluster, Json, condition, eventually
from tests.integration.daemon import LEASE, Daemon
from tests.integration.storage import MERGE, SELECTED_NODE, VOLUMES, Storage, storage_of

LEASE_PATH = f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{LEASE}"
SIDE_BY_SIDE = 3
PATIENCE_S = 90.0
NO_STORAGE = "did not have enough free storage"
_election = threading.Lock()


def test_the_page_has_a_row_for_each_right() -> None:
    """Those of deploy/all-in-one.yaml, no more and no fewer."""
    assert documented().keys() == deployed()


def is_named(kubeconfig: Path, right: Right) -> bool:
    """Tell whether `podium doctor` names the right that an identity lacks, names no other, and ends with 1."""
    command = [sys.executable, "-m", "scheduler", "doctor", "--kubeconfig", str(kubeconfig), "-o", "json"]

    def diagnosed() -> bool:
        # Roles are new; the API server's authorizer learns of them a moment later, one after another.
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.stdout, f"the doctor said nothing: {done.stderr}"
        checks = json.loads(done.stdout)["checks"]
        return done.returncode == 1 and [it["right"] for it in checks if it["status"] == "missing"] == [str(right)]

    try:
        return eventually(diagnosed, f"{right} to be named alone", timeout_s=PATIENCE_S, poll_s=1.0)
    except AssertionError as error:
        print(error)
        return False


class Deprived:
    """A scheduler without one right, in a namespace of its own."""

    def __init__(
        self, plane: ControlPlane, right: Right, number: int, proxy: Callable[[], FaultProxy] | None = None
    ) -> None:
        self.plane = plane
        self.right = right
        self.cluster = Cluster(plane, f"right-{number}")
        self.user = self.cluster.namespace
        kubeconfig = identity_without(plane, self.user, right)
        self.is_named = is_named(kubeconfig, right)
        if proxy is not None:
            kubeconfig = proxy().kubeconfig(kubeconfig)
        is_elected = right.resource == "leases"
        self.cluster.create(self.cluster.node(cpu="4"))
        self.daemon = Daemon(plane, kubeconfig, profiles=[self.cluster.scheduler], elect=is_elected)

    def pod(self, name: str = "p") -> PodBuilder:
        return self.cluster.pod(name).node_selector(test=self.cluster.namespace)

    def close(self) -> None:
        self.daemon.process.stop()
        self.cluster.close()

    # --- what is seen ------------------------------------------------------------------------------------------------

    def ready(self) -> None:
        self.daemon.wait_ready(PATIENCE_S)

    def binds(self, name: str = "p") -> None:
        if name not in {pod["metadata"]["name"] for pod in self.cluster.pods()}:
            self.cluster.create(self.pod(name))
        self.cluster.wait_bound(name, timeout_s=PATIENCE_S)

    def is_pending(self, name: str = "p") -> bool:
        return "nodeName" not in self.cluster.get(name)["spec"]

    def told(self, name: str, words: str) -> None:
        """Wait for an event about a pod."""
        eventually(lambda: any(words in event.get("note", "") for event in self.cluster.events(name)),
                   f"an event on {name} with {words!r}:\n{self.daemon.log()[-3000:]}", timeout_s=PATIENCE_S)  # fmt: skip

    def logged(self, words: str) -> None:
        eventually(lambda: words in self.daemon.log(), f"{words!r} in the log:\n{self.daemon.log()[-3000:]}",
                   timeout_s=PATIENCE_S)  # fmt: skip

    def says(self, words: str) -> None:
        """Wait for a line of /readyz?verbose."""
        eventually(lambda: words in self.daemon.health("/readyz?verbose")[1], f"{words!r} in /readyz?verbose",
                   timeout_s=PATIENCE_S)  # fmt: skip

    def refusal(self) -> str:
        """Return the API server's words about the missing right, as they stand in our log."""
        return (
            f'cannot {self.right.verbs[0]} resource \\"{self.right.resource}\\" in API group \\"{self.right.group}\\"'
        )


def reading(scheduler: Deprived) -> None:
    """A kind that cannot be read is named with the verbs to grant; a needed one keeps the scheduler from deciding."""
    plural = scheduler.right.resource
    scheduler.says(f"grant the verbs list and watch on {plural}")
    scheduler.logged(scheduler.refusal())
    if documented()[scheduler.right].startswith("not ready"):
        scheduler.cluster.create(scheduler.pod())
        assert scheduler.daemon.health("/readyz")[0] == 500
        assert scheduler.is_pending()
        grant_all(scheduler.plane, scheduler.user)
        scheduler.ready()
    else:
        scheduler.ready()
    scheduler.binds()
    if plural in WITHOUT_A_KIND:
        WITHOUT_A_KIND[plural](scheduler)


def read_again(scheduler: Deprived) -> None:
    """Give the kind back, and wait until it has been read."""
    grant_all(scheduler.plane, scheduler.user)
    eventually(lambda: "grant the verbs" not in scheduler.daemon.health("/readyz?verbose")[1],
               f"{scheduler.right} to be used", timeout_s=PATIENCE_S)  # fmt: skip


def not_spread(scheduler: Deprived) -> None:
    """All but default spreading speaks for the node where a pod's fellows are; who owns them matters once it is known."""
    cluster = scheduler.cluster
    fellow = owned_pods(scheduler)
    cluster.create(cluster.node("other", cpu="4"))
    half = scheduler.pod("half").requests(cpu="2", memory="4Gi")
    cluster.create(half.on(f"{cluster.namespace}-other"))
    cluster.create(*(fellow(f"old{number}").on(f"{cluster.namespace}-n") for number in range(6)))
    cluster.create(fellow("unaware"))
    assert cluster.wait_bound("unaware", timeout_s=PATIENCE_S)["unaware"].endswith("-n")
    read_again(scheduler)
    cluster.create(fellow("aware"))
    assert cluster.wait_bound("aware", timeout_s=PATIENCE_S)["aware"].endswith("-other")


def owned_pods(scheduler: Deprived) -> Callable[[str], PodBuilder]:
    """Create an object of the kind that cannot be read; returns what makes its pods."""
    right, cluster = scheduler.right, scheduler.cluster
    root = f"/apis/{right.group}/v1" if right.group else "/api/v1"
    owner = cluster.client.ok("POST", f"{root}/namespaces/{cluster.namespace}/{right.resource}", OWNERS[right.resource])
    reference = {key: owner["metadata"][key] for key in ("name", "uid")} | {"controller": True}
    reference |= {"apiVersion": owner["apiVersion"], "kind": owner["kind"]}
    references = [] if right.resource == "services" else [reference]
    return lambda name: scheduler.pod(name).label("app", "a").set("metadata.ownerReferences", references)


def capacity_is_not_looked_at(scheduler: Deprived) -> None:
    """A driver publishes capacities, and has none: nobody minds until it is known that it publishes any."""
    with published_claims(scheduler) as (storage, claim_of):
        claim_of("unaware")
        assert storage.wait_selected("unaware") == f"{scheduler.cluster.namespace}-n"
        read_again(scheduler)
        claim_of("aware")
        scheduler.told("aware", NO_STORAGE)


def no_capacity_is_known(scheduler: Deprived) -> None:
    """A driver publishes capacities, and has enough: its volumes have room nowhere until that can be read."""
    with published_claims(scheduler) as (storage, claim_of):
        storage.capacity("enough", f"{scheduler.cluster.namespace}-local", "n", "100Gi")
        claim_of("waiting")
        scheduler.told("waiting", NO_STORAGE)
        assert scheduler.is_pending("waiting")
        grant_all(scheduler.plane, scheduler.user)
        eventually(lambda: SELECTED_NODE in storage.get_claim("waiting")["metadata"].get("annotations", {}),
                   f"a node to be selected:\n{scheduler.daemon.log()[-3000:]}", timeout_s=2 * PATIENCE_S)  # fmt: skip


@contextlib.contextmanager
def published_claims(scheduler: Deprived) -> Iterator[tuple[Storage, Callable[[str], object]]]:
    """Make a driver that publishes capacities; yields what creates a claim of its class, and a pod with it."""
    with storage_of(scheduler.cluster) as storage:
        class_name = storage.storage_class(provisioner=storage.csi_driver("driver", storageCapacity=True))
        time.sleep(3.0)  # a watch that would tell of the driver is not the one that tells of claims

        def claim_of(name: str) -> None:
            storage.claim(name, class_name)
            scheduler.cluster.create(scheduler.pod(name).claim(name))

        yield storage, claim_of


def claim_is_waited_for(scheduler: Deprived) -> None:
    """A pod with a claim says why it waits; once the kind can be read its volume is chosen, without a restart."""
    with local_claim(scheduler) as volume:
        told = scheduler.cluster.wait_unschedulable("with-claim", timeout_s=PATIENCE_S)
        assert re.search(
            r"persistentvolumeclaim .* not found|persistent volumes to bind|unbound immediate", told["message"]
        )
        grant_all(scheduler.plane, scheduler.user)
        eventually(lambda: scheduler.cluster.client.ok("GET", volume)["spec"].get("claimRef"),
                   f"the volume to be chosen:\n{scheduler.daemon.log()[-3000:]}", timeout_s=2 * PATIENCE_S)  # fmt: skip


@contextlib.contextmanager
def local_claim(scheduler: Deprived) -> Iterator[str]:
    """A pod with a claim that waits for it, and a volume that would do; yields the volume's path."""
    storage = Storage(scheduler.cluster)
    try:
        name = storage.storage_class()
        path = f"{VOLUMES}/{storage.local_volume('v', name, 'n')}"
        # What the volume controller would say of it.
        scheduler.cluster.client.ok("PATCH", f"{path}/status", {"status": {"phase": "Available"}}, content_type=MERGE)
        storage.claim("c", name)
        scheduler.cluster.create(scheduler.pod("with-claim").claim("c"))
        yield path
    finally:
        storage.close()


def binding(scheduler: Deprived) -> None:
    scheduler.ready()
    scheduler.cluster.create(scheduler.pod())
    scheduler.told("p", 'cannot create resource "pods/binding"')
    assert scheduler.is_pending()
    grant_all(scheduler.plane, scheduler.user)
    scheduler.binds()


def conditions(scheduler: Deprived) -> None:
    scheduler.ready()
    scheduler.binds()
    scheduler.cluster.create(scheduler.pod("big").requests(cpu="64"))
    scheduler.told("big", "Insufficient cpu")
    scheduler.logged(scheduler.refusal())
    assert condition(scheduler.cluster.get("big")) is None


def reading_back(scheduler: Deprived) -> None:
    """The first binding's answer is swallowed, and the pod cannot be read: the watch settles it, ten seconds late."""
    scheduler.ready()
    scheduler.binds()
    scheduler.told("p", "Successfully assigned")
    scheduler.logged(scheduler.refusal())
    scheduler.binds("q")


def events(scheduler: Deprived) -> None:
    scheduler.ready()
    scheduler.binds()
    scheduler.logged(scheduler.refusal())
    assert scheduler.cluster.events("p") == []


def series(scheduler: Deprived) -> None:
    """A pod is tried whenever a node that it does not tolerate grows, always in vain: its event is not counted up."""
    scheduler.ready()
    scheduler.binds()
    scheduler.told("p", "Successfully assigned")
    cluster, sizes = scheduler.cluster, itertools.count(128)
    cluster.create(cluster.node("closed", cpu="100").taint("closed"), scheduler.pod("big").requests(cpu="64"))
    scheduler.told("big", "untolerated taint")

    def refused() -> bool:
        node = f"/api/v1/nodes/{cluster.namespace}-closed/status"
        cluster.patch(node, {"status": {"allocatable": {"cpu": str(next(sizes))}}})
        return scheduler.refusal() in scheduler.daemon.log()

    eventually(refused, "an event to come again", timeout_s=PATIENCE_S, poll_s=1.0)
    assert not any(event.get("series") for event in cluster.events("big"))
    scheduler.binds("q")


def tokens(scheduler: Deprived) -> None:
    scheduler.ready()
    assert scheduler.daemon.get("/metrics", anonymous=True, headers={"Authorization": "Bearer x.y.z"})[0] == 401
    assert scheduler.daemon.get("/metrics")[0] == 200
    scheduler.logged(scheduler.refusal())
    scheduler.binds()


def access(scheduler: Deprived) -> None:
    scheduler.ready()
    assert scheduler.daemon.get("/metrics")[0] == 500
    assert scheduler.daemon.health("/livez")[0] == 200
    scheduler.logged(scheduler.refusal())
    scheduler.binds()


def authorities(scheduler: Deprived) -> None:
    scheduler.ready()
    assert scheduler.daemon.get("/metrics")[0] == 403, "the client's certificate is not asked for"
    scheduler.logged(scheduler.refusal())
    scheduler.binds()


def election(scheduler: Deprived) -> None:
    """Without get and create nobody begins to lead; without update the leader ends when it cannot renew."""
    (verb,) = scheduler.right.verbs
    scheduler.logged(scheduler.refusal())
    if verb == "update":
        assert scheduler.daemon.wait_exit(PATIENCE_S) == 1
        assert "leader election lost" in scheduler.daemon.log()
        return
    scheduler.ready()
    scheduler.cluster.create(scheduler.pod())
    assert scheduler.daemon.metrics().total("leader_election_master_status") == 0
    assert scheduler.is_pending()
    grant_all(scheduler.plane, scheduler.user)
    scheduler.binds()
    assert scheduler.daemon.metrics().total("leader_election_master_status") == 1


def eviction(scheduler: Deprived) -> None:
    scheduler.ready()
    cluster = scheduler.cluster
    low, high = cluster.priority_class("low", 1), cluster.priority_class("high", 1000, preempts=True)
    cluster.create(scheduler.pod("low").requests(cpu="4").set("spec.priorityClassName", low))
    cluster.wait_bound("low", timeout_s=PATIENCE_S)
    cluster.create(scheduler.pod("high").requests(cpu="4").set("spec.priorityClassName", high))
    scheduler.logged(scheduler.refusal())
    cluster.wait_unschedulable("high", timeout_s=PATIENCE_S)
    assert "deletionTimestamp" not in cluster.get("low")["metadata"]
    assert scheduler.is_pending("high")


def binding_a_volume(scheduler: Deprived) -> None:
    """A volume that waits for its consumer cannot be bound; pods without claims do not notice."""
    scheduler.ready()
    with local_claim(scheduler) as volume:
        scheduler.told("with-claim", 'cannot patch resource "persistentvolumes"')
        assert scheduler.is_pending("with-claim")
        assert "claimRef" not in scheduler.cluster.client.ok("GET", volume)["spec"]
        scheduler.binds()


def asking_for_a_volume(scheduler: Deprived) -> None:
    """A volume that is made on demand cannot be asked for; pods without claims do not notice."""
    scheduler.ready()
    storage = Storage(scheduler.cluster)
    try:
        storage.claim("c", storage.storage_class(provisioner="example.com/maker"))
        scheduler.cluster.create(scheduler.pod("with-claim").claim("c"))
        scheduler.told("with-claim", 'cannot patch resource "persistentvolumeclaims"')
        assert scheduler.is_pending("with-claim")
        scheduler.binds()
    finally:
        storage.close()


PODS = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
SELECTED = {"selector": {"matchLabels": {"app": "a"}}, "template": PODS}
OWNERS: dict[str, Json] = {
    "services": {"metadata": {"name": "s"}, "spec": {"selector": {"app": "a"}, "ports": [{"port": 80}]}},
    "replicationcontrollers": {"metadata": {"name": "rc"}, "spec": {"selector": {"app": "a"}, "template": PODS}},
    "replicasets": {"metadata": {"name": "rs"}, "spec": SELECTED},
    "statefulsets": {"metadata": {"name": "ss"}, "spec": SELECTED | {"serviceName": "s"}},
}

WITHOUT_A_KIND: dict[str, Callable[[Deprived], None]] = {
    **dict.fromkeys(OWNERS, not_spread),
    **dict.fromkeys(("persistentvolumes", "persistentvolumeclaims", "storageclasses"), claim_is_waited_for),
    "csidrivers": capacity_is_not_looked_at,
    "csistoragecapacities": no_capacity_is_known,
}

SPECIAL: dict[str, Callable[[Deprived], None]] = {
    "create pods/binding": binding,
    "patch pods/status": conditions,
    "get pods": reading_back,
    "create events.events.k8s.io": events,
    "patch events.events.k8s.io": series,
    "create tokenreviews.authentication.k8s.io": tokens,
    "create subjectaccessreviews.authorization.k8s.io": access,
    "create leases.coordination.k8s.io": election,
    "get leases.coordination.k8s.io": election,
    "update leases.coordination.k8s.io": election,
    "delete pods": eviction,
    "patch persistentvolumes": binding_a_volume,
    "patch persistentvolumeclaims": asking_for_a_volume,
    "get configmaps": authorities,
}


def swallowing(bench: FaultBench, stack: contextlib.ExitStack) -> FaultProxy:
    """Start a proxy that keeps the first binding's answer to itself, and what the watch says of it for ten seconds."""
    proxy = FaultProxy.start(bench.plane, seed=bench.seed, log_file=bench.directory / "proxy-rights.jsonl")
    stack.callback(proxy.stop)
    proxy.add(Rule(Match(verb="create", resource="pods/binding", nth=1), DropAnswer()))
    late = HoldLines(10.0, Lines(types=("MODIFIED",)))
    proxy.add(Rule(Match(verb="watch", resource="pods", window_s=(0.0, 60.0)), late))
    return proxy


def take_away(bench: FaultBench, right: Right, number: int) -> tuple[str, bool]:
    """Run a scheduler without the right and hold it to the page.

    Returns what went wrong, or nothing, and whether the doctor named the right.
    """
    with contextlib.ExitStack() as stack:
        if right.resource == "leases":
            stack.enter_context(_election)
            bench.plane.request("DELETE", LEASE_PATH)
        proxy = (lambda: swallowing(bench, stack)) if str(right) == "get pods" else None
        deprived = Deprived(bench.plane, right, number, proxy)
        stack.callback(deprived.close)
        try:
            (reading if right.is_reading else SPECIAL[str(right)])(deprived)
            is_lease_lost = str(right).startswith("update leases")
            assert deprived.daemon.process.is_running != is_lease_lost, "the process ended"
            assert "Traceback" not in deprived.daemon.log()
        except AssertionError as error:
            return f"without {right}: {error}", deprived.is_named
        return "", deprived.is_named


@pytest.mark.timeout(1200)
@fault(48, "each right of the deployed role taken away, one after another")
def test_each_right_is_missed_as_documented(bench: FaultBench) -> None:
    """No crash, the documented degradation, and a message that names the right, as does the doctor; a neighbour with all
    of them is at rest."""
    bench.scheduler("a", elect=False)
    bench.cluster.create(bench.cluster.node())
    load = bench.load(50, 10.0)
    rights = sorted(deployed())
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        seen = list(pool.map(lambda it: take_away(bench, it[1], it[0]), enumerate(rights)))
    wrong = [problem for problem, _ in seen if problem]
    unnamed = [str(right) for right, (_, named) in zip(rights, seen, strict=True) if not named]
    print("\n\n".join(wrong))
    load.wait_created()
    bench.settle()
    bench.figure("rights taken away", exactly(len(documented())), len(rights))
    bench.figure("not as documented", exactly(0), len(wrong))
    bench.figure("rights that the doctor did not name", exactly(0), len(unnamed))
    assert not unnamed, f"the doctor does not name, or not alone: {unnamed}"
    assert not wrong, re.sub(r"\n.*", "", "; ".join(wrong))
    bench.verdict()
