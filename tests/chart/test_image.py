"""What the Dockerfile makes: carried out here without an engine, so that every step of it has been seen working."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from scheduler import __version__
from tests.chart.image import BUILD_STAGE, DOCKERFILE, REPOSITORY, Image, context_files, stages
from tests.chart.sandbox import Mount, Sandbox, interpreter_mounts

LIMIT_BYTES = 150_000_000
"""For what is copied beside the interpreter, unpacked; a dependency that weighs more is to be noticed."""

pytestmark = pytest.mark.timeout(300)


KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: "https://localhost:1"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: x, interactiveMode: Never}}}]
"""


def inside(
    image: Image, tmp_path: Path, *arguments: str, more: Sequence[Mount] = ()
) -> subprocess.CompletedProcess[str]:
    """Run a command of the image as its user."""
    mounts = [*interpreter_mounts(), Mount(image.app, "/app/.venv"), *more]
    (tmp_path / "root").mkdir(exist_ok=True)
    sandbox = Sandbox(mounts, tmp_path / "root", user=image.user)
    command = sandbox.command(arguments, environment=image.environment)
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)


def python(image: Image, tmp_path: Path, code: str) -> str:
    """Run Python in the image; returns what it printed."""
    result = inside(image, tmp_path, "/app/.venv/bin/python3", "-I", "-B", "-c", code)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_hadolint_has_nothing_to_say() -> None:
    """The linter of Dockerfiles, with its default rules."""
    hadolint = Path(sys.executable).parent / "hadolint"
    result = subprocess.run([str(hadolint), str(DOCKERFILE)], check=False, capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (0, ""), result.stdout + result.stderr


def test_every_install_checks_hashes() -> None:
    """No `pip install` without `--require-hashes`, and the lock files have one for every package."""
    (build,) = [stage for stage in stages(DOCKERFILE.read_text()) if stage.name == BUILD_STAGE]
    steps = [step for i in build.instructions if i.name == "RUN" for step in i.text.split("&&")]
    installs = [step for step in steps if "pip install" in step]
    assert len(installs) == 3
    assert all("--require-hashes" in step for step in installs)


def test_the_last_stage_only_copies() -> None:
    """Nothing runs in it, since its base has no shell; it names its user by number and starts Python isolated."""
    last = stages(DOCKERFILE.read_text())[-1]
    assert {i.name for i in last.instructions} == {
        "ARG", "LABEL", "ENV", "COPY", "USER", "EXPOSE", "STOPSIGNAL", "ENTRYPOINT", "CMD",
    }  # fmt: skip
    assert last.one("USER") == "65532:65532"
    assert last.one("STOPSIGNAL") == "SIGTERM"
    assert json.loads(last.one("ENTRYPOINT"))[:2] == ["/app/.venv/bin/python3", "-I"]
    assert "ARG RUN_BASE=gcr.io/distroless/" in DOCKERFILE.read_text()


def test_the_build_context_is_an_allow_list() -> None:
    """Tests, caches and everything else stay out; nothing that a COPY names is missing."""
    (build,) = [stage for stage in stages(DOCKERFILE.read_text()) if stage.name == BUILD_STAGE]
    copied = [source for i in build.instructions if i.name == "COPY" for source in i.text.split()[:-1]]
    files = [file.relative_to(REPOSITORY) for source in copied for file in context_files(source)]
    assert {file.parts[0] for file in files} == {"requirements", "pyproject.toml", "README.md", "LICENSE", "scheduler"}
    assert not [file for file in files if "__pycache__" in file.parts]


def test_the_image_is_an_unprivileged_user_on_a_root_that_cannot_be_written(image: Image, tmp_path: Path) -> None:
    """User, group, home, root and privileges, as the process itself sees them."""
    seen = json.loads(
        python(
            image,
            tmp_path,
            """
import json, os
def refused(path):
    try:
        open(path, "w").close()
    except OSError as error:
        return error.errno
    return 0
status = dict(line.split(":\\t") for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
print(json.dumps({
    "ids": [os.getuid(), os.getgid(), os.getgroups()],
    "home": os.environ.get("HOME"),
    "writes": [refused(p) for p in ("/x", "/tmp/x", "/app/.venv/x", "/app/.venv/pyvenv.cfg")],
    "read_only": [bool(os.statvfs(p).f_flag & os.ST_RDONLY) for p in ("/", "/app/.venv")],
    "capabilities": int(status["CapEff"], 16),
    "no_new_privs": status["NoNewPrivs"],
    "root": sorted(os.listdir("/")),
}))
""",
        )
    )
    assert seen["ids"] == [65532, 65532, []]
    assert seen["home"] is None
    assert 0 not in seen["writes"], "something could be written to"
    assert seen["read_only"] == [True, True]
    assert (seen["capabilities"], seen["no_new_privs"]) == (0, "1")
    assert not {"home", "tmp", "bin"} & set(seen["root"])


@pytest.mark.parametrize("tool", ["/bin/sh", "/usr/bin/env", "/app/.venv/bin/pip", "/usr/bin/apt-get"])
def test_there_are_no_tools(tool: str, image: Image, tmp_path: Path) -> None:
    """Nothing to run but Python."""
    assert python(image, tmp_path, f"import os; print(os.path.exists({tool!r}))") == "False"


@pytest.mark.parametrize("package", ["pip", "kubernetes", "pydantic", "tests"])
def test_what_is_not_needed_is_not_there(package: str, image: Image, tmp_path: Path) -> None:
    """Left out: an installer, and a client that only exec credential plugins use."""
    code = f"import importlib.util; print(importlib.util.find_spec({package!r}))"
    assert python(image, tmp_path, code) == "None"


def test_the_entry_point_answers(image: Image, tmp_path: Path) -> None:
    """The built wheel, its version, and every module of it can be imported, but the one that needs the client."""
    result = inside(image, tmp_path, *image.entrypoint, "run", "--version")
    assert (result.returncode, result.stdout.strip()) == (0, f"podium {__version__}")
    code = """
import importlib, pkgutil, scheduler
names = [m.name for m in pkgutil.walk_packages(scheduler.__path__, "scheduler.")]
broken = {}
for name in names:
    if name.endswith("__main__"):
        continue
    try:
        importlib.import_module(name)
    except Exception as error:
        broken[name] = repr(error)
assert len(names) > 150
print(broken)
"""
    assert set(eval(python(image, tmp_path, code))) <= {"scheduler.kube.exec_credentials"}


def test_the_command_is_found_by_its_name(image: Image, tmp_path: Path) -> None:
    """As `kubectl exec deploy/podium -- podium doctor` looks for it."""
    result = inside(image, tmp_path, "podium", "doctor", "--help")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("usage: podium doctor")


def test_a_credential_plugin_is_refused_with_advice(image: Image, tmp_path: Path) -> None:
    """The image has no client for it; the error says so, in place of a traceback."""
    files = tmp_path / "files"
    files.mkdir()
    (files / "kubeconfig").write_text(KUBECONFIG)
    (files / "options.yaml").write_text(
        "{apiVersion: podium.dev/v1alpha1, kind: SchedulerOptions, allowExecCredentials: true}"
    )
    flags = ["--kubeconfig=/files/kubeconfig", "--options=/files/options.yaml", "--secure-port=0"]
    result = inside(image, tmp_path, *image.entrypoint, "run", *flags, more=[Mount(files, "/files")])
    assert result.returncode == 1
    assert "install the package kubernetes" in result.stderr
    assert "Traceback" not in result.stderr + result.stdout


def test_the_size(image: Image) -> None:
    """Printed, and bounded."""
    print(f"{image.size_bytes() / 1e6:.0f} MB beside the interpreter, unpacked")
    assert image.size_bytes() < LIMIT_BYTES
