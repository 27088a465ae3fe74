"""Shared: what a cache keeps across all nodes and its snapshots read as it is, without copies of their own."""

from __future__ import annotations

from dataclasses import dataclass, field

from scheduler.state.cache.images import ImageStates
from scheduler.state.index.matching import MatchingPods
from scheduler.state.index.terms import TermIndex

__all__ = ["Shared"]


@dataclass(frozen=True, slots=True)
class Shared:
    """One set for each cache, which alone writes to them.

    Attributes:
        images: images on nodes.
        matching: how many pods match a selector.
        terms: pod affinity terms that pods carry.
    """

    images: ImageStates = field(default_factory=ImageStates)
    matching: MatchingPods = field(default_factory=MatchingPods)
    terms: TermIndex = field(default_factory=TermIndex)
