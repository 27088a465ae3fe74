"""The rendered manifests at work on the real API server: installed, run with their own identity, scheduled with, removed.

There is no kubelet and no container engine here, so the pods of the Deployment are run by `installed`, in sandboxes of
what the Dockerfile makes. Everything else is real: Helm, the API server, RBAC, tokens, the volume controllers.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from scheduler.testing.pod_builder import PodBuilder
from tests.chart.generated import ALL_IN_ONE
from tests.chart.image import Image
from tests.chart.installed import InstalledPod, make_account
from tests.chart.renderers.build import binary_dir
from tests.chart.rendering import (
    CHART,
    REPOSITORY,
    VALUE_SETS,
    Manifest,
    RenderError,
    documents,
    helm,
    helm_template,
    identity,
    rendered,
)
from tests.controlplane.cluster import HOST, UNTHROTTLED, ControlPlane
from tests.integration.api import Cluster, eventually
from tests.integration.audit import Audit, Right, audit_flags, granted
from tests.integration.storage import CONTROLLERS, Provisioner, storage_of

RELEASE, NAMESPACE = "audited", "scheduling"
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:{RELEASE}-podium"
INSTALLED: dict[str, Any] = {
    "tls": {"mode": "secret", "secretName": "serving"},
    "options": {"bindConcurrency": 16},
    "liveProfiles": {"enabled": True},
    "rbac": {"dynamicResources": True},
    "serviceMonitor": {"enabled": True},
    "prometheusRule": {"enabled": True},
    "grafanaDashboard": {"enabled": True},
    "networkPolicy": {"enabled": True},
    "service": {"annotations": {"note": "everything that has rights or kinds of its own is on"}},
}
UNUSED = {
    "get pods": "a pod is read back when its binding had no answer; tests/integration/test_bind_outcomes.py does so",
    "patch events.events.k8s.io": "a series is patched when the same event comes again six minutes later",
    "list resourceslices.resource.k8s.io": "for plugins that look at devices; off by default",
    "watch resourceslices.resource.k8s.io": "for plugins that look at devices; off by default",
}
"""Rights that the run below does not use, with the reason why they are granted."""

DISCOVERY = re.compile(r"/api|/apis|/api/v1|/apis/[^/]+/[^/]+")

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def audit_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audit")


@pytest.fixture(scope="module")
def plane(audit_directory: Path) -> Iterator[ControlPlane]:
    """A control plane that logs what the installed scheduler asks for and knows the monitors' and certificates' kinds."""
    flags = audit_flags(audit_directory, [ACCOUNT])
    with ControlPlane.start(extra_flags=(*UNTHROTTLED, *flags)) as started:
        for file in sorted((binary_dir() / "crds").glob("*.yaml")):
            started.apply(file)
        for name in (NAMESPACE, "leases", "monitoring"):
            started.apply_object({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for kind in ("monitoring.coreos.com/v1", "cert-manager.io/v1"):
            eventually(lambda: started.request("GET", f"/apis/{kind}")[0] == 200, kind)  # noqa: B023  used at once
        yield started


@pytest.fixture
def cluster(plane: ControlPlane) -> Iterator[Cluster]:
    with contextlib.closing(Cluster(plane, "installed")) as made:
        yield made


@contextlib.contextmanager
def running(plane: ControlPlane, manifests: list[Manifest], image: Image) -> Iterator[InstalledPod]:
    """Run one replica, and show its log if something goes wrong."""
    pod = InstalledPod(plane, manifests, image)
    try:
        pod.wait_ready(timeout_s=90)
        yield pod
    except BaseException:
        print(pod.log()[-6000:])
        raise
    finally:
        pod.process.stop()


def helm_on(plane: ControlPlane, *arguments: str) -> str:
    """Run Helm as administrator of the control plane."""
    return helm(*arguments, "--kubeconfig", str(plane.admin_kubeconfig), "--namespace", NAMESPACE)


# --- the manifests ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value_set", VALUE_SETS)
def test_the_server_takes_every_object(value_set: str, plane: ControlPlane) -> None:
    """Strictly, as a dry run: monitors, rules and certificates too, by their projects' own definitions."""
    for manifest in rendered(value_set):
        plane.apply_object(manifest, dry_run=True)


def test_a_newcomers_path(plane: ControlPlane, cluster: Cluster, image: Image) -> None:
    """README: apply the one file, send a pod that names the scheduler, ask the doctor, scrape with a token that may."""
    plane.apply(ALL_IN_ONE)
    manifests = documents(ALL_IN_ONE.read_text())
    with running(plane, manifests, image) as pod:
        cluster.create(cluster.node())
        hello = readme_pod()
        assert hello["spec"]["schedulerName"] == "podium"
        hello["metadata"]["namespace"] = cluster.namespace
        cluster.create_manifest(hello)
        assert cluster.wait_bound() == {"hello": f"{cluster.namespace}-n"}
        eventually(lambda: cluster.events("hello", "Scheduled"), "the event that tells of it")
        doctor = pod.exec("podium", "doctor")
        assert (doctor.returncode, doctor.stderr) == (0, ""), doctor.stdout + doctor.stderr
        assert {line.split()[0] for line in doctor.stdout.splitlines()} == {"ok"}
        assert "/etc/podium/config.yaml" in doctor.stdout
        assert "system:serviceaccount:kube-system:podium" in doctor.stdout
        allowed = make_account(plane, cluster.namespace, "prometheus", "podium-metrics-reader")
        curious = make_account(plane, cluster.namespace, "curious")
        status, text = pod.get_as(allowed, "/metrics")
        assert status == 200
        assert 'scheduler_schedule_attempts_total{profile="podium",result="scheduled"} 1.0' in text
        assert pod.get_as(curious, "/metrics")[0] == 403
        assert pod.get_as(allowed, "/configz")[0] == 403
        assert pod.terminate()[0] == 0
    assert lease_holder(plane, "kube-system", "podium") == "", "the lease was released"


# --- the chart -------------------------------------------------------------------------------------------------------


def test_the_chart_from_install_to_uninstall(
    plane: ControlPlane, cluster: Cluster, image: Image, audit_directory: Path
) -> None:
    """Installed by Helm with everything on: no right is missing, none is idle without a reason, nothing stays behind."""
    authority = serving_secret(plane)
    (plane.directory / "values.yaml").write_text(json.dumps(INSTALLED))
    notes = helm_on(plane, "install", RELEASE, str(CHART), "--values", str(plane.directory / "values.yaml"))
    assert f"spec.schedulerName: {RELEASE}-podium" in notes
    manifests = documents(helm_on(plane, "get", "manifest", RELEASE))
    cluster.scheduler = f"{RELEASE}-podium"
    with running(plane, manifests, image) as pod:
        assert served_by(pod, authority), "the certificate is the Secret's"
        use_every_feature(plane, cluster)
        metrics = make_account(plane, cluster.namespace, "prometheus", f"{RELEASE}-podium-metrics-reader")
        assert pod.get_as(metrics, "/metrics")[0] == 200
        assert pod.terminate()[0] == 0
        assert re.search(r"forbidden|Forbidden", pod.log()) is None

    audit = Audit(audit_directory)
    assert audit.refused(ACCOUNT) == [], "rights that are missing in the chart"
    idle = granted(m for m in manifests if m["kind"] in ("ClusterRole", "Role")) - audit.used(ACCOUNT)
    assert {str(right) for right in idle} == set(UNUSED), "rights that nothing uses, against the list of reasons"
    beyond = {path for path in audit.other_paths(ACCOUNT) if not DISCOVERY.fullmatch(path)}
    assert beyond <= {"/readyz"}, "requests beyond resources and discovery, which everybody may read"
    assert Right("get", "", "configmaps") in audit.used(ACCOUNT), "the authorities of the cluster's clients were read"

    with pytest.raises(RenderError, match="exists and cannot be imported"):
        helm(
            "install", RELEASE, str(CHART), "--namespace", "leases", "--kubeconfig", str(plane.admin_kubeconfig)
        )  # a second release of the same name would answer to the same schedulerName
    helm_on(plane, "uninstall", RELEASE)
    assert [identity(m) for m in manifests if exists(plane, m)] == []
    assert lease_holder(plane, NAMESPACE, f"{RELEASE}-podium") == "", "only the lease stays, and it is free"


def test_replicas_take_turns(plane: ControlPlane, cluster: Cluster, image: Image) -> None:
    """Two replicas of one Deployment: one leads; when it ends, the other takes over at once."""
    values = {"fullnameOverride": "pair", "priorityClassName": "system-cluster-critical"}
    manifests = helm_template(values=values, namespace=NAMESPACE)
    for manifest in manifests:
        plane.apply_object(manifest)
    cluster.scheduler = "pair"
    cluster.create(cluster.node())
    with running(plane, manifests, image) as first:
        eventually(lambda: lease_holder(plane, NAMESPACE, "pair"), "a leader")
        with running(plane, manifests, image) as second:
            cluster.create(cluster.pod("early"))
            cluster.wait_bound("early")
            before = lease_holder(plane, NAMESPACE, "pair")
            assert first.terminate()[0] == 0
            eventually(lambda: lease_holder(plane, NAMESPACE, "pair") not in ("", before), "the other one to lead")
            cluster.create(cluster.pod("late"))
            cluster.wait_bound("late")
            assert second.terminate()[0] == 0


# --- what the tests say in one word ----------------------------------------------------------------------------------


def use_every_feature(plane: ControlPlane, cluster: Cluster) -> None:
    """Bind, fail, preempt, choose a volume, have one made."""
    manager = plane.start_controller_manager(CONTROLLERS)
    try:
        cluster.create(*(cluster.node(f"n{i}") for i in range(2)))
        cluster.create(*(cluster.pod(f"p{i}").requests(cpu="100m") for i in range(5)))
        cluster.create(cluster.pod("huge").requests(cpu="64"))
        cluster.wait_bound(*(f"p{i}" for i in range(5)))
        cluster.wait_unschedulable("huge")
        _use_volumes(plane, cluster)
        _preempt(cluster)
        _follow_a_profile(cluster)
    finally:
        manager.stop()


def _use_volumes(plane: ControlPlane, cluster: Cluster) -> None:
    with storage_of(cluster) as storage:
        local = storage.storage_class()
        storage.wait_available(storage.local_volume("v", local, "n1"))
        made = storage.storage_class("made", provisioner="podium.test/provisioner")
        with Provisioner(plane, storage, made) as provisioner:
            provisioner.open()
            storage.claim("there", local)
            storage.claim("made", made)
            cluster.create(cluster.pod("there").claim("there"), cluster.pod("made").claim("made"))
            cluster.wait_bound("there", "made", timeout_s=60)


def _preempt(cluster: Cluster) -> None:
    lesser, greater = cluster.priority_class("lesser", 1), cluster.priority_class("greater", 1000, preempts=True)

    def filling(name: str, priority_class: str) -> PodBuilder:
        return cluster.pod(name).requests(cpu="3").node_selector({"kubernetes.io/hostname": f"{cluster.namespace}-n0"})

    manifests = [
        filling(name, priority_class).create_manifest()
        for name, priority_class in (("victim", lesser), ("preemptor", greater))
    ]
    for manifest, priority_class in zip(manifests, (lesser, greater), strict=True):
        manifest["spec"]["priorityClassName"] = priority_class
        cluster.create_manifest(manifest)
        if priority_class == lesser:
            cluster.wait_bound("victim")
    eventually(lambda: cluster.get("victim")["metadata"].get("deletionTimestamp"), "the victim to be deleted")


def _follow_a_profile(cluster: Cluster) -> None:
    """A SchedulerProfile is served at once; one that is wrong says so in its status."""
    path = "/apis/scheduling.podium.dev/v1alpha1/schedulerprofiles"
    bad = {"plugins": {"multiPoint": {"enabled": [{"name": "NoSuchPlugin"}]}}}
    for name, spec in (("live", {}), ("wrong", bad)):
        body = {
            "apiVersion": "scheduling.podium.dev/v1alpha1",
            "kind": "SchedulerProfile",
            "metadata": {"name": name},
            "spec": {"schedulerName": f"{cluster.namespace}-{name}", **spec},
        }
        cluster.client.ok("POST", path, body)
    cluster.create(cluster.pod("follower").scheduler(f"{cluster.namespace}-live"))
    cluster.wait_bound("follower")
    told = eventually(
        lambda: cluster.client.ok("GET", f"{path}/wrong").get("status", {}).get("conditions"), "a refusal in the status"
    )
    assert "NoSuchPlugin" in json.dumps(told)
    for name in ("live", "wrong"):
        cluster.client.ok("DELETE", f"{path}/{name}")


def readme_pod() -> Manifest:
    """Return the pod of the README."""
    text = (REPOSITORY / "README.md").read_text()
    (found,) = [d for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL) for d in documents(block)]
    return found


def serving_secret(plane: ControlPlane) -> trustme.CA:
    """Put a serving certificate into a Secret; returns who issued it."""
    authority = trustme.CA()
    pair = authority.issue_cert(HOST)
    chain = b"".join(blob.bytes() for blob in pair.cert_chain_pems)
    data = {"tls.crt": chain, "tls.key": pair.private_key_pem.bytes()}
    plane.apply_object(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/tls",
            "metadata": {"name": "serving", "namespace": NAMESPACE},
            "data": {name: base64.b64encode(content).decode() for name, content in data.items()},
        }
    )
    return authority


def served_by(pod: InstalledPod, authority: trustme.CA) -> bool:
    """Say whether the daemon's certificate is one of this authority."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return pod.answers_with(context)


def lease_holder(plane: ControlPlane, namespace: str, name: str) -> str:
    """Return who holds a lease; "" if nobody does."""
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}"
    status, answer = plane.request("GET", path)
    return str(answer["spec"].get("holderIdentity") or "") if status == 200 else ""


def exists(plane: ControlPlane, manifest: Manifest) -> bool:
    """Say whether an object is (still) there."""
    deadline = time.monotonic() + 20
    while (found := plane.request("GET", plane.object_path(manifest))[0] == 200) and time.monotonic() < deadline:
        time.sleep(0.1)
    return found
