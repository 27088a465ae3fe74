"""Create, update, patch: concurrency, preconditions, system fields, refusals."""

from __future__ import annotations

import asyncio

from tests.contract.scripts.client import JSON_PATCH, MERGE, STRATEGIC, Api, container, pod, unique, version

CONDITION = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}


async def create_sets_the_system_fields(api: Api) -> None:
    body = pod()
    body["metadata"] |= {"uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z", "generation": 7}
    body["status"] = {"phase": "Running", "nominatedNodeName": "n1"}
    answer = await api.call("POST", api.pods, body)
    assert answer.code == 201
    metadata = answer.body["metadata"]
    assert len(metadata["uid"]) == 36
    assert metadata["creationTimestamp"] > "2020"
    assert (metadata["generation"], metadata["namespace"]) == (1, api.namespace)
    assert (answer.body["kind"], answer.body["apiVersion"]) == ("Pod", "v1")
    assert answer.body["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


async def create_twice_already_exists(api: Api) -> None:
    await api.create_pod()
    answer = await api.call("POST", api.pods, pod())
    assert (answer.code, answer.reason) == (409, "AlreadyExists")
    assert answer.message == 'pods "p" already exists'
    assert answer.body["details"] == {"name": "p", "kind": "pods"}


async def create_with_a_version_is_refused(api: Api) -> None:
    body = pod()
    body["metadata"]["resourceVersion"] = "5"
    assert (await api.call("POST", api.pods, body)).code == 500


async def generate_name_appends_five_characters(api: Api) -> None:
    body = pod()
    body["metadata"] = {"generateName": "web-"}
    created = (await api.call("POST", api.pods, body)).body
    name = created["metadata"]["name"]
    assert name.startswith("web-")
    assert len(name) == 9
    assert created["metadata"]["generateName"] == "web-"


async def create_in_an_unknown_namespace_is_not_found(api: Api) -> None:
    answer = await api.call("POST", f"/api/v1/namespaces/{unique('no')}/pods", pod())
    assert (answer.code, answer.reason, answer.body["details"]["kind"]) == (404, "NotFound", "namespaces")


async def create_for_another_namespace_is_a_bad_request(api: Api) -> None:
    body = pod()
    body["metadata"]["namespace"] = "default"
    assert (await api.call("POST", api.pods, body)).code == 400


async def invalid_pods_name_every_problem(api: Api) -> None:
    answer = await api.call("POST", api.pods, pod("Not A Name", containers=[]))
    assert (answer.code, answer.reason) == (422, "Invalid")
    causes = {(cause["field"], cause["reason"]) for cause in answer.body["details"]["causes"]}
    assert causes == {("metadata.name", "FieldValueInvalid"), ("spec.containers", "FieldValueRequired")}


async def invalid_resources(api: Api) -> None:
    cases = {
        "request above the limit": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}},
        "negative": {"requests": {"cpu": "-1"}},
        "unknown resource": {"requests": {"gpu": "1"}},
        "extended resource without a limit": {"requests": {"example.org/gpu": "1"}},
    }
    for name, resources in cases.items():
        answer = await api.call("POST", api.pods, pod(containers=[container(resources=resources)]))
        assert (answer.code, answer.reason) == (422, "Invalid"), name


async def gated_pod_with_a_node_is_invalid(api: Api) -> None:
    answer = await api.call("POST", api.pods, pod(nodeName="n1", schedulingGates=[{"name": "example.org/hold"}]))
    assert answer.code == 422
    assert answer.body["details"]["causes"][0]["field"] == "spec.nodeName"


async def malformed_bodies_are_bad_requests(api: Api) -> None:
    resources = {"requests": {"cpu": "much"}}
    cases: dict[str, bytes | dict] = {
        "no JSON": b"{x",
        "another kind": {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "p"}},
        "a text for a list": {"metadata": {"name": "p"}, "spec": {"containers": "x"}},
        "a number for a label": {"metadata": {"name": "p", "labels": {"a": 1}}, "spec": {}},
        "no quantity": pod(containers=[container(resources=resources)]),
    }
    for name, body in cases.items():
        answer = (
            await api.call("POST", api.pods, raw=body)
            if isinstance(body, bytes)
            else await api.call("POST", api.pods, body)
        )
        assert (answer.code, answer.reason) == (400, "BadRequest"), name


async def unknown_media_types_are_unsupported(api: Api) -> None:
    answer = await api.call("POST", api.pods, raw=b"x", content_type="text/plain")
    assert (answer.code, answer.reason) == (415, "UnsupportedMediaType")
    await api.create_pod()
    answer = await api.call("PATCH", api.pod_path("p"), {}, content_type="application/json")
    assert (answer.code, answer.reason) == (415, "UnsupportedMediaType")


async def yaml_is_accepted(api: Api) -> None:
    text = b"metadata: {name: p}\nspec: {containers: [{name: c, image: x}]}"
    assert (await api.call("POST", api.pods, raw=text, content_type="application/yaml")).code == 201


# --- optimistic concurrency ------------------------------------------------------------------------------------------


async def update_of_an_old_version_is_a_conflict(api: Api) -> None:
    created = await api.create_pod()
    await api.patch("p", {"metadata": {"labels": {"a": "b"}}}, MERGE)
    created["metadata"]["labels"] = {"a": "c"}
    answer = await api.call("PUT", api.pod_path("p"), created)
    assert (answer.code, answer.reason) == (409, "Conflict")
    assert answer.message == (
        'Operation cannot be fulfilled on pods "p": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )


async def update_of_the_newest_version_succeeds(api: Api) -> None:
    created = await api.create_pod()
    created["metadata"]["labels"] = {"a": "c"}
    answer = await api.call("PUT", api.pod_path("p"), created)
    assert (answer.code, answer.body["metadata"]["labels"]) == (200, {"a": "c"})
    assert int(version(answer.body)) > int(version(created))
    assert answer.body["metadata"]["generation"] == 1


async def update_without_a_version_is_unconditional(api: Api) -> None:
    created = await api.create_pod()
    del created["metadata"]["resourceVersion"]
    created["metadata"]["labels"] = {"a": "c"}
    assert (await api.call("PUT", api.pod_path("p"), created)).code == 200


async def update_with_another_uid_is_a_conflict(api: Api) -> None:
    created = await api.create_pod()
    created["metadata"]["uid"] = "11111111-2222-3333-4444-555555555555"
    answer = await api.call("PUT", api.pod_path("p"), created)
    assert (answer.code, answer.reason) == (409, "Conflict")


async def update_under_another_name_is_a_bad_request(api: Api) -> None:
    created = await api.create_pod()
    answer = await api.call("PUT", api.pod_path("q"), created)
    assert (answer.code, answer.reason) == (400, "BadRequest")


async def update_of_an_absent_pod_is_not_found(api: Api) -> None:
    answer = await api.call("PUT", api.pod_path("p"), pod())
    assert (answer.code, answer.reason) == (404, "NotFound")


async def update_cannot_assign_a_node(api: Api) -> None:
    await api.create_pod()
    answer = await api.patch("p", {"spec": {"nodeName": "n1"}}, MERGE)
    assert (answer.code, answer.reason) == (422, "Invalid")
    assert answer.body["details"]["causes"][0]["reason"] == "FieldValueForbidden"


async def update_ignores_the_status(api: Api) -> None:
    created = await api.create_pod()
    created["status"] = {"phase": "Running"}
    answer = await api.call("PUT", api.pod_path("p"), created)
    assert (answer.code, answer.body["status"]["phase"]) == (200, "Pending")


async def gates_can_only_be_removed(api: Api) -> None:
    await api.create_pod(schedulingGates=[{"name": "example.org/a"}, {"name": "example.org/b"}])
    answer = await api.patch("p", {"spec": {"schedulingGates": [{"name": "example.org/c"}]}}, MERGE)
    assert (answer.code, answer.reason) == (422, "Invalid")
    answer = await api.patch("p", {"spec": {"schedulingGates": [{"name": "example.org/b"}]}}, MERGE)
    assert answer.code == 200
    answer = await api.patch("p", {"spec": {"schedulingGates": None}}, MERGE)
    assert (answer.code, answer.body["metadata"]["generation"]) == (200, 3)
    assert "schedulingGates" not in answer.body["spec"]


async def gated_pods_may_be_narrowed(api: Api) -> None:
    await api.create_pod(schedulingGates=[{"name": "example.org/a"}], nodeSelector={"a": "b"})
    answer = await api.patch("p", {"spec": {"nodeSelector": {"c": "d"}}}, MERGE)
    assert (answer.code, answer.body["spec"]["nodeSelector"]) == (200, {"a": "b", "c": "d"})
    await api.create_pod("q", nodeSelector={"a": "b"})
    assert (await api.patch("q", {"spec": {"nodeSelector": {"c": "d"}}}, MERGE)).code == 422


async def tolerations_can_only_be_added(api: Api) -> None:
    own, other = ({"key": key, "operator": "Exists"} for key in ("own", "other"))
    held = (await api.create_pod(tolerations=[own]))["spec"]["tolerations"]
    answer = await api.patch("p", {"spec": {"tolerations": [*held, other]}}, MERGE)
    assert (answer.code, len(answer.body["spec"]["tolerations"])) == (200, 4)
    assert answer.body["metadata"]["generation"] == 2
    answer = await api.patch("p", {"spec": {"tolerations": [own, other]}}, MERGE)  # admission adds its two again
    assert (answer.code, len(answer.body["spec"]["tolerations"])) == (200, 4)
    answer = await api.patch("p", {"spec": {"tolerations": [other]}}, MERGE)
    assert (answer.code, answer.reason) == (422, "Invalid")


async def image_may_change(api: Api) -> None:
    await api.create_pod()
    patch = {"spec": {"containers": [{"name": "c", "image": "example.org/app:2"}]}}
    answer = await api.patch("p", patch, STRATEGIC)
    assert (answer.code, answer.body["spec"]["containers"][0]["image"]) == (200, "example.org/app:2")
    assert answer.body["metadata"]["generation"] == 2


# --- patches ---------------------------------------------------------------------------------------------------------


async def strategic_patch_merges_conditions_by_type(api: Api) -> None:
    await api.create_pod()
    other = {"type": "Ready", "status": "False"}
    answer = await api.patch("p", {"status": {"conditions": [CONDITION, other]}}, subresource="status")
    assert answer.code == 200
    changed = {"type": "PodScheduled", "status": "False", "reason": "SchedulerError"}
    answer = await api.patch("p", {"status": {"conditions": [changed]}}, subresource="status")
    conditions = {each["type"]: each for each in answer.body["status"]["conditions"]}
    assert conditions.keys() == {"PodScheduled", "Ready"}
    assert conditions["PodScheduled"]["reason"] == "SchedulerError"
    assert conditions["PodScheduled"]["message"] == "0/1 nodes"
    assert conditions["PodScheduled"]["lastProbeTime"] is None


async def strategic_patch_deletes_and_replaces(api: Api) -> None:
    await api.create_pod()
    await api.patch(
        "p", {"status": {"conditions": [CONDITION, {"type": "Ready", "status": "True"}]}}, subresource="status"
    )
    patch = {"status": {"conditions": [{"$patch": "delete", "type": "Ready"}], "nominatedNodeName": "n1"}}
    answer = await api.patch("p", patch, subresource="status")
    assert [each["type"] for each in answer.body["status"]["conditions"]] == ["PodScheduled"]
    assert answer.body["status"]["nominatedNodeName"] == "n1"
    answer = await api.patch("p", {"status": {"nominatedNodeName": None}}, subresource="status")
    assert "nominatedNodeName" not in answer.body["status"]


async def status_patch_leaves_the_spec_and_generation(api: Api) -> None:
    created = await api.create_pod()
    patch = {"spec": {"schedulerName": "other"}, "status": {"conditions": [CONDITION]}}
    answer = await api.patch("p", patch, subresource="status")
    assert answer.code == 200
    assert answer.body["spec"] == created["spec"]
    assert answer.body["metadata"]["generation"] == 1
    assert answer.body["status"]["qosClass"] == "BestEffort"


async def status_put_replaces_the_status(api: Api) -> None:
    created = await api.create_pod()
    created["status"] = {"phase": "Running"}
    answer = await api.call("PUT", f"{api.pod_path('p')}/status", created)
    assert (answer.code, answer.body["status"]) == (200, {"phase": "Running", "qosClass": "BestEffort"})


async def patch_of_an_old_version_is_a_conflict(api: Api) -> None:
    created = await api.create_pod()
    await api.patch("p", {"metadata": {"labels": {"a": "b"}}}, MERGE)
    patch = {"metadata": {"resourceVersion": version(created)}, "status": {"nominatedNodeName": "n1"}}
    answer = await api.patch("p", patch, subresource="status")
    assert (answer.code, answer.reason) == (409, "Conflict")


async def patch_with_another_uid_is_refused(api: Api) -> None:
    await api.create_pod()
    patch = {"metadata": {"uid": "11111111-2222-3333-4444-555555555555"}, "status": {"nominatedNodeName": "n1"}}
    answer = await api.patch("p", patch, subresource="status")
    assert (answer.code, answer.reason) == (422, "Invalid")
    assert answer.body["details"]["causes"][0]["field"] == "metadata.uid"


async def patch_of_an_absent_pod_is_not_found(api: Api) -> None:
    for kind, patch in ((STRATEGIC, {}), (MERGE, {}), (JSON_PATCH, [])):
        answer = await api.patch("p", patch, kind)
        assert (answer.code, answer.reason) == (404, "NotFound")


async def json_patch_operations(api: Api) -> None:
    await api.create_pod(labels={"a": "1", "b": "2"})
    operations = [
        {"op": "test", "path": "/metadata/labels/a", "value": "1"},
        {"op": "replace", "path": "/metadata/labels/a", "value": "9"},
        {"op": "remove", "path": "/metadata/labels/b"},
        {"op": "add", "path": "/metadata/labels/example.org~1c", "value": "3"},
        {"op": "copy", "from": "/metadata/labels/a", "path": "/metadata/labels/d"},
    ]
    answer = await api.patch("p", operations, JSON_PATCH)
    assert (answer.code, answer.body["metadata"]["labels"]) == (200, {"a": "9", "example.org/c": "3", "d": "9"})


async def json_patch_that_does_not_fit_is_invalid(api: Api) -> None:
    await api.create_pod()
    for operation in (
        {"op": "test", "path": "/metadata/name", "value": "q"},
        {"op": "remove", "path": "/metadata/labels/none"},
    ):
        answer = await api.patch("p", [operation], JSON_PATCH)
        assert (answer.code, answer.reason) == (422, "Invalid")
    assert (await api.call("PATCH", api.pod_path("p"), raw=b"{", content_type=JSON_PATCH)).code == 400


async def merge_patch_removes_with_null(api: Api) -> None:
    await api.create_pod(labels={"a": "1", "b": "2"})
    answer = await api.patch("p", {"metadata": {"labels": {"a": None}}}, MERGE)
    assert answer.body["metadata"]["labels"] == {"b": "2"}


async def concurrent_patches_all_land(api: Api) -> None:
    await api.create_pod()
    patches = [api.patch("p", {"metadata": {"labels": {f"k{i}": "v"}}}, MERGE) for i in range(8)]
    assert {answer.code for answer in await asyncio.gather(*patches)} == {200}
    assert len((await api.get_pod())["metadata"]["labels"]) == 8


async def dry_run_changes_nothing(api: Api) -> None:
    answer = await api.call("POST", api.pods, pod(), dryRun="All")
    assert answer.code == 201
    assert (await api.call("GET", api.pod_path("p"))).code == 404


# --- nodes and others ------------------------------------------------------------------------------------------------


async def node_status_and_spec_are_apart(api: Api) -> None:
    node = await api.create_node(status={"capacity": {"cpu": "4"}})
    path = f"/api/v1/nodes/{node['metadata']['name']}"
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    answer = await api.call("PATCH", f"{path}/status", {"status": ready}, content_type=STRATEGIC)
    assert (answer.code, answer.body["status"]["conditions"][0]["status"]) == (200, "True")
    assert answer.body["status"]["capacity"] == {"cpu": "4"}
    patch = {
        "spec": {"unschedulable": True, "taints": [{"key": "k", "effect": "NoSchedule"}]},
        "status": {"phase": "x"},
    }
    answer = await api.call("PATCH", path, patch, content_type=STRATEGIC)
    assert answer.body["spec"] == {"unschedulable": True, "taints": [{"key": "k", "effect": "NoSchedule"}]}
    assert "phase" not in answer.body["status"]


async def lease_needs_a_version_to_be_updated(api: Api) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{api.namespace}/leases"
    body = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15}}
    created = await api.call("POST", path, body)
    assert created.code == 201
    assert (await api.call("PUT", f"{path}/l", body)).code == 422
    body["metadata"]["resourceVersion"] = version(created.body)
    body["spec"]["holderIdentity"] = "b"
    assert (await api.call("PUT", f"{path}/l", body)).code == 200
    answer = await api.call("PUT", f"{path}/l", body)
    assert (answer.code, answer.reason) == (409, "Conflict")


async def lease_times_keep_their_microseconds(api: Api) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{api.namespace}/leases"
    spec = {"holderIdentity": "a", "renewTime": "2026-01-02T03:04:05.000006Z", "leaseTransitions": 0}
    answer = await api.call("POST", path, {"metadata": {"name": "l"}, "spec": spec})
    assert answer.body["spec"]["renewTime"] == "2026-01-02T03:04:05.000006Z"
    assert answer.body["spec"]["leaseTransitions"] == 0


async def lease_put_of_a_new_name_creates(api: Api) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{api.namespace}/leases/l"
    answer = await api.call("PUT", path, {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}})
    assert answer.code == 201


async def resize_changes_resources_only(api: Api) -> None:
    await api.create_pod(containers=[container(resources={"requests": {"cpu": "1"}})])
    grown = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}}
    answer = await api.patch("p", grown)
    assert (answer.code, answer.reason) == (422, "Invalid")
    answer = await api.patch("p", grown, subresource="resize")
    assert answer.code == 200, answer
    assert (answer.code, answer.body["spec"]["containers"][0]["resources"]["requests"]["cpu"]) == (200, "2")
    assert answer.body["metadata"]["generation"] == 2


async def claim_is_reserved_through_its_status(api: Api) -> None:
    path = f"/apis/resource.k8s.io/v1/namespaces/{api.namespace}/resourceclaims"
    spec = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}
    created = await api.call("POST", path, {"metadata": {"name": "x"}, "spec": spec})
    assert created.code == 201
    created.body["status"] = {
        "allocation": {"devices": {"results": [{"request": "r", "driver": "d.org", "pool": "p", "device": "d1"}]}},
        "reservedFor": [{"resource": "pods", "name": "p", "uid": "u1"}],
    }
    answer = await api.call("PUT", f"{path}/x/status", created.body)
    assert (answer.code, answer.body["status"]["reservedFor"][0]["uid"]) == (200, "u1")
    patch = {"status": {"reservedFor": [{"resource": "pods", "name": "q", "uid": "u2"}]}}
    answer = await api.call("PATCH", f"{path}/x/status", patch, content_type=STRATEGIC)
    assert {each["uid"] for each in answer.body["status"]["reservedFor"]} == {"u1", "u2"}


async def claim_of_a_volume_is_bound_by_two_writes(api: Api) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "s"}
    path = f"/api/v1/namespaces/{api.namespace}/persistentvolumeclaims"
    await api.call("POST", path, {"metadata": {"name": "c"}, "spec": spec})
    patch = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n1"}}}
    answer = await api.call("PATCH", f"{path}/c", patch, content_type=MERGE)
    assert (answer.code, answer.body["status"]["phase"]) == (200, "Pending")
    answer.body["spec"]["volumeName"] = "v"
    answer = await api.call("PUT", f"{path}/c", answer.body)
    assert (answer.code, answer.body["spec"]["volumeName"]) == (200, "v")
