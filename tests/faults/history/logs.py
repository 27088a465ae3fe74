"""C: no exception that nobody had foreseen, as far as the logs of a run tell."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

__all__ = ["unforeseen"]

_UNFORESEEN = re.compile(r'Traceback \(most recent call last\)|"msg":"[^"]* broke[",]')
"""A traceback, or what the product's supervisors say of a bug before they go on."""


def unforeseen(log: str, tolerated: Sequence[str] = ()) -> Iterator[str]:
    """Return the lines that tell of a bug.

    Args:
        log: of one process.
        tolerated: patterns of lines that are part of the test, as of a plugin that raises.
    """
    for line in log.splitlines():
        if _UNFORESEEN.search(line) and not any(re.search(pattern, line) for pattern in tolerated):
            yield line
