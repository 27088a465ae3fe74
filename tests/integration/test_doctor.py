"""`podium doctor` on the real API server: what its RBAC and its leases make of a scheduler."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from scheduler.app.rights import RIGHTS
from tests.controlplane.cluster import ControlPlane
from tests.faults.rights import Right, identity_without
from tests.integration.api import Cluster, Json, eventually
from tests.integration.conftest import StartDaemon
from tests.integration.daemon import SCHEDULER_USER


def ask(*flags: str) -> tuple[int, str, str]:
    """Run the command; returns exit code, standard output and standard error."""
    command = [sys.executable, "-m", "scheduler", "doctor", *flags]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


def doctor(kubeconfig: Path, *flags: str) -> tuple[int, list[Json]]:
    """Return exit code and checks."""
    code, out, err = ask("--kubeconfig", str(kubeconfig), "-o", "json", *flags)
    assert out, err
    return code, json.loads(out)["checks"]


def missing(checks: list[Json]) -> list[str]:
    return [found["right"] for found in checks if found["status"] == "missing"]


def wait_led(cluster: Cluster, lease: str) -> str:
    """Wait until the lease is held; returns by whom."""

    def holder() -> str | None:
        status, found = cluster.client.call("GET", lease)
        return found["spec"].get("holderIdentity") if status == 200 else None

    return eventually(holder, "a leader")


def test_the_deployed_role_is_all_right(
    cluster: Cluster, start_daemon: StartDaemon, identity: Path, lease: str, control_plane: ControlPlane
) -> None:
    """As the scheduler itself and as an administrator on its behalf: every line ok, exit 0, once somebody leads."""
    code, checks = doctor(identity)
    assert (code, missing(checks)) == (1, [])
    assert [found["text"][:13] for found in checks if found["status"] != "ok"] == ["nobody leads,"]

    start_daemon(cluster.scheduler, elect=True)
    holder = wait_led(cluster, lease)
    cluster.create(cluster.pod("lost").scheduler("Podium"))
    for flags in ((identity,), (control_plane.admin_kubeconfig, "--as", SCHEDULER_USER)):
        code, checks = doctor(*flags)
        assert (code, [found for found in checks if found["status"] != "ok"]) == (0, [])
        assert len([found for found in checks if found["check"] == "right"]) == len(RIGHTS)
        texts = {found["check"]: found["text"] for found in checks}
        assert texts["lease"].startswith(f"{holder} leads, renewed ")
        assert "Podium 1" in texts["pods"]
        assert SCHEDULER_USER in [found["subject"] for found in checks]


def test_one_right_is_taken_away(control_plane: ControlPlane, lease: str) -> None:
    """It is named, and no other; exit 1."""
    del lease
    kubeconfig = identity_without(control_plane, "podium-deprived", Right(("create",), "pods/binding"))
    # The API server's authorizer learns of new roles a moment later.
    eventually(lambda: missing(doctor(kubeconfig)[1]) == ["create pods/binding"], "the right to be missed alone")
    code, out, _ = ask("--kubeconfig", str(kubeconfig))
    assert code == 1
    (line,) = [line for line in out.splitlines() if line.startswith("missing")]
    print(out)
    assert "create pods/binding" in line
    assert "no pod is bound" in line


def test_a_stranger_has_no_rights(control_plane: ControlPlane) -> None:
    """Impersonated: nothing is granted, everything is named; what cannot be seen is a warning."""
    code, checks = doctor(control_plane.admin_kubeconfig, "--as", "stranger", "--as-group", "system:authenticated")
    assert code == 1
    assert missing(checks) == [str(right) for right in RIGHTS]
    assert {found["status"] for found in checks if found["check"] in ("lease", "pods")} == {"warning"}


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        pytest.param(("--as", "somebody"), 'User "podium" cannot impersonate', id="who may not impersonate"),
        pytest.param(("--master", "https://127.0.0.1:1"), "no connection", id="nobody listens"),
        pytest.param(("--context", "nowhere"), "contexts has no entry named 'nowhere'", id="no such context"),
    ],
)
def test_what_cannot_be_asked_is_one_line(identity: Path, flags: tuple[str, ...], words: str) -> None:
    code, out, err = ask("--kubeconfig", str(identity), *flags)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert words in err


def test_credentials_that_nobody_knows(control_plane: ControlPlane, identity: Path, tmp_path: Path) -> None:
    """401."""
    kubeconfig = tmp_path / "kubeconfig"
    certificate = control_plane.directory / f"{SCHEDULER_USER}.crt"
    key = control_plane.directory / f"{SCHEDULER_USER}.key"
    text = identity.read_text()
    kubeconfig.write_text(
        text.replace(f"client-certificate: {certificate}", "token: wrong").replace(f"client-key: {key}", "")
    )
    assert kubeconfig.read_text() != text
    code, _, err = ask("--kubeconfig", str(kubeconfig))
    assert (code, err.count("\n")) == (1, 1)
    assert err.startswith("podium doctor: the credentials are not accepted: 401")
