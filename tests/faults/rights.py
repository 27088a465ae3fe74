"""Rights of the deployed scheduler, one by one, and identities that lack one of them."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.controlplane.cluster import RBAC_FILE, REPOSITORY, ControlPlane, rbac_documents
from tests.integration.api import Json

PAGE = REPOSITORY / "docs" / "reference" / "rights.md"
READER = "podium-authentication-reader"
_ROW = re.compile(r"^\| `([a-z,]+) ([a-z/]+)(?:\.([a-z0-9.]+))?` \|[^|]*\| ([^|]*) \|$", re.MULTILINE)
_GROUP = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """Verbs on a resource; reading a kind is one right, since an informer needs both verbs or has none."""

    verbs: tuple[str, ...]
    resource: str
    group: str = ""

    def __str__(self) -> str:
        return f"{','.join(self.verbs)} {self.resource}" + (f".{self.group}" if self.group else "")

    @property
    def is_reading(self) -> bool:
        return self.verbs == ("list", "watch")


def deployed() -> set[Right]:
    """Return every right that the deployed file grants."""
    found = {Right(("get",), "configmaps")}  # by a RoleBinding to a Role that every cluster has
    for document in rbac_documents(RBAC_FILE):
        for rule in document.get("rules", ()):
            verbs = rule["verbs"]
            each = [("list", "watch")] if sorted(verbs) == ["list", "watch"] else [(verb,) for verb in verbs]
            found |= {
                Right(v, resource, group) for v in each for resource in rule["resources"] for group in rule["apiGroups"]
            }
    return found


def documented() -> dict[Right, str]:
    """Return what the page says becomes of a scheduler without each right."""
    rows = _ROW.findall(PAGE.read_text())
    return {Right(tuple(verbs.split(",")), resource, group): without for verbs, resource, group, without in rows}


def identity_without(plane: ControlPlane, user: str, right: Right) -> Path:
    """Make a user with all deployed rights but one; returns a kubeconfig."""
    for document in _documents(user):
        if right.resource == "configmaps" and document["metadata"]["name"] == f"{READER}-{user}":
            continue
        if "rules" in document:
            document["rules"] = [rule for found in document["rules"] for rule in _without(found, right)]
        plane.apply_object(document)
    return plane.client_kubeconfig(user)


def grant_all(plane: ControlPlane, user: str) -> None:
    """Give the user what it lacks."""
    for document in _documents(user):
        plane.apply_object(document)


def _documents(user: str) -> Iterator[Json]:
    """Yield roles and bindings of the user's own."""
    for original in rbac_documents(RBAC_FILE):
        document = copy.deepcopy(original)
        if document["kind"] == "ServiceAccount":
            continue
        document["metadata"]["name"] += f"-{user}"
        if "subjects" in document:
            document["subjects"] = [{"kind": "User", "name": user, "apiGroup": _GROUP}]
            if document["roleRef"]["name"].startswith("podium"):
                document["roleRef"]["name"] += f"-{user}"
        yield document


def _without(rule: Json, right: Right) -> Iterator[Json]:
    for resource in rule["resources"]:
        is_meant = resource == right.resource and right.group in rule["apiGroups"]
        verbs = [verb for verb in rule["verbs"] if not (is_meant and verb in right.verbs)]
        if verbs:
            yield {**rule, "resources": [resource], "verbs": verbs}
