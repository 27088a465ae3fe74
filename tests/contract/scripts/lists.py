"""Lists: order, pages, versions, selectors."""

from __future__ import annotations

from tests.contract.scripts.client import Api, names, version


async def list_has_type_version_and_untyped_items_in_key_order(api: Api) -> None:
    for name in ("b", "a", "c"):
        await api.create_pod(name)
    answer = await api.call("GET", api.pods)
    assert answer.code == 200
    assert (answer.body["kind"], answer.body["apiVersion"]) == ("PodList", "v1")
    assert names(answer.body) == ["a", "b", "c"]
    assert "kind" not in answer.body["items"][0]
    newest = max(int(item["metadata"]["resourceVersion"]) for item in answer.body["items"])
    assert int(version(answer.body)) >= newest


async def empty_list_has_empty_items(api: Api) -> None:
    answer = await api.call("GET", api.pods)
    assert (answer.code, answer.body["items"]) == (200, [])


async def pages_show_the_version_of_the_first(api: Api) -> None:
    for index in range(5):
        await api.create_pod(f"p{index}")
    first = (await api.call("GET", api.pods, limit="2")).body
    assert names(first) == ["p0", "p1"]
    assert first["metadata"]["remainingItemCount"] == 3
    await api.call("DELETE", api.pod_path("p3"))
    await api.create_pod("p2a")
    second = (await api.call("GET", api.pods, limit="2", **{"continue": first["metadata"]["continue"]})).body
    third = (await api.call("GET", api.pods, limit="2", **{"continue": second["metadata"]["continue"]})).body
    assert names(second) + names(third) == ["p2", "p3", "p4"]
    assert version(first) == version(second) == version(third)
    assert "continue" not in third["metadata"]


async def limit_with_a_selector_counts_no_remainder(api: Api) -> None:
    for index in range(3):
        await api.create_pod(f"p{index}", labels={"a": "b"})
    page = (await api.call("GET", api.pods, limit="1", labelSelector="a=b")).body
    assert names(page) == ["p0"]
    assert "continue" in page["metadata"]
    assert "remainingItemCount" not in page["metadata"]


async def limit_not_reached_needs_no_continue(api: Api) -> None:
    await api.create_pod()
    page = (await api.call("GET", api.pods, limit="500")).body
    assert (names(page), "continue" in page["metadata"]) == (["p"], False)


async def broken_continue_token_is_a_bad_request(api: Api) -> None:
    answer = await api.call("GET", api.pods, **{"continue": "nonsense"})
    assert (answer.code, answer.reason) == (400, "BadRequest")


async def continue_after_compaction_is_expired_with_a_new_token(api: Api) -> None:
    path = f"/api/v1/namespaces/{api.namespace}/events"  # a kind that the real server reads from etcd
    for index in range(3):
        involved = {"kind": "Pod", "namespace": api.namespace, "name": "p"}
        event = {"metadata": {"name": f"e{index}"}, "involvedObject": involved, "reason": "R", "message": "m"}
        assert (await api.call("POST", path, event)).code == 201
    first = (await api.call("GET", path, limit="1")).body
    await api.create_pod()
    await api.compact()
    answer = await api.call("GET", path, limit="1", **{"continue": first["metadata"]["continue"]})
    assert (answer.code, answer.reason) == (410, "Expired")
    onward = await api.call("GET", path, **{"continue": answer.body["metadata"]["continue"]})
    assert (onward.code, names(onward.body)) == (200, ["e1", "e2"])


async def exact_list_shows_the_past(api: Api) -> None:
    created = await api.create_pod("a")
    await api.create_pod("b")
    query = {"resourceVersion": version(created), "resourceVersionMatch": "Exact"}
    answer = await api.call("GET", api.pods, **query)
    assert (names(answer.body), version(answer.body)) == (["a"], version(created))


async def list_not_older_than_a_version(api: Api) -> None:
    created = await api.create_pod("a")
    query = {"resourceVersion": version(created), "resourceVersionMatch": "NotOlderThan"}
    answer = await api.call("GET", api.pods, **query)
    assert names(answer.body) == ["a"]
    assert int(version(answer.body)) >= int(version(created))
    assert (await api.call("GET", api.pods, resourceVersion="0")).code == 200


async def list_of_the_future_times_out(api: Api) -> None:
    answer = await api.call("GET", api.pods, resourceVersion="999999999")
    assert (answer.code, answer.reason) == (504, "Timeout")
    assert answer.body["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


async def version_match_without_a_version_is_invalid(api: Api) -> None:
    answer = await api.call("GET", api.pods, resourceVersionMatch="Exact")
    assert (answer.code, answer.reason) == (422, "Invalid")
    assert answer.body["details"]["causes"][0]["field"] == "resourceVersionMatch"


async def unreadable_version_is_a_bad_request(api: Api) -> None:
    answer = await api.call("GET", api.pods, resourceVersion="abc")
    assert (answer.code, answer.reason) == (400, "BadRequest")


async def label_selectors(api: Api) -> None:
    await api.create_pod("a", labels={"app": "web", "tier": "1"})
    await api.create_pod("b", labels={"app": "db", "tier": "2"})
    await api.create_pod("c", labels={"tier": "x"})
    expected = {
        "": ["a", "b", "c"],
        "app=web": ["a"],
        "app==web": ["a"],
        "app = web": ["a"],
        "app!=web": ["b", "c"],
        "app": ["a", "b"],
        "!app": ["c"],
        "app in (web,db)": ["a", "b"],
        "app in (web, db),tier=2": ["b"],
        "app notin (web)": ["b", "c"],
        "app,app!=db": ["a"],
        "tier>1": ["b"],
        "tier<2": ["a"],
        "app=": [],
        "app in (web),tier in (1,2)": ["a"],
    }
    found = {text: names((await api.call("GET", api.pods, labelSelector=text)).body) for text in expected}
    assert found == expected


async def bad_label_selectors_are_bad_requests(api: Api) -> None:
    for text in ("a b", "app in web", "app in (web", "a=b,", "app=web)", "=x", "tier>x", "a=b c", "app=we$b"):
        answer = await api.call("GET", api.pods, labelSelector=text)
        assert (answer.code, answer.reason) == (400, "BadRequest"), text


async def field_selectors(api: Api) -> None:
    await api.create_pod("a", schedulerName="podium")
    await api.create_pod("b", nodeName="n1")
    await api.create_pod("c")
    ns = api.namespace
    expected = {
        "metadata.name=a": ["a"],
        "metadata.name!=a": ["b", "c"],
        "metadata.namespace=" + ns: ["a", "b", "c"],
        "metadata.namespace!=" + ns: [],
        "spec.nodeName=": ["a", "c"],
        "spec.nodeName!=": ["b"],
        "spec.nodeName==n1": ["b"],
        "spec.schedulerName=podium": ["a"],
        "spec.schedulerName!=podium,spec.nodeName=": ["c"],
        "status.phase=Pending": ["a", "b", "c"],
        "status.phase!=Succeeded,status.phase!=Failed": ["a", "b", "c"],
        "spec.hostNetwork=false": ["a", "b", "c"],
    }
    found = {text: names((await api.call("GET", api.pods, fieldSelector=text)).body) for text in expected}
    assert found == expected


async def unknown_field_is_a_bad_request(api: Api) -> None:
    answer = await api.call("GET", api.pods, fieldSelector="spec.priority=1")
    assert (answer.code, answer.message) == (400, "field label not supported: spec.priority")
    answer = await api.call("GET", api.pods, fieldSelector="nonsense")
    assert answer.code == 400


async def node_fields(api: Api) -> None:
    node = await api.create_node(spec={"unschedulable": True})
    name = node["metadata"]["name"]
    for text, found in (("spec.unschedulable=true", [name]), ("spec.unschedulable=false", [])):
        selector = f"{text},metadata.name={name}"
        assert names((await api.call("GET", "/api/v1/nodes", fieldSelector=selector)).body) == found


async def all_namespaces_are_listed_together(api: Api) -> None:
    await api.create_pod()
    answer = await api.call("GET", "/api/v1/pods", fieldSelector=f"metadata.namespace={api.namespace}")
    assert names(answer.body) == ["p"]
