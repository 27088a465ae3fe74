"""`podium` with failpoints: the only way to have any.

    PODIUM_FAILPOINTS=DIRECTORY python -m tests.faults.failpoints run --config ...

It also breaks the product on purpose where that is wanted (`tests/faults/mutations.py`). Nothing of this is in a release.
The functions are put in place before anything else of the package is imported.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from scheduler import failpoints
from tests.faults.failpoints.armed import Armed

VARIABLE = "PODIUM_FAILPOINTS"


def main() -> None:
    """Arm the failpoints and be `podium`."""
    directory = Path(os.environ[VARIABLE])
    assert directory.is_dir(), f"{VARIABLE} must name a directory: {directory}"
    strangers = {name for name in sys.modules if name.startswith("scheduler.")} - {"scheduler.failpoints"}
    assert not strangers, f"imported too early to have failpoints: {strangers}"
    armed = Armed(directory)
    failpoints.failpoint = armed.failpoint
    failpoints.async_failpoint = armed.async_failpoint
    from scheduler.cli.main import entry
    from tests.faults import mutations

    if name := mutations.wanted():
        mutations.apply(name)
    entry()


if __name__ == "__main__":
    main()
