"""The image without a container engine: the Dockerfile's own instructions, carried out in a sandbox.

Every instruction of the stage `build` runs verbatim, as root, in a root of its own with this machine's Python in place of
the base image's; of the last stage, what is copied, who runs and what is started are read. The state after the first
RUN (the dependencies, as their lock files have them) is kept in the cache, as an engine keeps a layer.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.chart.rendering import REPOSITORY
from tests.chart.sandbox import INTERPRETER, Mount, Sandbox, empty_root

DOCKERFILE = REPOSITORY / "Dockerfile"
BUILD_STAGE = "build"
TREES = ("app", "build", "src", "dist")
"""The directories at the root that the stage writes to."""
_PASSED_ON = re.compile(r"^(PIP_|SSL_CERT_|REQUESTS_CA_BUNDLE$|https?_proxy$|no_proxy$)", re.IGNORECASE)
_HOST_TOOLS = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc")


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction, its continuation lines joined."""

    name: str
    text: str


@dataclass(slots=True)
class Stage:
    """One stage: its base, its name ("" for the last) and its instructions."""

    base: str
    name: str
    instructions: list[Instruction] = field(default_factory=list)

    def one(self, name: str) -> str:
        """Return the text of the only instruction of this name."""
        (found,) = [i.text for i in self.instructions if i.name == name]
        return found


def stages(text: str) -> list[Stage]:
    """Read a Dockerfile."""
    without_comments = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    made: list[Stage] = []
    for line in re.sub(r"\\\n", " ", without_comments).splitlines():
        name, _, rest = line.strip().partition(" ")
        if name == "FROM":
            base, _, alias = rest.partition(" AS ")
            made.append(Stage(base, alias))
        elif name and made:
            made[-1].instructions.append(Instruction(name, rest.strip()))
    return made


@dataclass(frozen=True, slots=True)
class Image:
    """What would be in the image.

    Attributes:
        app: the directory that is copied to /app/.venv.
        user: user and group id.
        entrypoint: the command, without its arguments.
        environment: its variables.
    """

    app: Path
    user: int
    entrypoint: tuple[str, ...]
    environment: dict[str, str]

    def size_bytes(self) -> int:
        """Return the size of what is copied, as files take it."""
        return sum(path.lstat().st_size for path in self.app.rglob("*") if not path.is_dir())


def build_image(directory: Path) -> Image:
    """Carry out the Dockerfile into an empty directory.

    Raises:
        SandboxUnavailableError: this machine cannot.
        AssertionError: an instruction failed; the message holds its output.
    """
    all_stages = stages(DOCKERFILE.read_text())
    (build,) = [stage for stage in all_stages if stage.name == BUILD_STAGE]
    _Builder(directory).carry_out(build)
    last = all_stages[-1]
    assert last.one("COPY") == f"--from={BUILD_STAGE} /app/.venv /app/.venv"
    user, _, group = last.one("USER").partition(":")
    assert user == group
    variables = dict(pair.split("=", 1) for pair in shlex.split(last.one("ENV")))
    return Image(directory / "app" / ".venv", int(user), tuple(json.loads(last.one("ENTRYPOINT"))), variables)


class _Builder:
    """Runs the instructions of one stage."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._cwd = "/"
        self._shell = ["/bin/sh", "-c"]
        self._key = hashlib.sha256(sys.version.encode() + str(INTERPRETER).encode())
        for tree in TREES:
            (directory / tree).mkdir()

    def carry_out(self, stage: Stage) -> None:
        """Run them all; the state after the first RUN comes from the cache where it is there."""
        is_first = True
        for instruction in stage.instructions:
            self._key.update(f"{instruction.name} {instruction.text}\n".encode())
            if instruction.name == "RUN" and is_first:
                is_first = False
                self._cached_run(instruction.text)
            else:
                known = {"RUN": self._run, "COPY": self._copy, "WORKDIR": self._workdir, "SHELL": self._set_shell}
                known[instruction.name](instruction.text)

    def _workdir(self, text: str) -> None:
        self._cwd = text
        self._outside(text).mkdir(exist_ok=True)

    def _set_shell(self, text: str) -> None:
        self._shell = json.loads(text)

    def _copy(self, text: str) -> None:
        *sources, target = text.split()
        for source in sources:
            to = self._outside(target) if not target.endswith("/") else self._outside(target) / Path(source).name
            for file in context_files(source):
                inside = to / file.relative_to(REPOSITORY / source) if (REPOSITORY / source).is_dir() else to
                inside.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, inside)
                self._key.update(str(file.relative_to(REPOSITORY)).encode() + file.read_bytes())

    def _run(self, text: str) -> None:
        mounts = [Mount(Path(p), p) for p in _HOST_TOOLS if Path(p).exists() and not Path(p).is_symlink()]
        if not INTERPRETER.is_relative_to("/usr"):
            mounts.append(Mount(INTERPRETER, str(INTERPRETER)))
        for name in ("PIP_FIND_LINKS", "PIP_CERT", "SSL_CERT_FILE", "SSL_CERT_DIR"):
            path = os.environ.get(name, "")
            if path.startswith("/") and not path.startswith("/etc/") and Path(path).exists():
                mounts.append(Mount(Path(path), path))
        mounts += [Mount(self._directory / tree, f"/{tree}", writable=True) for tree in TREES]
        environment = {name: value for name, value in os.environ.items() if _PASSED_ON.match(name)}
        environment |= {"PATH": f"{INTERPRETER}/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/", "LANG": "C.UTF-8"}
        with empty_root() as root, tempfile.TemporaryDirectory() as scratch:
            sandbox = Sandbox([*mounts, Mount(Path(scratch), "/tmp", writable=True)], Path(root), user=0)
            command = sandbox.command([*self._shell, text], environment=environment, cwd=self._cwd)
            result = subprocess.run(command, check=False, capture_output=True, text=True, timeout=900)
        assert result.returncode == 0, f"RUN {text}\n{result.stdout[-2000:]}\n{result.stderr[-4000:]}"

    def _cached_run(self, text: str) -> None:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        layer = Path(base) / "podium" / f"image-layer-{self._key.hexdigest()[:16]}"
        if not layer.exists():
            self._run(text)
            layer.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=layer.parent) as scratch:
                made = Path(scratch) / "layer"
                made.mkdir()
                for tree in TREES:
                    shutil.copytree(self._directory / tree, made / tree, symlinks=True)
                if not layer.exists():
                    made.rename(layer)
            return
        for tree in TREES:
            shutil.copytree(layer / tree, self._directory / tree, symlinks=True, dirs_exist_ok=True)

    def _outside(self, inside: str) -> Path:
        path = os.path.normpath(os.path.join(self._cwd, inside))  # noqa: PTH118  a path inside the sandbox
        assert path.split("/")[1] in TREES, f"{path} is in none of {TREES}"
        return self._directory / path.lstrip("/")


def context_files(source: str) -> Iterator[Path]:
    """Return the files of a source that .dockerignore lets into the build context."""
    path = REPOSITORY / source
    found = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    allowed, refused = _ignore_rules()
    for file in found:
        name = str(file.relative_to(REPOSITORY))
        assert any(name == rule or name.startswith(f"{rule}/") for rule in allowed), f".dockerignore keeps {name} out"
        if not any(fnmatch.fnmatch(f"/{name}/", f"*/{rule}/*") for rule in refused):
            yield file


def _ignore_rules() -> tuple[list[str], list[str]]:
    """Return what the allow-list lets in, and which folders at any depth it leaves out again."""
    lines = (REPOSITORY / ".dockerignore").read_text().split()
    assert lines[0] == "*", ".dockerignore is an allow-list"
    allowed = [line[1:] for line in lines if line.startswith("!")]
    return allowed, [line.removeprefix("**/") for line in lines if line.startswith("**/")]
