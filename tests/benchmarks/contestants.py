"""Who is compared: kube-scheduler, Podium and the null scheduler, each as a process of its own.

kube-scheduler runs as administrator with client limits of 5,000 (and once with its own limits), Podium under exactly
the rights of ``deploy/all-in-one.yaml`` as an operator would start it. Both take part in leader election, serve HTTPS and
metrics, post events and log at verbosity 2.
"""

from __future__ import annotations

import compileall
import functools
import http.client
import ssl
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

import yaml

import scheduler
from tests.benchmarks import null_scheduler
from tests.benchmarks.api import Samples, parse_metrics
from tests.benchmarks.documents import OUTPUT
from tests.benchmarks.objects import SCHEDULER_NAME
from tests.controlplane.cluster import HOST, ControlPlane
from tests.controlplane.process import ChildProcess, free_ports

KUBE = "kube-scheduler"
KUBE_LIMITED = "kube-scheduler, default client limits"
PODIUM = "podium"
NULL = "null"
PROFILED = "podium, profiled"
PODIUM_COMMAND = Path(sys.executable).parent / "podium"
_PROFILES = [{"schedulerName": SCHEDULER_NAME}]
_USER = "podium"


@dataclass(slots=True)
class Running:
    """A started contestant.

    Attributes:
        process: its process.
        port: of its HTTPS server; 0: it has none.
        started_s: perf counter when the process began.
    """

    process: ChildProcess
    port: int = 0
    started_s: float = field(default_factory=perf_counter)

    def is_ready(self, tls: ssl.SSLContext) -> bool:
        """Say whether it answers that it is ready."""
        return self.port == 0 or self._get("/readyz", tls)[0] == 200

    def metrics(self, tls: ssl.SSLContext, names: Sequence[str]) -> Samples:
        """Return samples of its own metrics."""
        status, text = self._get("/metrics", tls) if self.port else (0, "")
        return parse_metrics(text if status == 200 else "", frozenset(names))

    def _get(self, path: str, tls: ssl.SSLContext) -> tuple[int, str]:
        connection = http.client.HTTPSConnection(HOST, self.port, timeout=10, context=tls)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        except (OSError, http.client.HTTPException):
            return 0, ""
        finally:
            connection.close()


Start = Callable[[ControlPlane, Path, str], Running]
"""``start(plane, list file of the null scheduler, name of the run)``."""


def start_kube_scheduler(plane: ControlPlane, bindings: Path, run: str, *, limited: bool = False) -> Running:
    """Start kube-scheduler with a lease of its own for this run, so that it leads at once."""
    del bindings
    election = {"leaderElect": True, "resourceName": f"bench-{run}", "resourceNamespace": "kube-system"}
    configuration: dict[str, object] = {"leaderElection": election, "profiles": _PROFILES}
    if limited:
        configuration["clientConnection"] = {"kubeconfig": str(plane.admin_kubeconfig)}
    process = plane.start_kube_scheduler(configuration)
    port = int(process.arguments[process.arguments.index("--secure-port") + 1])
    return Running(process, port)


def start_podium(
    plane: ControlPlane, bindings: Path, run: str, program: Sequence[str] = (str(PODIUM_COMMAND),)
) -> Running:
    """Start ``podium run`` as an operator would."""
    del bindings
    _write_bytecode()
    kubeconfig = plane.directory / f"{_USER}.kubeconfig"
    if not kubeconfig.exists():
        kubeconfig = plane.scheduler_identity(_USER)
    file = plane.directory / f"{run}.yaml"
    election = {"leaderElect": True, "resourceName": "podium", "resourceNamespace": "kube-system"}
    complete = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": election,
        "profiles": _PROFILES,
    }
    file.write_text(yaml.safe_dump(complete))
    (port,) = free_ports(1)
    arguments = [*program, "run", "--config", str(file)]
    arguments += ["--kubeconfig", str(kubeconfig), "--secure-port", str(port), "--bind-address", HOST, "-v=2"]
    return Running(ChildProcess("podium", arguments, plane.directory / f"{run}.log"), port)


@functools.cache
def _write_bytecode() -> None:
    """Compile the package, as installing it does and as the image does.

    Where the environment forbids writing bytecode (PYTHONDONTWRITEBYTECODE), each start from a checkout would compile
    all modules anew, which takes about as long as all other imports together.
    """
    compileall.compile_dir(Path(scheduler.__file__).parent, quiet=1)


def start_profiled(plane: ControlPlane, bindings: Path, run: str) -> Running:
    """Start Podium under the profiler; the profile goes to ``build/benchmarks/<run>.profile.txt``."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    file = OUTPUT / f"{run}.profile.txt"
    return start_podium(plane, bindings, run, (sys.executable, "-m", "tests.benchmarks.profiled", str(file)))


def start_null(plane: ControlPlane, bindings: Path, run: str) -> Running:
    """Start the null scheduler on its list."""
    plane.ssl_context()  # writes admin.crt and admin.key
    directory = plane.directory
    arguments = [str(null_scheduler.binary()), "-server", plane.url, "-ca", str(plane.ca_file)]
    arguments += ["-cert", str(directory / "admin.crt"), "-key", str(directory / "admin.key")]
    arguments += ["-list", str(bindings), "-workers", "64"]
    return Running(ChildProcess("null", arguments, directory / f"{run}.log"))


def start_limited(plane: ControlPlane, bindings: Path, run: str) -> Running:
    """Start kube-scheduler with its own client limits (50 requests a second, burst 100)."""
    return start_kube_scheduler(plane, bindings, run, limited=True)


STARTERS: dict[str, Start] = {
    KUBE: start_kube_scheduler,
    PODIUM: start_podium,
    NULL: start_null,
    PROFILED: start_profiled,
    KUBE_LIMITED: start_limited,
}
