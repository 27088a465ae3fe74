"""Generations: one number line for every change in a cache.

A number is never given twice, so a node that is deleted and comes back under the same name can not be taken for the
one that a snapshot knows (k/k#63262). Numbers say "later than", nothing else; no decision depends on their values.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

__all__ = ["next_generation"]

next_generation: Callable[[], int] = count(1).__next__
"""Return a number larger than every one returned before."""
