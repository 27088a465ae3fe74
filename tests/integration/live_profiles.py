"""SchedulerProfile objects on the real API server: the definition, the rights, and the few calls that tests need."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tests.controlplane.cluster import REPOSITORY, ControlPlane
from tests.integration.api import Client, Json, eventually
from tests.integration.daemon import Daemon

CRD_FILE = REPOSITORY / "deploy" / "crds" / "schedulerprofiles.yaml"
COMPONENT_FILE = REPOSITORY / "deploy" / "components" / "live-profiles" / "kustomization.yaml"
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/schedulerprofiles.scheduling.podium.dev"
COLLECTION = "/apis/scheduling.podium.dev/v1alpha1/schedulerprofiles"
USER = "podium-live"
MERGE = "application/merge-patch+json"


def options_file(directory: Path, resync_s: float = 30.0) -> list[str]:
    """Write an options file that switches live profiles on; returns the flags that name it."""
    path = directory / "options.yaml"
    header = "apiVersion: podium.dev/v1alpha1\nkind: SchedulerOptions\n"
    path.write_text(f"{header}liveProfiles: {{enabled: true, resyncSeconds: {resync_s}}}\n")
    return ["--options", str(path)]


def make_identity(plane: ControlPlane) -> Path:
    """Return a kubeconfig with the rights of deploy/all-in-one.yaml and of the component, and no others."""
    kubeconfig = plane.scheduler_identity(USER)
    component = yaml.safe_load(COMPONENT_FILE.read_text())
    patches = [patch["patch"] for patch in component["patches"] if patch["target"]["kind"] == "ClusterRole"]
    rules = [step["value"] for patch in patches for step in yaml.safe_load(patch)]
    group = "rbac.authorization.k8s.io"
    plane.apply_object({"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": USER}, "rules": rules})
    plane.apply_object(
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": USER},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": USER},
            "subjects": [{"kind": "User", "name": USER, "apiGroup": group}],
        }
    )
    return kubeconfig


class Profiles:
    """The objects, as administrator; those that a test made are deleted when it ends."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.client = Client(plane)
        self._made: set[str] = set()

    def define(self) -> None:
        """Install the definition and wait until it is served."""
        self.plane.apply(CRD_FILE)
        eventually(lambda: self.client.call("GET", COLLECTION)[0] == 200, "the definition to be served")

    def undefine(self) -> None:
        """Remove the definition, and every object with it."""
        self.client.call("DELETE", CRD)
        eventually(lambda: self.client.call("GET", COLLECTION)[0] == 404, "the definition to be gone")

    def try_create(self, name: str, **spec: Any) -> tuple[int, Any]:
        """Create an object under its scheduler's name (or ``schedulerName``); returns status and answer."""
        self._made.add(name)
        body = {"metadata": {"name": name}, "spec": {"schedulerName": name, **spec}}
        body |= {"apiVersion": "scheduling.podium.dev/v1alpha1", "kind": "SchedulerProfile"}
        return self.client.call("POST", f"{COLLECTION}?fieldValidation=Strict", body)

    def create(self, name: str, **spec: Any) -> None:
        status, answer = self.try_create(name, **spec)
        assert status == 201, answer

    def change(self, name: str, **spec: Any) -> None:
        self.client.ok("PATCH", f"{COLLECTION}/{name}", {"spec": spec}, content_type=MERGE)

    def delete(self, name: str) -> None:
        self.client.ok("DELETE", f"{COLLECTION}/{name}")

    def status(self, name: str) -> Json:
        status, found = self.client.call("GET", f"{COLLECTION}/{name}")
        return found.get("status", {}) if status == 200 else {}

    def wait(self, name: str, reason: str, *, generation: int | None = None, timeout_s: float = 30.0) -> Json:
        """Wait until the Ready condition has this reason (for this generation); returns the status."""

        def probe() -> Json | None:
            status = self.status(name)
            conditions = status.get("conditions", ())
            is_there = [c["reason"] for c in conditions if c["type"] == "Ready"] == [reason]
            return status if is_there and generation in (None, status["observedGeneration"]) else None

        return eventually(probe, f"{name} to be {reason}", timeout_s=timeout_s)

    def close(self) -> None:
        """Delete what was made."""
        for name in self._made:
            self.client.call("DELETE", f"{COLLECTION}/{name}")
        self.client.close()


def lines(daemon: Daemon) -> str:
    """Return what the daemon says about live profiles in /readyz?verbose."""
    status, text = daemon.health("/readyz?verbose")
    return "\n".join(line for line in text.splitlines() if "live profiles" in line) if status else ""
