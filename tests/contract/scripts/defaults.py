"""Defaults and admission: what a scheduler finds in objects that say little."""

from __future__ import annotations

from tests.contract.scripts.client import Api, container, pod, unique


async def plain_pod_gets_every_default(api: Api) -> None:
    created = await api.create_pod(containers=[{"name": "c", "image": "nginx", "ports": [{"containerPort": 80}]}])
    assert created["spec"] == {
        "containers": [
            {
                "name": "c",
                "image": "nginx",
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "imagePullPolicy": "Always",
            },
        ],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "tolerations": [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
        ],
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
    }


async def default_tolerations_do_not_double(api: Api) -> None:
    everything = [{"operator": "Exists"}]
    assert (await api.create_pod("a", tolerations=everything))["spec"]["tolerations"] == everything
    own = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    created = await api.create_pod("b", tolerations=[own])
    keys = [each["key"] for each in created["spec"]["tolerations"]]
    assert (created["spec"]["tolerations"][0], keys[1:]) == (own, ["node.kubernetes.io/unreachable"])
    schedule_only = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoSchedule"}
    created = await api.create_pod("c", tolerations=[schedule_only])
    assert len(created["spec"]["tolerations"]) == 3


async def requests_come_from_limits(api: Api) -> None:
    resources = {"limits": {"cpu": "2", "memory": "1Gi", "example.org/gpu": "1"}, "requests": {"cpu": "1"}}
    first = container(resources=resources)
    created = await api.create_pod(
        containers=[first], initContainers=[container("i", resources={"limits": {"cpu": "3"}})]
    )
    requests = {"cpu": "1", "memory": "1Gi", "example.org/gpu": "1"}
    assert created["spec"]["containers"][0]["resources"]["requests"] == requests
    assert created["spec"]["initContainers"][0]["resources"]["requests"] == {"cpu": "3"}


async def qos_classes(api: Api) -> None:
    full = {"cpu": "1", "memory": "1Gi"}
    guaranteed = await api.create_pod("a", containers=[container(resources={"limits": full})])
    burstable = await api.create_pod("b", containers=[container(resources={"requests": full})])
    best_effort = await api.create_pod("c")
    classes = [each["status"]["qosClass"] for each in (guaranteed, burstable, best_effort)]
    assert classes == ["Guaranteed", "Burstable", "BestEffort"]


async def host_network_sets_host_ports(api: Api) -> None:
    ports = [{"containerPort": 8080}]
    created = await api.create_pod(hostNetwork=True, containers=[container(ports=ports)])
    assert created["spec"]["containers"][0]["ports"][0]["hostPort"] == 8080


async def image_tags_decide_the_pull_policy(api: Api) -> None:
    images = {"a:5000/x": "Always", "x:latest": "Always", "x:1": "IfNotPresent", "a:5000/x:1": "IfNotPresent"}
    containers = [{"name": f"c{number}", "image": image} for number, image in enumerate(images)]
    created = await api.create_pod(containers=containers)
    assert [each["imagePullPolicy"] for each in created["spec"]["containers"]] == list(images.values())


async def gated_pod_has_the_condition(api: Api) -> None:
    created = await api.create_pod(schedulingGates=[{"name": "example.org/hold"}])
    (condition,) = created["status"]["conditions"]
    assert condition.pop("lastTransitionTime") > "2020"
    assert condition == {
        "type": "PodScheduled",
        "status": "False",
        "lastProbeTime": None,
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
    }


async def priority_comes_from_the_class(api: Api) -> None:
    name = unique("high")
    body = {"metadata": {"name": name}, "value": 1000, "preemptionPolicy": "Never"}
    created = await api.call("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", body)
    assert created.code == 201
    made = await _create_when_known(api, "p", priorityClassName=name)
    assert (made["spec"]["priority"], made["spec"]["preemptionPolicy"]) == (1000, "Never")
    system = await api.create_pod("s", priorityClassName="system-node-critical")
    assert system["spec"]["priority"] == 2_000_001_000


async def _create_when_known(api: Api, name: str, **spec: str) -> dict:
    """The real server reads priority classes from an informer, with the API as a second look."""
    answer = await api.call("POST", api.pods, pod(name, **spec))
    assert answer.code == 201, answer
    return answer.body


async def unknown_priority_class_is_forbidden(api: Api) -> None:
    answer = await api.call("POST", api.pods, pod(priorityClassName="nope"))
    assert (answer.code, answer.reason) == (403, "Forbidden")
    assert answer.message == 'pods "p" is forbidden: no PriorityClass with name nope was found'
    answer = await api.call("POST", api.pods, pod(priority=5))
    assert answer.code == 403


async def allocatable_comes_from_capacity(api: Api) -> None:
    capacity = {"cpu": "4", "memory": "8Gi"}
    node = await api.create_node(status={"capacity": capacity, "allocatable": {"cpu": "3"}})
    assert node["status"]["allocatable"] == {"cpu": "3"}
    node = await api.create_node(status={"capacity": capacity})
    assert node["status"]["allocatable"] == capacity
    assert node["spec"] == {}
    assert "generation" not in node["metadata"]


async def namespace_has_its_name_label(api: Api) -> None:
    answer = await api.call("GET", f"/api/v1/namespaces/{api.namespace}")
    assert answer.body["metadata"]["labels"] == {"kubernetes.io/metadata.name": api.namespace}
    assert answer.body["status"] == {"phase": "Active"}


async def pod_created_on_a_node_has_no_condition(api: Api) -> None:
    created = await api.create_pod(nodeName="n1")
    assert created["spec"]["nodeName"] == "n1"
    assert "conditions" not in created["status"]


async def volumes_and_claims_begin_pending(api: Api) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "s"}
    path = f"/api/v1/namespaces/{api.namespace}/persistentvolumeclaims"
    claim = await api.call("POST", path, {"metadata": {"name": "c"}, "spec": spec, "status": {"phase": "Bound"}})
    assert (claim.code, claim.body["status"], claim.body["spec"]["volumeMode"]) == (
        201,
        {"phase": "Pending"},
        "Filesystem",
    )
    volume_spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    name = unique("pv")
    volume = await api.call("POST", "/api/v1/persistentvolumes", {"metadata": {"name": name}, "spec": volume_spec})
    assert (volume.code, volume.body["spec"]["persistentVolumeReclaimPolicy"]) == (201, "Retain")
    bound = {"status": {"phase": "Bound"}}
    answer = await api.call("PATCH", f"{path}/c/status", bound, content_type="application/merge-patch+json")
    assert answer.body["status"]["phase"] == "Bound"


async def storage_class_defaults(api: Api) -> None:
    body = {"metadata": {"name": unique("sc")}, "provisioner": "example.org/x"}
    answer = await api.call("POST", "/apis/storage.k8s.io/v1/storageclasses", body)
    assert (answer.body["reclaimPolicy"], answer.body["volumeBindingMode"]) == ("Delete", "Immediate")


async def pod_level_resources_are_completed(api: Api) -> None:
    containers = [
        container("a", resources={"requests": {"cpu": "500m", "memory": "1Gi"}}),
        container("b", resources={"requests": {"cpu": "250m"}}),
    ]
    created = await api.create_pod("p", containers=containers, resources={"limits": {"cpu": "2", "memory": "4Gi"}})
    requests = created["spec"]["resources"]["requests"]
    assert requests["cpu"] == "750m"
    assert requests["memory"] in ("1Gi", "1073741824")
    created = await api.create_pod("q", resources={"limits": {"cpu": "2", "memory": "4Gi"}})
    assert created["spec"]["resources"]["requests"] == {"cpu": "2", "memory": "4Gi"}
    assert created["status"]["qosClass"] == "Guaranteed"


async def amounts_are_rounded_up_to_thousandths(api: Api) -> None:
    resources = {"requests": {"cpu": "0.0001", "memory": "100500m"}}
    created = await api.create_pod(containers=[container(resources=resources)])
    assert created["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1m", "memory": "100500m"}


async def label_keys_are_merged_into_selectors(api: Api) -> None:
    selector = {"matchLabels": {"app": "web"}}
    term = {
        "topologyKey": "zone",
        "labelSelector": selector,
        "matchLabelKeys": ["rev"],
        "mismatchLabelKeys": ["tenant"],
    }
    spread = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": selector,
        "matchLabelKeys": ["rev", "absent"],
    }
    created = await api.create_pod(
        labels={"app": "web", "rev": "7", "tenant": "t"},
        topologySpreadConstraints=[spread],
        affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
    )
    same = {"key": "rev", "operator": "In", "values": ["7"]}
    other = {"key": "tenant", "operator": "NotIn", "values": ["t"]}
    merged = created["spec"]["topologySpreadConstraints"][0]["labelSelector"]
    assert merged == {"matchLabels": {"app": "web"}, "matchExpressions": [same]}
    terms = created["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert terms[0]["labelSelector"] == {"matchLabels": {"app": "web"}, "matchExpressions": [same, other]}


async def label_keys_become_expressions_of_selectors(api: Api) -> None:
    selector = {"matchLabels": {"app": "web"}}
    term = {"topologyKey": "zone", "labelSelector": selector, "matchLabelKeys": ["version", "absent"]}
    avoided = {"topologyKey": "zone", "labelSelector": selector, "mismatchLabelKeys": ["version"]}
    constraint = {"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway", **term}
    weighted = [{"weight": 1, "podAffinityTerm": term}]
    affinity = {
        "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": weighted},
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [avoided]},
    }
    silent = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "topologyKey": "zone"}
    created = await api.create_pod(
        labels={"app": "web", "version": "2"}, affinity=affinity, topologySpreadConstraints=[constraint, silent]
    )

    def merged(operator: str) -> dict[str, object]:
        return {**selector, "matchExpressions": [{"key": "version", "operator": operator, "values": ["2"]}]}

    spec = created["spec"]
    kept = spec["affinity"]["podAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"][0]["podAffinityTerm"]
    assert kept == {**term, "labelSelector": merged("In")}
    (kept,) = spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert kept == {**avoided, "labelSelector": merged("NotIn")}
    assert [each.get("labelSelector") for each in spec["topologySpreadConstraints"]] == [merged("In"), None]
