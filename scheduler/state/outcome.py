"""BindOutcome: how an attempt to bind a pod ended, as the core must know it.

The bind call of the API server is a compare-and-set, so a pod is bound at most once; what is left to find out is
whether *our* write was the one that took effect. ``binding/outcome.py`` draws how each answer leads to one of these.
"""

from __future__ import annotations

import enum

__all__ = ["BindFailure", "BindOutcome"]


class BindOutcome(enum.Enum):
    """The settled ends of a bind."""

    BOUND = "bound"
    """Our write took effect, seen in the answer or by reading the pod back."""

    LOST = "lost"
    """The pod runs on a node that someone else chose; nothing is left to do for us."""

    GONE = "gone"
    """The pod was deleted, or re-created under its name with another UID."""

    CONFLICT = "conflict"
    """The server refused while the pod is still unbound (changed, gated, deleting); try again after a back-off."""

    REFUSED = "refused"
    """The server will refuse again until something changes (400, 403, 422); a long back-off, and the owner is told."""

    UNREACHABLE = "unreachable"
    """The request surely was not carried out: never sent, or read back as unbound."""


class BindFailure(Exception):  # noqa: N818  an outcome, which a Status carries as its cause
    """Why a bind did not end as BOUND.

    Attributes:
        outcome: the settled end.
    """

    def __init__(self, outcome: BindOutcome, message: str) -> None:
        super().__init__(message)
        self.outcome = outcome
