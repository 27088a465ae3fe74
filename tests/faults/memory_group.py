"""A control group with a limit of memory for one process, which sees it as a container sees its own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.integration.api import eventually, unique

ROOT = Path("/sys/fs/cgroup/memory")
_ENTER = 'echo $$ > "$GROUP/cgroup.procs" && mount --bind "$GROUP" "$ROOT" && exec "$@"'


@dataclass(frozen=True, slots=True)
class MemoryGroup:
    """A control group of version 1, as the test machines have them."""

    directory: Path

    @property
    def wrapper(self) -> list[str]:
        """The words before a command that runs in the group."""
        variables = [f"GROUP={self.directory}", f"ROOT={ROOT}"]
        unshared = ["unshare", "--mount", "--propagation=private"]
        return ["env", *variables, *unshared, "sh", "-c", _ENTER, "sh"]

    @property
    def usage_bytes(self) -> int:
        return int((self.directory / "memory.usage_in_bytes").read_text())

    @property
    def kills(self) -> int:
        """How many processes the kernel has killed for want of memory."""
        told = dict(line.split() for line in (self.directory / "memory.oom_control").read_text().splitlines())
        return int(told["oom_kill"])

    def limit(self, size_bytes: int) -> None:
        """Set the limit; the kernel first takes back what it can.

        Raises:
            OSError: more is in use that cannot be taken back.
        """
        (self.directory / "memory.limit_in_bytes").write_text(str(size_bytes))

    def no_limit(self) -> None:
        """Take the limit away."""
        self.limit(-1)


@contextlib.contextmanager
def memory_group() -> Iterator[MemoryGroup]:
    """Make a control group, without a limit; its processes must have ended before the end.

    Raises:
        RuntimeError: it cannot be had here.
    """
    directory = ROOT / unique("podium")
    try:
        directory.mkdir()
    except OSError as error:
        raise RuntimeError(f"a control group of memory (version 1) is needed, and root to make it: {error}") from error
    try:
        yield MemoryGroup(directory)
    finally:
        eventually(lambda: not (directory / "cgroup.procs").read_text(), f"the processes in {directory} to end")
        directory.rmdir()
