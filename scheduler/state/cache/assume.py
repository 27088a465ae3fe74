"""AssumedPods: decided here, not yet confirmed by the API server.

An assumed pod takes its place on the node at once, so that the next decision sees it. It leaves this set when the API
server's own version of the pod arrives, when the decision is taken back, or (only if a time-to-live is set) some time
after its binding was reported done.

Invariant: a deadline exists only for a pod whose binding is done; a pod whose binding is still under way never expires,
however long that takes.
"""

from __future__ import annotations

__all__ = ["AssumedPods"]

_NEVER = float("inf")


class AssumedPods:
    """UIDs of assumed pods with the second after which each may be dropped."""

    __slots__ = ("_deadlines", "_finished", "_ttl_s")

    def __init__(self, ttl_s: float | None) -> None:
        """Make an empty set.

        Args:
            ttl_s: how long after ``finish`` an unconfirmed pod is kept; None keeps it for ever.
        """
        # parity: kube-scheduler 1.36 has no expiry; a pod of unknown fate must go on holding its capacity.
        self._ttl_s = ttl_s
        self._deadlines: dict[str, float] = {}
        self._finished: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._deadlines)

    def __contains__(self, uid: str) -> bool:
        return uid in self._deadlines

    def add(self, uid: str) -> None:
        """Note the pod as assumed, its binding under way."""
        self._deadlines[uid] = _NEVER

    def discard(self, uid: str) -> None:
        """Note the pod as no longer assumed; unknown pods are fine."""
        self._deadlines.pop(uid, None)
        self._finished.pop(uid, None)

    def finish(self, uid: str, now_s: float) -> None:
        """Note that the pod is bound, if it is still assumed; starts its time-to-live, if there is one."""
        if uid in self._deadlines:
            self._finished[uid] = now_s
            if self._ttl_s is not None:
                self._deadlines[uid] = now_s + self._ttl_s

    @property
    def unconfirmed_since_s(self) -> float | None:
        """Return when the first pod was bound that the watch has not shown on its node yet; None if there is none."""
        return next(iter(self._finished.values()), None)

    def excuse(self, until_s: float) -> list[str]:
        """Wait no longer for the watch to show pods that were bound until then; return them. They stay assumed."""
        excused = [uid for uid, at_s in self._finished.items() if at_s <= until_s]
        self._finished = {uid: at_s for uid, at_s in self._finished.items() if at_s > until_s}
        return excused

    def expired(self, now_s: float) -> list[str]:
        """Return the UIDs whose deadline has passed."""
        if self._ttl_s is None:
            return []
        return [uid for uid, deadline_s in self._deadlines.items() if deadline_s <= now_s]

    def uids(self) -> frozenset[str]:
        """Return all assumed UIDs."""
        return frozenset(self._deadlines)
