"""The audit log as requests: what each user asked of the API server, when, and how it was answered."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

from tests.faults.history.record import Request

_PODS = {"group": "", "resources": ["pods/binding"]}
_LEASES = {"group": "coordination.k8s.io", "resources": ["leases"]}


def audit_flags(directory: Path) -> list[str]:
    """Return the API server's flags for the log that the checkers need.

    Binds are noted when they arrive too: a server that is killed writes nothing about what it had begun. Bodies are kept
    for binds (UID and node) and leases (who leads).
    """
    policy = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "rules": [
            {"level": "Request", "resources": [_PODS]},
            {"level": "Request", "resources": [_LEASES], "omitStages": ["RequestReceived"]},
            {"level": "None", "users": ["admin", "observer", "system:apiserver"]},
            {"level": "None", "nonResourceURLs": ["*"]},
            {"level": "Metadata", "omitStages": ["RequestReceived"]},
        ],
    }
    (directory / "policy.yaml").write_text(yaml.safe_dump(policy))
    return [
        f"--audit-policy-file={directory}/policy.yaml",
        f"--audit-log-path={directory}/audit.log",
        "--audit-log-maxsize=100000",  # MB; else it would be rotated at 100, and what came after not be read
    ]


class AuditReader:
    """Reads what has been added to one audit log.

    Attributes:
        epoch: of the requests that are read from now on; see `record.Version`.
    """

    def __init__(self, file: Path) -> None:
        """Begin at the present end of the file."""
        self._file = file
        self._offset = file.stat().st_size if file.exists() else 0
        self._requests: dict[str, Request] = {}
        self.epoch = 0

    def read(self) -> list[Request]:
        """Return every request since the beginning, also those that were read before."""
        for entry in self._new_entries():
            begun = self._requests.get(entry["auditID"])
            epoch = self.epoch if begun is None else begun.epoch
            self._requests[entry["auditID"]] = request_of(
                entry, epoch
            )  # a later stage knows all that an earlier one knew
        return list(self._requests.values())

    def cut(self) -> None:
        """Forget what has been read but each user's last write of a lease, for runs of hours."""
        leases = {
            request.user: key
            for key, request in self._requests.items()
            if request.resource == "leases" and request.is_write and request.is_done
        }
        self._requests = {key: self._requests[key] for key in leases.values()}

    def _new_entries(self) -> Iterator[Mapping[str, Any]]:
        if not self._file.exists():
            return
        with self._file.open("rb") as lines:
            lines.seek(self._offset)
            for line in lines:
                if not line.endswith(b"\n"):
                    break  # the rest of this line comes later
                self._offset += len(line)
                yield json.loads(line)


def request_of(entry: Mapping[str, Any], epoch: int = 0) -> Request:
    """Return an entry of the log as a request."""
    target = entry.get("objectRef") or {}
    resource = target.get("resource", "") + (f"/{target['subresource']}" if target.get("subresource") else "")
    is_answered = entry["stage"] != "RequestReceived"
    return Request(
        user=entry["user"].get("username", ""),
        received_s=_seconds(entry["requestReceivedTimestamp"]),
        finished_s=_seconds(entry["stageTimestamp"]) if is_answered else 0.0,
        code=(entry.get("responseStatus") or {}).get("code", 0) if is_answered else 0,
        verb=entry["verb"],
        resource=resource,
        namespace=target.get("namespace", ""),
        name=target.get("name", ""),
        agent=entry.get("userAgent", ""),
        uri=entry["requestURI"],
        body=entry.get("requestObject"),
        epoch=epoch,
    )


def lists(requests: Iterable[Request], user: str, *, after_s: float = 0.0) -> dict[str, int]:
    """Return how often a user was given a complete list of each resource.

    Pages that continue do not count, nor does the request for one object, which asks for the newest version only.
    """
    found: dict[str, int] = {}
    for request in requests:
        if request.user == user and request.received_s > after_s and _begins_a_list(request):
            found[request.resource] = found.get(request.resource, 0) + 1
    return found


def _begins_a_list(request: Request) -> bool:
    query = parse_qs(urlsplit(request.uri).query)
    return request.verb == "list" and request.is_done and "continue" not in query and query.get("limit") != ["1"]


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
