"""Paths and queries of the requests that watching makes."""

from __future__ import annotations

from urllib.parse import quote, urlencode

from scheduler.model.kinds import KindInfo

__all__ = ["initial_stream_path", "list_path", "pod_path", "version_path", "watch_path"]


def list_path(info: KindInfo, *, limit: int, continue_token: str = "") -> str:
    """Return the path of a list, or of one page of it.

    No resource version is given, so the answer is as new as the moment of asking (a quorum read): a new leader must
    not start from the past of a lagging cache.

    Args:
        info: the kind.
        limit: objects a page; 0 for all at once.
        continue_token: from the page before.
    """
    query = _selected(info)
    if limit:
        query["limit"] = str(limit)
    if continue_token:
        query["continue"] = continue_token
    return _join(info, query)


def version_path(info: KindInfo) -> str:
    """Return the path of the smallest request that tells the server's newest version of the collection."""
    return _join(info, {"limit": "1"})


def watch_path(info: KindInfo, version: str, timeout_s: int) -> str:
    """Return the path of a watch from ``version`` on, which the server ends after ``timeout_s`` seconds."""
    query = {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": version,
        "timeoutSeconds": str(timeout_s),
    }
    return _join(info, _selected(info) | query)


def initial_stream_path(info: KindInfo, timeout_s: int) -> str:
    """Return the path of a watch that first sends all objects that exist, then a marked bookmark."""
    query = {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "timeoutSeconds": str(timeout_s),
    }
    return _join(info, _selected(info) | query)


def pod_path(namespace: str, name: str, subresource: str = "") -> str:
    """Return the path of a pod or of one of its sub-resources ("/binding", "/status")."""
    # Names come from the API server, which allows nothing that needs quoting; a lying one must not choose the path.
    if not (name.isascii() and "/" not in name and "?" not in name and "%" not in name and "#" not in name):
        name = quote(name, safe="")
    return f"/api/v1/namespaces/{namespace}/pods/{name}{subresource}"


def _selected(info: KindInfo) -> dict[str, str]:
    return {"fieldSelector": info.field_selector} if info.field_selector else {}


def _join(info: KindInfo, query: dict[str, str]) -> str:
    return f"{info.path}?{urlencode(query)}" if query else info.path
