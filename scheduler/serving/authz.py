"""May they? Always-allowed paths, then the group ``system:masters``, then a SubjectAccessReview.

If the review cannot be made, the answer is no.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from scheduler.kube.reviews import Access, AccessReviewer, NonResource, Resource, User

__all__ = ["MASTERS_GROUP", "NO_REVIEWER", "Authorizer"]

MASTERS_GROUP: Final = "system:masters"
NO_REVIEWER: Final = "nobody can be asked whether this is allowed"


class Authorizer:
    """Decides about requests.

    Args:
        always_allow_paths: exact paths, or prefixes that end in ``*``.
        reviewer: asks the API server; None: only the two static rules allow anything.
    """

    def __init__(self, always_allow_paths: Iterable[str], reviewer: AccessReviewer | None) -> None:
        paths = [f"/{path.lstrip('/')}" for path in always_allow_paths]
        self._paths = frozenset(path for path in paths if not path.endswith("*"))
        self._prefixes = tuple(path[:-1] for path in paths if path.endswith("*"))
        self._reviewer = reviewer

    async def access(self, user: User, attributes: NonResource | Resource) -> Access:
        """Return whether the user may do this.

        Raises:
            ReviewUnavailableError: the API server did not answer; refuse.
        """
        if isinstance(attributes, NonResource) and self._is_open(attributes.path):
            return Access(is_allowed=True)
        if MASTERS_GROUP in user.groups:
            return Access(is_allowed=True)
        if self._reviewer is None:
            return Access(is_allowed=False, reason=NO_REVIEWER)
        return await self._reviewer.access(user, attributes)

    def _is_open(self, path: str) -> bool:
        return path in self._paths or path.startswith(self._prefixes)
