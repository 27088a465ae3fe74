"""Building the daemon: what flags and the options file change about it."""

import asyncio
import json

import pytest

from scheduler.app.daemon import Daemon
from scheduler.config.flags import complete, parse_flags
from scheduler.kube.credentials import FileCredentials
from scheduler.kube.errors import CredentialsError
from scheduler.serving.options import ServingError

OPTIONS = "apiVersion: podium.dev/v1alpha1\nkind: SchedulerOptions\n"


@pytest.fixture
def kubeconfig(tmp_path):
    """A kubeconfig whose user starts a program that answers with a token."""
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": "from-the-program"},
    }
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho '{json.dumps(credential)}'\n")
    program.chmod(0o700)
    user = {"exec": {"apiVersion": credential["apiVersion"], "command": str(program), "interactiveMode": "Never"}}
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": user}],
    }
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config))
    return path


def _completed(*argv, **files):
    named = {f"{name}.yaml": text.encode() for name, text in files.items()}
    return complete(parse_flags(argv), named.__getitem__)


def test_a_program_for_credentials_is_refused_with_advice(kubeconfig):
    """Whoever can write a kubeconfig must not be able to start programs in the daemon."""
    completed = _completed("--kubeconfig", str(kubeconfig))
    with pytest.raises(CredentialsError, match="set allowExecCredentials in the options file to allow it"):
        Daemon(completed)


def test_the_options_file_allows_a_program_for_credentials(kubeconfig):
    """Its token becomes the daemon's identity."""
    completed = _completed(
        "--kubeconfig", str(kubeconfig), "--options", "options.yaml", options=f"{OPTIONS}allowExecCredentials: true\n"
    )
    assert Daemon(completed)._credentials.token() == "from-the-program"


def test_flags_restrict_the_metrics():
    """--disabled-metrics leaves a family out, --allow-metric-labels folds other values."""
    completed = _completed(
        "--disabled-metrics=scheduler_preemption_victims",
        "--allow-metric-labels=scheduler_schedule_attempts_total,result=scheduled",
    )
    metrics = Daemon(completed, credentials=FileCredentials("https://127.0.0.1:1")).metrics
    metrics.attempt("error", "default-scheduler", 0.1)
    text = metrics.registry.render().decode()
    assert "scheduler_preemption_victims" not in text
    assert 'scheduler_schedule_attempts_total{profile="default-scheduler",result="unexpected"} 1' in text


def test_flags_of_the_server_reach_it():
    """A suite that nobody should serve is refused, where it once was ignored."""
    completed = _completed("--tls-cipher-suites=TLS_RSA_WITH_RC4_128_SHA", "--secure-port=1")
    daemon = Daemon(completed, credentials=FileCredentials("https://127.0.0.1:1"))
    with pytest.raises(ServingError, match="TLS_RSA_WITH_RC4_128_SHA not supported"):
        asyncio.run(daemon.run())
    assert daemon.scheduling.ended.done(), "the watches began before; they must not go on"
