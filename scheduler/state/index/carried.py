"""One carried term: who is selected, and in which domains its carriers run."""

from __future__ import annotations

from scheduler.model.affinity import AffinityTerm

__all__ = ["Carried"]


class Carried:
    """A term that pods on nodes carry; equal terms of all of them are one.

    Attributes:
        term: the term.
        weight: of a preference, negative for anti-affinity; None for a required term.
        counts: topology value -> how often pods on nodes with that value carry the term; never 0.
    """

    __slots__ = ("counts", "term", "weight")

    def __init__(self, term: AffinityTerm, weight: int | None) -> None:
        self.term = term
        self.weight = weight
        self.counts: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"<Carried {self.term} weight={self.weight} counts={self.counts}>"

    def count(self, value: str, delta: int) -> None:
        """Change the count of one topology value."""
        left = self.counts.get(value, 0) + delta
        if left:
            self.counts[value] = left
        else:
            del self.counts[value]
