"""The API server's audit log: what a user has asked for, and how it was answered."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml


def audit_flags(directory: Path, users: Sequence[str]) -> list[str]:
    """Return the API server's flags for a log of what these users ask, written to a directory."""
    policy = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata", "users": list(users)}, {"level": "None"}],
    }
    (directory / "policy.yaml").write_text(yaml.safe_dump(policy))
    return [f"--audit-policy-file={directory}/policy.yaml", f"--audit-log-path={directory}/audit.log"]


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """What a rule grants, and what a request uses."""

    verb: str
    group: str
    resource: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}" + (f".{self.group}" if self.group else "")


def granted(roles: Iterable[dict[str, Any]]) -> set[Right]:
    """Return every right on resources that roles grant."""
    return {
        Right(verb, group, resource)
        for role in roles
        for rule in role["rules"]
        for group in rule.get("apiGroups", ())
        for resource in rule.get("resources", ())
        for verb in rule["verbs"]
    }


class Audit:
    """The audit log of one control plane."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "audit.log"

    def requests(self, user: str) -> list[dict[str, Any]]:
        """Return what a user has asked, one entry a finished request or opened watch."""
        events = map(json.loads, self._path.read_text().splitlines())
        return [e for e in events if e["user"]["username"] == user and e["stage"] != "Panic"]

    def refused(self, user: str) -> list[tuple[str, str]]:
        """Return verb and address of the requests that were answered with 401 or 403."""
        requests = self.requests(user)
        return [(e["verb"], e["requestURI"]) for e in requests if e["responseStatus"]["code"] in (401, 403)]

    def used(self, user: str) -> set[Right]:
        """Return the rights on resources that a user has made use of."""
        targets = [(e["verb"], e["objectRef"]) for e in self.requests(user) if "objectRef" in e]
        return {
            Right(verb, t.get("apiGroup", ""), t["resource"] + (f"/{t['subresource']}" if "subresource" in t else ""))
            for verb, t in targets
        }

    def other_paths(self, user: str) -> set[str]:
        """Return the addresses beyond resources that a user has asked for."""
        return {e["requestURI"].partition("?")[0] for e in self.requests(user) if "objectRef" not in e}
