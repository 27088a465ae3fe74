"""Token and access reviews: everyone is let in, because the embedded server knows no identities."""

from __future__ import annotations

from scheduler.testing.apiserver.discovery import REVIEWS
from scheduler.testing.apiserver.status import Json

__all__ = ["review"]

USER = {"username": "podium-embedded", "groups": ["system:masters", "system:authenticated"]}


def review(group: str, plural: str, request: Json) -> Json | None:
    """Return the answered review, or None when there is no such review resource."""
    found = REVIEWS.get((group, plural))
    if found is None:
        return None
    kind, api_version = found
    answer: Json = {"kind": kind, "apiVersion": api_version, "metadata": request.get("metadata") or {}}
    if kind == "SelfSubjectReview":
        return {**answer, "status": {"userInfo": USER}}
    answer["spec"] = request.get("spec") or {}
    if kind == "TokenReview":
        has_token = bool(answer["spec"].get("token"))
        return {**answer, "status": {"authenticated": has_token, "user": USER if has_token else {}}}
    return {**answer, "status": {"allowed": True}}
