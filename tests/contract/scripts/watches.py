"""Watches: resuming, selectors, bookmarks, expiry."""

from __future__ import annotations

import asyncio

from tests.contract.scripts.client import MERGE, Api, version

INITIAL_END = "k8s.io/initial-events-end"


async def watch_from_nothing_shows_what_is_there_first(api: Api) -> None:
    await api.create_pod("a")
    for query in ({}, {"resourceVersion": "0"}):
        async with api.watch(api.pods, **query) as stream:
            assert await stream.names(1) == [("ADDED", "a")]


async def watch_resumes_after_a_version(api: Api) -> None:
    await api.create_pod("a")
    listed = (await api.call("GET", api.pods)).body
    await api.create_pod("b")
    await api.call("DELETE", api.pod_path("a"), gracePeriodSeconds="0")
    async with api.watch(api.pods, resourceVersion=version(listed)) as stream:
        assert await stream.names(3) == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "a")]
        await api.create_pod("c")
        assert await stream.names(1) == [("ADDED", "c")]


async def watch_events_carry_typed_objects_in_version_order(api: Api) -> None:
    created = await api.create_pod("a")
    async with api.watch(api.pods, resourceVersion="0") as stream:
        _, seen = await stream.next()
        assert (seen["kind"], seen["apiVersion"]) == ("Pod", "v1")
        assert seen["metadata"]["uid"] == created["metadata"]["uid"]
        versions = [int(version(seen))]
        for number in range(5):
            await api.patch("a", {"metadata": {"labels": {"n": str(number)}}}, MERGE)
            _, seen = await stream.next()
            versions.append(int(version(seen)))
        assert versions == sorted(set(versions))


async def deletion_event_has_its_own_version(api: Api) -> None:
    node = await api.create_node()
    name = node["metadata"]["name"]
    async with api.watch(
        "/api/v1/nodes", resourceVersion=version(node), fieldSelector=f"metadata.name={name}"
    ) as stream:
        await api.call("DELETE", f"/api/v1/nodes/{name}")
        event, seen = await stream.next()
        assert (event, seen["metadata"]["name"]) == ("DELETED", name)
        assert int(version(seen)) > int(version(node))


async def object_that_enters_or_leaves_the_fields_is_added_or_deleted(api: Api) -> None:
    listed = (await api.call("GET", api.pods)).body
    waiting = api.watch(api.pods, resourceVersion=version(listed), fieldSelector="spec.nodeName=")
    assigned = api.watch(api.pods, resourceVersion=version(listed), fieldSelector="spec.nodeName!=")
    async with waiting as pending, assigned as bound:
        created = await api.create_pod("a")
        assert await pending.names(1) == [("ADDED", "a")]
        await api.bind("a", "n1")
        event, left = await pending.next()
        assert (event, left["spec"].get("nodeName")) == ("DELETED", None)
        assert int(version(left)) > int(version(created))
        event, entered = await bound.next()
        assert (event, entered["spec"]["nodeName"]) == ("ADDED", "n1")
        assert version(left) == version(entered)


async def object_that_enters_or_leaves_the_labels_is_added_or_deleted(api: Api) -> None:
    listed = (await api.call("GET", api.pods)).body
    async with api.watch(api.pods, resourceVersion=version(listed), labelSelector="a=b") as stream:
        await api.create_pod("p")
        await api.patch("p", {"metadata": {"labels": {"a": "b"}}}, MERGE)
        await api.patch("p", {"metadata": {"labels": {"x": "y"}}}, MERGE)
        await api.patch("p", {"metadata": {"labels": {"a": "c"}}}, MERGE)
        await api.patch("p", {"metadata": {"labels": {"a": None}}}, MERGE)
        assert await stream.names(3) == [("ADDED", "p"), ("MODIFIED", "p"), ("DELETED", "p")]
        assert await stream.is_quiet()


async def write_that_changes_nothing_is_not_seen(api: Api) -> None:
    await api.create_pod("p", labels={"a": "b"})
    before = await api.get_pod()
    async with api.watch(api.pods, resourceVersion=version(before)) as stream:
        answer = await api.patch("p", {"metadata": {"labels": {"a": "b"}}}, MERGE)
        assert (answer.code, version(answer.body)) == (200, version(before))
        assert await stream.is_quiet()


async def initial_events_end_with_a_bookmark(api: Api) -> None:
    await api.create_pod("a")
    query = {
        "sendInitialEvents": "true",
        "allowWatchBookmarks": "true",
        "resourceVersionMatch": "NotOlderThan",
        "resourceVersion": "",
    }
    async with api.watch(api.pods, **query) as stream:
        assert await stream.names(1) == [("ADDED", "a")]
        event, mark = await stream.next()
        assert event == "BOOKMARK"
        assert mark["kind"] == "Pod"
        assert mark["metadata"]["annotations"] == {INITIAL_END: "true"}
        await api.create_pod("b")
        assert await stream.names(1) == [("ADDED", "b")]


async def initial_events_need_a_version_match(api: Api) -> None:
    answer = await api.call("GET", api.pods, watch="true", sendInitialEvents="true")
    assert (answer.code, answer.reason) == (422, "Invalid")
    answer = await api.call("GET", api.pods, sendInitialEvents="true", resourceVersionMatch="NotOlderThan")
    assert answer.code == 422


async def watch_of_a_compacted_version_is_expired(api: Api) -> None:
    path = f"/api/v1/namespaces/{api.namespace}/events"  # a kind that the real server watches in etcd
    listed = (await api.call("GET", path)).body
    await api.create_pod("a")
    await api.create_pod("b")
    await api.compact()
    async with api.watch(path, resourceVersion=str(int(version(listed)) - 1)) as stream:
        assert stream.status == 200
        event, status = await stream.next()
        assert event == "ERROR"
        assert (status["kind"], status["code"], status["reason"]) == ("Status", 410, "Expired")
        assert await stream.next() is None


async def watch_ends_after_its_timeout(api: Api) -> None:
    await api.create_pod("a")
    async with api.watch(api.pods, resourceVersion="0", timeoutSeconds="1") as stream:
        assert await stream.names(1) == [("ADDED", "a")]
        assert await stream.next(5) is None


async def bookmark_before_the_end_is_at_the_newest_version(api: Api) -> None:
    query = {"resourceVersion": "0", "timeoutSeconds": "3", "allowWatchBookmarks": "true"}
    created = await api.create_pod("a")
    async with api.watch(api.pods, **query) as stream:
        assert await stream.names(1) == [("ADDED", "a")]
        event, mark = await stream.next(5)
        assert event == "BOOKMARK"
        assert int(version(mark)) >= int(version(created))
        assert mark["metadata"].get("name") is None


async def watch_of_the_future_waits_in_silence(api: Api) -> None:
    async with api.watch(api.pods, resourceVersion="999999999") as stream:
        assert stream.status == 200
        assert await stream.is_quiet()


async def unreadable_version_fails_the_watch(api: Api) -> None:
    answer = await api.call("GET", api.pods, watch="true", resourceVersion="abc")
    assert answer.code == 500


async def many_watchers_see_the_same(api: Api) -> None:
    listed = (await api.call("GET", api.pods)).body

    async def follow() -> list[tuple[str, str]]:
        async with api.watch(api.pods, resourceVersion=version(listed)) as stream:
            return await stream.names(10)

    followers = [asyncio.create_task(follow()) for _ in range(8)]
    for number in range(10):
        await api.create_pod(f"p{number}")
    seen = await asyncio.gather(*followers)
    assert seen == [[("ADDED", f"p{number}") for number in range(10)]] * 8
