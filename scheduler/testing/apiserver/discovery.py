"""What clients ask before anything else: API groups, resources, the version, a minimal OpenAPI document.

kubectl builds its REST mapping from these answers; the OpenAPI document says only that server-side field validation is
understood, so that `kubectl apply` does not look for schemas that an in-memory server does not have.
"""

from __future__ import annotations

from collections.abc import Iterator

from scheduler.testing.apiserver.resources import ALL_VERBS, RESOURCES, Resource
from scheduler.testing.apiserver.status import Json

__all__ = ["REVIEWS", "discover", "version"]

KUBERNETES_VERSION = (1, 36, 3)

REVIEWS: dict[tuple[str, str], tuple[str, str]] = {
    ("authentication.k8s.io", "tokenreviews"): ("TokenReview", "authentication.k8s.io/v1"),
    ("authentication.k8s.io", "selfsubjectreviews"): ("SelfSubjectReview", "authentication.k8s.io/v1"),
    ("authorization.k8s.io", "subjectaccessreviews"): ("SubjectAccessReview", "authorization.k8s.io/v1"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"): ("SelfSubjectAccessReview", "authorization.k8s.io/v1"),
}


def version() -> Json:
    """Return the answer of /version."""
    major, minor, patch = KUBERNETES_VERSION
    return {
        "major": str(major),
        "minor": str(minor),
        "gitVersion": f"v{major}.{minor}.{patch}+podium-embedded",
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "python",
        "platform": "linux/amd64",
    }


def discover(path: str) -> Json | None:
    """Return the discovery document at `path`, or None when it is no discovery path."""
    steps = path.strip("/").split("/")
    if steps == ["api"]:
        return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
    if steps == ["apis"]:
        groups = [_group(name, versions) for name, versions in _groups().items()]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
    if steps == ["api", "v1"]:
        return _resource_list("", "v1")
    if steps[0] == "apis" and len(steps) == 2 and steps[1] in _groups():
        return {"kind": "APIGroup", "apiVersion": "v1", **_group(steps[1], _groups()[steps[1]])}
    if steps[0] == "apis" and len(steps) == 3 and steps[2] in _groups().get(steps[1], ()):
        return _resource_list(steps[1], steps[2])
    if steps[:2] == ["openapi", "v3"]:
        return _open_api("/".join(steps[2:]))
    return None


def _groups() -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    pairs = [(r.group, r.version) for r in RESOURCES] + [(group, "v1") for group, _ in REVIEWS]
    for group, each in pairs:
        if group and each not in groups.setdefault(group, []):
            groups[group].append(each)
    return groups


def _group(name: str, versions: list[str]) -> Json:
    listed = [{"groupVersion": f"{name}/{each}", "version": each} for each in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _resource_list(group: str, each: str) -> Json:
    group_version = f"{group}/{each}" if group else each
    rows = [row for r in RESOURCES if (r.group, r.version) == (group, each) for row in _rows(r)]
    for (review_group, plural), (kind, _) in REVIEWS.items():
        if review_group == group:
            row = {"name": plural, "singularName": kind.lower(), "namespaced": False, "kind": kind}
            rows.append({**row, "verbs": ["create"]})
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": rows}


def _rows(resource: Resource) -> Iterator[Json]:
    row: Json = {"name": resource.plural, "singularName": resource.kind.lower(), "namespaced": resource.namespaced}
    row |= {"kind": resource.kind, "verbs": list(ALL_VERBS)}
    if resource.short_names:
        row["shortNames"] = list(resource.short_names)
    if resource.categories:
        row["categories"] = list(resource.categories)
    yield row
    for name in resource.subresources:
        kind, verbs = ("Binding", ["create"]) if name == "binding" else (resource.kind, ["get", "patch", "update"])
        yield {
            "name": f"{resource.plural}/{name}",
            "singularName": "",
            "namespaced": resource.namespaced,
            "kind": kind,
            "verbs": verbs,
        }


def _open_api(document: str) -> Json | None:
    versions = {"api/v1": ("", "v1")}
    versions |= {f"apis/{group}/{each}": (group, each) for group, held in _groups().items() for each in held}
    if not document:
        return {"paths": {name: {"serverRelativeURL": f"/openapi/v3/{name}"} for name in versions}}
    if document not in versions:
        return None
    paths = {}
    for resource in RESOURCES:
        if (resource.group, resource.version) == versions[document]:
            collection = resource.collection_path("{namespace}")
            kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
            parameter = {"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}
            operation = {"parameters": [parameter], "x-kubernetes-group-version-kind": kind}
            paths[f"{collection}/{{name}}"] = {"patch": operation}
    return {"openapi": "3.0.0", "info": {"title": "Podium embedded", "version": "1"}, "paths": paths}
