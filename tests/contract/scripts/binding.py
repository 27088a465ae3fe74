"""Binding: the compare-and-set that makes two schedulers safe beside each other."""

from __future__ import annotations

import asyncio

from tests.contract.scripts.client import MERGE, Api, unique

GATES = [{"name": "example.org/hold"}]


def scheduled(pod: dict) -> dict:
    return next(each for each in pod["status"]["conditions"] if each["type"] == "PodScheduled")


async def bind_assigns_the_node_and_sets_the_condition(api: Api) -> None:
    created = await api.create_pod()
    answer = await api.bind("p", "n1", uid=created["metadata"]["uid"])
    assert answer.code == 201
    assert answer.body == {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    bound = await api.get_pod()
    assert bound["spec"]["nodeName"] == "n1"
    assert scheduled(bound)["status"] == "True"
    assert bound["metadata"]["generation"] == created["metadata"]["generation"]
    assert int(bound["metadata"]["resourceVersion"]) > int(created["metadata"]["resourceVersion"])


async def second_bind_is_a_conflict_that_names_the_node(api: Api) -> None:
    await api.create_pod()
    await api.bind("p", "n1")
    answer = await api.bind("p", "n2")
    assert (answer.code, answer.reason) == (409, "Conflict")
    assert answer.message == (
        'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n1"'
    )
    assert (await api.get_pod())["spec"]["nodeName"] == "n1"


async def bind_of_a_pod_with_another_uid_is_a_conflict(api: Api) -> None:
    await api.create_pod()
    answer = await api.bind("p", "n1", uid="11111111-2222-3333-4444-555555555555")
    assert (answer.code, answer.reason) == (409, "Conflict")
    assert "Precondition failed: UID in precondition" in answer.message
    assert "nodeName" not in (await api.get_pod())["spec"]


async def bind_of_an_old_version_is_a_conflict(api: Api) -> None:
    created = await api.create_pod()
    await api.patch("p", {"metadata": {"labels": {"a": "b"}}}, MERGE)
    answer = await api.bind("p", "n1", resourceVersion=created["metadata"]["resourceVersion"])
    assert (answer.code, answer.reason) == (409, "Conflict")


async def bind_of_a_gated_pod_is_a_conflict(api: Api) -> None:
    await api.create_pod(schedulingGates=GATES)
    answer = await api.bind("p", "n1")
    assert (answer.code, answer.reason) == (409, "Conflict")
    assert answer.message.endswith("pod p has non-empty .spec.schedulingGates")


async def bind_of_a_pod_being_deleted_is_a_conflict(api: Api) -> None:
    await api.create_pod()
    await api.patch("p", {"metadata": {"finalizers": ["example.org/keep"]}}, MERGE)
    await api.call("DELETE", api.pod_path("p"))
    answer = await api.bind("p", "n1")
    assert (answer.code, answer.reason) == (409, "Conflict")
    assert answer.message.endswith("pod p is being deleted, cannot be assigned to a host")


async def bind_of_an_absent_pod_is_not_found(api: Api) -> None:
    answer = await api.bind("p", "n1")
    assert (answer.code, answer.reason) == (404, "NotFound")
    assert answer.message == 'pods "p" not found'


async def bind_under_another_name_is_a_bad_request(api: Api) -> None:
    await api.create_pod()
    body = {"metadata": {"name": "q"}, "target": {"kind": "Node", "name": "n1"}}
    answer = await api.call("POST", f"{api.pod_path('p')}/binding", body)
    assert (answer.code, answer.reason) == (400, "BadRequest")
    assert answer.message == "name in URL does not match name in Binding object"


async def bind_without_a_target_is_an_internal_error(api: Api) -> None:
    await api.create_pod()
    answer = await api.bind("p", "")
    assert (answer.code, answer.message) == (500, "target.name: Required value")
    answer = await api.call(
        "POST",
        f"{api.pod_path('p')}/binding",
        {"metadata": {"name": "p"}, "target": {"kind": "Pod", "name": "n1"}},
    )
    assert answer.code == 500


async def bind_clears_the_nomination(api: Api) -> None:
    await api.create_pod()
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
    await api.patch("p", {"status": {"nominatedNodeName": "n9", "conditions": [condition]}}, subresource="status")
    assert (await api.get_pod())["status"]["nominatedNodeName"] == "n9"
    await api.bind("p", "n1")
    bound = await api.get_pod()
    assert "nominatedNodeName" not in bound["status"]
    assert (scheduled(bound)["status"], "reason" in scheduled(bound)) == ("True", False)
    assert len(bound["status"]["conditions"]) == 1


async def bind_copies_annotations_and_labels_of_the_binding(api: Api) -> None:
    await api.create_pod(labels={"a": "1"})
    metadata = {"name": "p", "labels": {"b": "2"}, "annotations": {"c": "3"}}
    body = {"metadata": metadata, "target": {"kind": "Node", "name": "n1"}}
    assert (await api.call("POST", f"{api.pod_path('p')}/binding", body)).code == 201
    bound = await api.get_pod()
    assert bound["metadata"]["labels"] == {"a": "1", "b": "2"}
    assert bound["metadata"]["annotations"] == {"c": "3"}


async def bind_copies_the_nodes_topology_labels(api: Api) -> None:
    labels = {"topology.kubernetes.io/zone": "z1", "topology.kubernetes.io/region": "r1", "other": "x"}
    node = await api.create_node(labels=labels)
    await api.create_pod()
    for _ in range(50):  # the real server reads nodes from an informer
        await api.bind("p", node["metadata"]["name"])
        held = (await api.get_pod())["metadata"].get("labels", {})
        if held:
            break
        await api.call("DELETE", api.pod_path("p"), gracePeriodSeconds="0")
        await api.create_pod()
        await asyncio.sleep(0.1)
    assert held == {"topology.kubernetes.io/zone": "z1", "topology.kubernetes.io/region": "r1"}


async def bind_to_an_unknown_node_succeeds(api: Api) -> None:
    await api.create_pod()
    assert (await api.bind("p", unique("nowhere"))).code == 201


async def bind_through_the_old_bindings_resource(api: Api) -> None:
    await api.create_pod()
    body = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}
    answer = await api.call("POST", f"/api/v1/namespaces/{api.namespace}/bindings", body)
    assert answer.code == 201
    assert (await api.get_pod())["spec"]["nodeName"] == "n1"


async def of_many_concurrent_binds_exactly_one_wins(api: Api) -> None:
    await api.create_pod()
    answers = await asyncio.gather(*(api.bind("p", f"n{i}") for i in range(16)))
    assert sorted(answer.code for answer in answers) == [201] + [409] * 15


async def bind_is_seen_as_one_modification(api: Api) -> None:
    created = await api.create_pod()
    async with api.watch(api.pods, resourceVersion=created["metadata"]["resourceVersion"]) as stream:
        await api.bind("p", "n1")
        event, seen = await stream.next()
        assert (event, seen["spec"]["nodeName"]) == ("MODIFIED", "n1")
        assert await stream.is_quiet()
