"""Events, reviews, discovery, health, and paths that do not exist."""

from __future__ import annotations

from tests.contract.scripts.client import STRATEGIC, Api, names, unique

TIME = "2026-01-02T03:04:05.000006Z"


def event(api: Api, name: str = "e") -> dict:
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": api.namespace},
        "eventTime": TIME,
        "reportingController": "podium",
        "reportingInstance": "podium-1",
        "action": "Binding",
        "reason": "Scheduled",
        "type": "Normal",
        "regarding": {"kind": "Pod", "namespace": api.namespace, "name": "p", "uid": "u"},
        "note": "Successfully assigned",
    }


async def event_is_seen_through_both_versions(api: Api) -> None:
    new, core = (
        f"/apis/events.k8s.io/v1/namespaces/{api.namespace}/events",
        f"/api/v1/namespaces/{api.namespace}/events",
    )
    created = await api.call("POST", new, event(api))
    assert (created.code, created.body["note"], created.body["eventTime"]) == (201, "Successfully assigned", TIME)
    old = (await api.call("GET", f"{core}/e")).body
    assert (old["apiVersion"], old["message"], old["involvedObject"]["name"]) == ("v1", "Successfully assigned", "p")
    assert (old["reportingComponent"], old["source"]) == ("podium", {})
    selected = await api.call("GET", core, fieldSelector="involvedObject.name=p,reason=Scheduled")
    assert names(selected.body) == ["e"]
    listed = (await api.call("GET", new, fieldSelector="regarding.name=p")).body
    assert (listed["items"][0]["note"], listed["kind"]) == ("Successfully assigned", "EventList")


async def event_series_is_patched(api: Api) -> None:
    path = f"/apis/events.k8s.io/v1/namespaces/{api.namespace}/events"
    await api.call("POST", path, event(api))
    series = {"series": {"count": 2, "lastObservedTime": TIME}}
    answer = await api.call("PATCH", f"{path}/e", series, content_type=STRATEGIC)
    assert (answer.code, answer.body["series"]) == (200, {"count": 2, "lastObservedTime": TIME})


async def incomplete_events_are_invalid(api: Api) -> None:
    path = f"/apis/events.k8s.io/v1/namespaces/{api.namespace}/events"
    for field in ("eventTime", "action", "reason", "reportingController", "reportingInstance"):
        body = event(api)
        del body[field]
        answer = await api.call("POST", path, body)
        assert (answer.code, answer.reason) == (422, "Invalid"), field


async def access_reviews_are_answered(api: Api) -> None:
    attributes = {"resourceAttributes": {"verb": "list", "resource": "pods"}}
    own = await api.call("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": attributes})
    assert (own.code, own.body["status"]["allowed"]) == (201, True)
    spec = {"user": "u", "groups": ["system:masters"], "nonResourceAttributes": {"path": "/metrics", "verb": "get"}}
    other = await api.call("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": spec})
    assert (other.code, other.body["status"]["allowed"]) == (201, True)
    token = await api.call("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "x"}})
    assert (token.code, token.body["kind"]) == (201, "TokenReview")
    assert "user" in token.body["status"]


async def discovery_lists_what_a_scheduler_reads(api: Api) -> None:
    expected = {
        "/api/v1": {"pods", "pods/binding", "pods/status", "nodes", "services", "persistentvolumes", "namespaces"},
        "/apis/apps/v1": {"replicasets", "statefulsets"},
        "/apis/storage.k8s.io/v1": {"storageclasses", "csinodes", "csidrivers", "csistoragecapacities"},
        "/apis/policy/v1": {"poddisruptionbudgets"},
        "/apis/coordination.k8s.io/v1": {"leases"},
        "/apis/events.k8s.io/v1": {"events"},
        "/apis/scheduling.k8s.io/v1": {"priorityclasses"},
        "/apis/resource.k8s.io/v1": {"resourceclaims", "resourceslices", "deviceclasses"},
    }
    for path, wanted in expected.items():
        answer = await api.call("GET", path)
        assert answer.body["kind"] == "APIResourceList"
        resources = {row["name"]: row for row in answer.body["resources"]}
        assert wanted <= resources.keys(), path
    pods = next(row for row in (await api.call("GET", "/api/v1")).body["resources"] if row["name"] == "pods")
    assert (pods["namespaced"], pods["kind"], pods["singularName"], pods["shortNames"]) == (True, "Pod", "pod", ["po"])
    assert {"create", "delete", "get", "list", "patch", "update", "watch"} <= set(pods["verbs"])


async def groups_are_listed(api: Api) -> None:
    answer = await api.call("GET", "/apis")
    groups = {group["name"]: group for group in answer.body["groups"]}
    assert groups["apps"]["preferredVersion"] == {"groupVersion": "apps/v1", "version": "v1"}
    assert (await api.call("GET", "/api")).body["versions"] == ["v1"]
    assert (await api.call("GET", "/apis/apps")).body["kind"] == "APIGroup"


async def health_and_version(api: Api) -> None:
    for path in ("/readyz", "/healthz", "/livez"):
        assert await api.call("GET", path) == (200, "ok")
    answer = (await api.call("GET", "/version")).body
    assert (answer["major"], answer["minor"]) == ("1", "36")


async def unknown_paths_are_not_found(api: Api) -> None:
    answer = await api.call("GET", "/api/v1/unicorns")
    assert (answer.code, answer.reason) == (404, "NotFound")
    answer = await api.call("GET", "/apis/apps/v1/unicorns")
    assert (answer.code, answer.reason) == (404, "NotFound")
    for path in ("/apis/example.org/v1", "/apis/example.org/v1/unicorns", "/nothing"):
        assert (await api.call("GET", path)).code == 404


async def wrong_methods_are_not_allowed(api: Api) -> None:
    answer = await api.call("PUT", api.pods, {})
    assert (answer.code, answer.reason) == (405, "MethodNotAllowed")


async def other_watched_kinds_can_be_created_and_listed(api: Api) -> None:
    selector = {"matchLabels": {"a": "b"}}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    ns = api.namespace
    cases = {
        f"/apis/apps/v1/namespaces/{ns}/replicasets": {"spec": {"selector": selector, "template": template}},
        f"/apis/apps/v1/namespaces/{ns}/statefulsets": {
            "spec": {"selector": selector, "template": template, "serviceName": "s"},
        },
        f"/api/v1/namespaces/{ns}/replicationcontrollers": {"spec": {"selector": {"a": "b"}, "template": template}},
        f"/api/v1/namespaces/{ns}/services": {"spec": {"selector": {"a": "b"}, "ports": [{"port": 80}]}},
        f"/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets": {"spec": {"selector": selector, "minAvailable": 1}},
        f"/api/v1/namespaces/{ns}/configmaps": {"data": {"a": "b"}},
        f"/apis/resource.k8s.io/v1/namespaces/{ns}/resourceclaims": {
            "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}},
        },
        "/apis/resource.k8s.io/v1/deviceclasses": {"spec": {}},
        "/apis/storage.k8s.io/v1/csinodes": {"spec": {"drivers": []}},
        "/apis/storage.k8s.io/v1/csidrivers": {"spec": {"attachRequired": False}},
    }
    for path, body in cases.items():
        name = unique("x")
        created = await api.call("POST", path, {"metadata": {"name": name}, **body})
        assert created.code == 201, (path, created)
        listed = await api.call("GET", path, fieldSelector=f"metadata.name={name}")
        assert names(listed.body) == [name], path
        assert listed.body["kind"] == created.body["kind"] + "List"
        deleted = await api.call("DELETE", f"{path}/{name}")
        assert deleted.code == 200, path
