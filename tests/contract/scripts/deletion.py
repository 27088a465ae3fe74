"""Deletion: grace periods without a kubelet, preconditions, finalizers."""

from __future__ import annotations

from tests.contract.scripts.client import MERGE, Api, unique, version


async def unscheduled_pod_is_deleted_at_once(api: Api) -> None:
    created = await api.create_pod()
    async with api.watch(api.pods, resourceVersion=version(created)) as stream:
        answer = await api.call("DELETE", api.pod_path("p"))
        assert (answer.code, answer.body["kind"]) == (200, "Pod")
        assert answer.body["metadata"]["deletionGracePeriodSeconds"] == 0
        assert answer.body["metadata"]["generation"] == 2
        assert await stream.names(2) == [("MODIFIED", "p"), ("DELETED", "p")]
    assert (await api.call("GET", api.pod_path("p"))).code == 404


async def bound_pod_stays_until_forced(api: Api) -> None:
    await api.create_pod()
    await api.bind("p", "n1")
    answer = await api.call("DELETE", api.pod_path("p"))
    assert answer.body["metadata"]["deletionGracePeriodSeconds"] == 30
    assert "deletionTimestamp" in answer.body["metadata"]
    held = await api.get_pod()
    assert held["metadata"]["deletionTimestamp"] == answer.body["metadata"]["deletionTimestamp"]
    again = await api.call("DELETE", api.pod_path("p"))
    assert (again.code, version(again.body)) == (200, version(held))
    forced = await api.call("DELETE", api.pod_path("p"), gracePeriodSeconds="0")
    assert forced.code == 200
    assert (await api.call("GET", api.pod_path("p"))).code == 404


async def second_deletion_may_only_shorten_the_grace(api: Api) -> None:
    await api.create_pod()
    await api.bind("p", "n1")
    await api.call("DELETE", api.pod_path("p"), {"gracePeriodSeconds": 60})
    longer = await api.call("DELETE", api.pod_path("p"), {"gracePeriodSeconds": 90})
    assert longer.code == 200, longer.body
    assert longer.body["metadata"]["deletionGracePeriodSeconds"] == 60
    shorter = await api.call("DELETE", api.pod_path("p"), {"gracePeriodSeconds": 5})
    assert shorter.body["metadata"]["deletionGracePeriodSeconds"] == 5


async def finished_pod_is_deleted_at_once(api: Api) -> None:
    created = await api.create_pod(nodeName="n1")
    created["status"]["phase"] = "Succeeded"
    await api.call("PUT", f"{api.pod_path('p')}/status", created)
    await api.call("DELETE", api.pod_path("p"))
    assert (await api.call("GET", api.pod_path("p"))).code == 404


async def pods_own_grace_period_counts(api: Api) -> None:
    await api.create_pod(nodeName="n1", terminationGracePeriodSeconds=7)
    answer = await api.call("DELETE", api.pod_path("p"))
    assert answer.body["metadata"]["deletionGracePeriodSeconds"] == 7


async def deletion_checks_its_preconditions(api: Api) -> None:
    created = await api.create_pod()
    for preconditions in ({"uid": "11111111-2222-3333-4444-555555555555"}, {"resourceVersion": "1"}):
        answer = await api.call("DELETE", api.pod_path("p"), {"preconditions": preconditions})
        assert (answer.code, answer.reason) == (409, "Conflict")
    uid = created["metadata"]["uid"]
    assert (await api.call("DELETE", api.pod_path("p"), {"preconditions": {"uid": uid}})).code == 200


async def deletion_of_an_absent_pod_is_not_found(api: Api) -> None:
    answer = await api.call("DELETE", api.pod_path("p"))
    assert (answer.code, answer.reason) == (404, "NotFound")


async def finalizers_hold_an_object(api: Api) -> None:
    await api.create_pod()
    await api.patch("p", {"metadata": {"finalizers": ["example.org/keep"]}}, MERGE)
    answer = await api.call("DELETE", api.pod_path("p"))
    assert "deletionTimestamp" in answer.body["metadata"]
    held = await api.get_pod()
    async with api.watch(api.pods, resourceVersion=version(held)) as stream:
        assert (await api.patch("p", {"metadata": {"finalizers": None}}, MERGE)).code == 200
        assert await stream.names(1) == [("DELETED", "p")]
    assert (await api.call("GET", api.pod_path("p"))).code == 404


async def node_deletion_answers_a_status(api: Api) -> None:
    node = await api.create_node()
    name = node["metadata"]["name"]
    answer = await api.call("DELETE", f"/api/v1/nodes/{name}")
    details = {"name": name, "kind": "nodes", "uid": node["metadata"]["uid"]}
    assert (answer.code, answer.body["status"], answer.body["details"]) == (200, "Success", details)
    assert (await api.call("GET", f"/api/v1/nodes/{name}")).code == 404


async def collections_are_deleted_by_selector(api: Api) -> None:
    await api.create_pod("a", labels={"x": "1"})
    await api.create_pod("b", labels={"x": "2"})
    assert (await api.call("DELETE", api.pods, labelSelector="x=1")).code == 200
    listed = await api.call("GET", api.pods)
    assert [item["metadata"]["name"] for item in listed.body["items"]] == ["b"]


async def re_created_pod_has_another_uid(api: Api) -> None:
    first = await api.create_pod()
    await api.call("DELETE", api.pod_path("p"))
    second = await api.create_pod()
    assert first["metadata"]["uid"] != second["metadata"]["uid"]
    answer = await api.bind("p", "n1", uid=first["metadata"]["uid"])
    assert answer.code == 409


async def namespace_being_deleted_takes_nothing_new(api: Api) -> None:
    name = unique("ending")
    await api.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    answer = await api.call("DELETE", f"/api/v1/namespaces/{name}")
    assert (answer.code, answer.body["status"]["phase"]) == (200, "Terminating")
    body = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    answer = await api.call("POST", f"/api/v1/namespaces/{name}/pods", body)
    assert (answer.code, answer.reason) == (403, "Forbidden")
