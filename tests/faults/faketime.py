"""libfaketime: other clocks for one process, without touching the machine's.

The library comes from the Debian package of that name, unpacked into the user's cache (no root needed), or from
`PODIUM_FAKETIME`, the path of a ``libfaketime.so.1``.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "podium" / "faketime"
LIBRARY = "libfaketime.so.1"


class FaketimeUnavailableError(RuntimeError):
    """There is no library; the message says how to get it."""


def library() -> Path:
    """Return the library, fetched with apt-get at the first time.

    Raises:
        FaketimeUnavailableError: it cannot be had here.
    """
    if named := os.environ.get("PODIUM_FAKETIME"):
        return Path(named)
    if not (found := sorted(CACHE.rglob(LIBRARY))):
        CACHE.mkdir(parents=True, exist_ok=True)
        try:
            _fetch()
        except (OSError, subprocess.CalledProcessError) as error:
            output = getattr(error, "stderr", "") or error
            raise FaketimeUnavailableError(
                f"cannot fetch Debian's libfaketime ({output}); set PODIUM_FAKETIME to a {LIBRARY}"
            ) from error
        found = sorted(CACHE.rglob(LIBRARY))
    return found[0]


def _fetch() -> None:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "lists" / "partial").mkdir(parents=True)
        own = ["-o", f"Dir::State::lists={directory}/lists", "-o", f"Dir::Cache={directory}"]
        own += ["-o", "APT::Sandbox::User="]
        for arguments in (["update"], ["download", "libfaketime"]):
            subprocess.run(
                ["apt-get", "-qq", *own, *arguments], cwd=directory, check=True, capture_output=True, text=True
            )
        (package,) = directory.glob("*.deb")
        subprocess.run(["dpkg-deb", "-x", package, CACHE], check=True, capture_output=True, text=True)


class FakeClock:
    """The wall clock of one process: the machine's, plus an offset that a test changes while it runs.

    Args:
        directory: for the file that tells the process.
        is_steady_too: the monotonic clocks get the same offset, as if so much time had passed.
    """

    def __init__(self, directory: Path, *, is_steady_too: bool = False) -> None:
        self._file = directory / "faketime"
        self._is_steady_too = is_steady_too
        self.set(0)

    @property
    def environment(self) -> dict[str, str]:
        """The variables of the process."""
        return {
            "LD_PRELOAD": str(library()),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "0" if self._is_steady_too else "1",
            "FAKETIME_DONT_RESET": "1",
        }

    def set(self, offset_s: float) -> None:
        """Jump to so many seconds before or after the machine's clock."""
        beside = self._file.with_suffix(".new")
        beside.write_text(f"{offset_s:+g}s\n")
        beside.replace(self._file)
