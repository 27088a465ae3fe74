"""Request: what a client asks of the API server, in Kubernetes' words (verb, resource, namespace, name)."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

__all__ = ["CONNECT", "Request", "connection", "read_request"]

CONNECT = "connect"
"""The verb of a connection that has not asked for anything (yet)."""

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    Attributes:
        client: common name of the client's certificate, "" without one.
        verb: as in the audit log (get, list, watch, create, update, patch, delete, deletecollection), or ``connect``.
        resource: with its subresource, such as ``pods/binding``; "" for other paths.
        target: path and query.
    """

    client: str
    verb: str
    method: str = ""
    target: str = ""
    user_agent: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    def __str__(self) -> str:
        return f"{self.verb} {self.path or self.client}"


def connection(client: str = "") -> Request:
    """Return what stands for a connection without a request."""
    return Request(client, CONNECT)


def read_request(client: str, method: str, target: str, user_agent: str) -> Request:
    """Return what a request line asks for."""
    url = urlsplit(target)
    resource, namespace, name = _parts(url.path)
    if method in _VERBS:
        verb = _VERBS[method]
    elif method == "DELETE":
        verb = "delete" if name else "deletecollection"
    elif parse_qs(url.query).get("watch", ["false"])[0] in ("1", "true"):
        verb = "watch"
    else:
        verb = "get" if name or not resource else "list"
    return Request(client, verb, method, target, user_agent, resource, namespace, name)


def _parts(path: str) -> tuple[str, str, str]:
    """Return resource (with subresource), namespace and name of a path below /api or /apis."""
    steps = path.strip("/").split("/")
    skipped = {"api": 2, "apis": 3}.get(steps[0])
    if skipped is None or len(steps) <= skipped:
        return "", "", ""
    steps, namespace = steps[skipped:], ""
    if steps[0] == "namespaces" and len(steps) > 2:
        namespace, steps = steps[1], steps[2:]
    name, subresource = (*steps[1:3], "", "")[:2]
    return steps[0] + (f"/{subresource}" if subresource else ""), namespace, name
