"""A root of one's own for one process: what a container engine would do, with the kernel's own means.

`Sandbox` starts a command in a mount namespace whose root holds only what was bound into it, as the user it is told, on
the machine's network. There is no container engine on test machines; `unshare`, `mount`, `chroot` and `setpriv`
(util-linux and coreutils, on every Debian) are enough, but need root.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

DEVICES = ("null", "zero", "random", "urandom")
NEEDED = ("unshare", "mount", "chroot", "setpriv", "env")
LIBRARIES = ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib", "/lib64", "/etc/ld.so.cache")
INTERPRETER = Path(sys.base_prefix)
"""The machine's own Python stands in for the image's."""


class SandboxUnavailableError(RuntimeError):
    """This machine cannot make one; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or directory of the machine, and where it is seen inside."""

    source: Path
    target: str
    writable: bool = False


@cache
def check() -> None:
    """Say at once if sandboxes do not work here.

    Raises:
        SandboxUnavailableError: what is missing, in a sentence.
    """
    missing = [name for name in NEEDED if shutil.which(name, path=_PATH) is None]
    if missing:
        raise SandboxUnavailableError(f"the image tests need {', '.join(missing)} (Debian: util-linux, coreutils)")
    if os.geteuid() != 0:
        raise SandboxUnavailableError("the image tests change root and user id, so they must run as root")
    tried = subprocess.run(["unshare", "--mount", "true"], check=False, capture_output=True, text=True)
    if tried.returncode != 0:
        raise SandboxUnavailableError(
            f"the image tests need a mount namespace, which this machine refuses ({tried.stderr.strip()}): "
            "run them as root with CAP_SYS_ADMIN"
        )


_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


def _tool(name: str) -> str:
    path = shutil.which(name, path=_PATH)
    assert path is not None, f"{name} was there a moment ago"
    return path


def interpreter_mounts() -> list[Mount]:
    """Return the shared libraries and the Python of this machine, and no other program."""
    libraries = [Path(path) for path in LIBRARIES if Path(path).exists() and not Path(path).is_symlink()]
    mounts = [Mount(path, str(path)) for path in libraries]
    if Path("/usr") != INTERPRETER:
        return [*mounts, Mount(INTERPRETER, str(INTERPRETER))]
    program = Path(sys.executable).resolve()  # a system's Python: the program alone, by both of its names
    return [*mounts, *(Mount(program, name) for name in {str(program), "/usr/bin/python3"})]


class Sandbox:
    """Everything that a process will see.

    Args:
        mounts: what is there.
        root: where the root is put together; it must be empty.
        user: user and group id; 0 keeps root.
        writable_root: whether the root itself may be written to.
    """

    def __init__(self, mounts: Sequence[Mount], root: Path, *, user: int, writable_root: bool = False) -> None:
        check()
        self._mounts = mounts
        self._root = root
        self._user = user
        self._writable_root = writable_root

    def command(self, arguments: Sequence[str], *, environment: Mapping[str, str], cwd: str = "/") -> list[str]:
        """Return what to run outside to run `arguments` inside; the process keeps its id, so signals reach it."""
        variables = [f"{name}={value}" for name, value in environment.items()]
        confined = ["env", "--ignore-environment", *variables]
        if self._user:
            confined += [_tool("setpriv"), "--no-new-privs"]
            confined += [_tool("chroot"), f"--userspec={self._user}:{self._user}", "--groups=", str(self._root)]
        else:
            confined += [_tool("chroot"), str(self._root)]
        inside = (
            list(arguments)
            if cwd == "/"
            else ["/bin/sh", "-ec", f"cd {shlex.quote(cwd)}; exec {shlex.join(arguments)}"]
        )
        script = "\n".join(["set -e", *self._script(), f"exec {shlex.join([*confined, *inside])}"])
        return ["unshare", "--mount", "--propagation=private", "sh", "-c", script]

    def _script(self) -> list[str]:
        root = shlex.quote(str(self._root))
        lines = [f"export PATH={_PATH}", f"mount -t tmpfs -o mode=755,size=16m podium {root}"]
        links = [path for path in ("/bin", "/sbin", "/lib", "/lib64") if self._leads_inside(path)]
        lines += [f"ln -s {Path(path).readlink()} {root}{path}" for path in links]
        devices = [Mount(Path("/dev") / name, f"/dev/{name}", writable=True) for name in DEVICES]
        for mount in (*self._mounts, *devices):
            lines += self._bind(mount)
        lines += [f"mkdir {root}/proc", f"mount --rbind /proc {root}/proc"]
        if not self._writable_root:
            lines.append(f"mount -o remount,ro,bind {root}")
        return lines

    def _leads_inside(self, path: str) -> bool:
        """Say whether a path is a link of this machine to something that is mounted."""
        target = Path(path).resolve()
        return Path(path).is_symlink() and any(target.is_relative_to(mount.target) for mount in self._mounts)

    def _bind(self, mount: Mount) -> list[str]:
        source, target = shlex.quote(str(mount.source)), shlex.quote(f"{self._root}{mount.target}")
        parent = shlex.quote(os.path.dirname(f"{self._root}{mount.target}"))  # noqa: PTH120  the target is not ours
        make = f"mkdir -p {target}" if mount.source.is_dir() else f"mkdir -p {parent}; touch {target}"
        lines = [make, f"mount --bind {source} {target}"]
        if not mount.writable:
            lines.append(f"mount -o remount,ro,bind {target}")
        return lines


def empty_root() -> tempfile.TemporaryDirectory[str]:
    """Return an empty directory for a root."""
    return tempfile.TemporaryDirectory(prefix="podium-root-")
