"""How much memory this process may use: the limit of its control group."""

from __future__ import annotations

from pathlib import Path

__all__ = ["memory_limit_bytes"]

_ROOT = Path("/sys/fs/cgroup")
_FILES = ("memory.max", "memory/memory.limit_in_bytes")  # version 2, version 1
_NO_LIMIT_BYTES = 1 << 60  # version 1 writes a huge number where there is no limit


def memory_limit_bytes(root: Path = _ROOT) -> int | None:
    """Return the limit of the control group that a container sees as its root; None if there is none."""
    for name in _FILES:
        try:
            text = (root / name).read_text().strip()
        except OSError:
            continue
        if text.isdigit() and int(text) < _NO_LIMIT_BYTES:
            return int(text)
    return None
