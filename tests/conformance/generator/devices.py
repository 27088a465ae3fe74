"""Dynamic resources: claims, device classes, slices."""

from __future__ import annotations

from typing import ClassVar

from tests.conformance.generator.builder import CaseBuilder
from tests.conformance.generator.feature import Feature, Json
from tests.conformance.generator.vocabulary import stamp, uid


class DRA(Feature):
    """Resource claims, device classes, resource slices."""

    name = "dra"
    weight = 1.8
    DRIVER = "gpu.example.com"

    def cluster(self, case: CaseBuilder) -> None:
        rng = case.rng
        self.n = 0
        self.shared = None
        self.devices = []
        case.add(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "DeviceClass",
                "metadata": {"name": "gpu"},
                "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{self.DRIVER}"'}}]},
            }
        )
        case.add(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "DeviceClass",
                "metadata": {"name": "big-gpu"},
                "spec": {
                    "selectors": [
                        {
                            "cel": {
                                "expression": f'device.driver == "{self.DRIVER}" && device.capacity["{self.DRIVER}"].memory.compareTo(quantity("16Gi")) >= 0'
                            }
                        }
                    ]
                },
            }
        )
        self.ext = case.chance(0.25)
        if self.ext:
            case.add(
                {
                    "apiVersion": "resource.k8s.io/v1",
                    "kind": "DeviceClass",
                    "metadata": {"name": "ext-gpu"},
                    "spec": {
                        "extendedResourceName": "example.com/dra-gpu",
                        "selectors": [{"cel": {"expression": f'device.driver == "{self.DRIVER}"'}}],
                    },
                }
            )
        p = 0.9 - 0.4 * case.hard
        for n in case.nodes:
            if not case.chance(p):
                continue
            name = n["metadata"]["name"]
            devs = []
            for i in range(rng.choice([1, 1, 2, 4])):
                d = {
                    "name": f"gpu-{i}",
                    "attributes": {
                        "model": {"string": rng.choice(["a100", "h100", "l4"])},
                        "index": {"int": i},
                        "ecc": {"bool": case.chance(0.5)},
                        "driverVersion": {"version": rng.choice(["1.0.0", "1.2.0", "2.0.1"])},
                    },
                    "capacity": {"memory": {"value": f"{rng.choice([8, 16, 24, 80])}Gi"}},
                }
                if case.chance(0.08):
                    d["taints"] = [
                        {"key": "example.com/bad", "effect": rng.choice(["NoSchedule", "NoExecute"]), "value": "x"}
                    ]
                devs.append(d)
                self.devices.append((name, d["name"]))
            case.add(
                {
                    "apiVersion": "resource.k8s.io/v1",
                    "kind": "ResourceSlice",
                    "metadata": {"name": "slice-" + name},
                    "spec": {
                        "driver": self.DRIVER,
                        "nodeName": name,
                        "pool": {"name": name, "generation": 1, "resourceSliceCount": 2 if case.chance(0.03) else 1},
                        "devices": devs,
                    },
                }
            )
        self.used = set()

    EXPR: ClassVar = [
        'device.attributes["gpu.example.com"].model == "a100"',
        'device.attributes["gpu.example.com"].model == "h100"',
        'device.attributes["gpu.example.com"].index >= 1',
        'device.attributes["gpu.example.com"].ecc',
        'device.capacity["gpu.example.com"].memory.compareTo(quantity("24Gi")) >= 0',
        'device.attributes["gpu.example.com"].driverVersion.isGreaterThan(semver("1.1.0"))',
        'device.attributes["gpu.example.com"].model in ["l4", "a100"]',
    ]

    def exactly(self, case: CaseBuilder):
        e = {"deviceClassName": "gpu" if case.chance(0.8) else ("big-gpu" if case.chance(0.85) else "no-such-class")}
        x = case.rng.random()
        if x < 0.25:
            e["count"] = case.rng.choice([1, 2, 2, 3])
        elif x < 0.32:
            e["allocationMode"] = "All"
        if case.chance(0.35):
            e["selectors"] = [{"cel": {"expression": case.pick(self.EXPR)}}]
        if case.chance(0.08):
            e["tolerations"] = [{"key": "example.com/bad", "operator": "Exists"}]
        if case.chance(0.015):
            # No such attribute: evaluating it is an error.
            e["selectors"] = [{"cel": {"expression": 'device.attributes["gpu.example.com"].missing == "x"'}}]
        return e

    def spec(self, case: CaseBuilder):
        reqs = []
        for i in range(case.rng.choice([1, 1, 1, 2])):
            if case.chance(0.15):
                subs = []
                for j in range(case.rng.choice([2, 3])):
                    s = {"name": f"s{j}", **self.exactly(case)}
                    s.pop("allocationMode", None)
                    subs.append(s)
                reqs.append({"name": f"r{i}", "firstAvailable": subs})
            else:
                reqs.append({"name": f"r{i}", "exactly": self.exactly(case)})
        spec = {"devices": {"requests": reqs}}
        if case.chance(0.12):
            spec["devices"]["constraints"] = [{"matchAttribute": "gpu.example.com/model"}]
        return spec

    def allocate(self, case: CaseBuilder, claim, node):
        """Gives the claim a device of the node, if one is left."""
        left = [d for d in self.devices if d[0] == node and d not in self.used]
        if not left:
            return False
        d = case.pick(left)
        self.used.add(d)
        claim["spec"]["devices"] = {"requests": [{"name": "r0", "exactly": {"deviceClassName": "gpu"}}]}
        claim["status"] = {
            "allocation": {
                "devices": {"results": [{"request": "r0", "driver": self.DRIVER, "pool": d[0], "device": d[1]}]},
                "nodeSelector": {
                    "nodeSelectorTerms": [
                        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
                    ]
                },
            }
        }
        return True

    def add_claim(self, case: CaseBuilder, ns, spec=None):
        self.n += 1
        name = f"dev-{self.n}"
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": ns, "uid": uid("ResourceClaim", ns, name)},
            "spec": spec or self.spec(case),
        }

    def bound(self, case: CaseBuilder, pod: Json, node: Json) -> None:
        if not case.chance(0.3):
            return
        ns = pod["metadata"].get("namespace", "default")
        claim = self.add_claim(case, ns)
        if not self.allocate(case, claim, node["metadata"]["name"]):
            return
        u = uid("Pod", ns, pod["metadata"]["name"])
        pod["metadata"]["uid"] = u
        claim["status"]["reservedFor"] = [{"resource": "pods", "name": pod["metadata"]["name"], "uid": u}]
        pod["spec"]["resourceClaims"] = [{"name": "c0", "resourceClaimName": claim["metadata"]["name"]}]
        pod["spec"]["containers"][0].setdefault("resources", {})["claims"] = [{"name": "c0"}]
        case.add(claim)

    def target(self, case: CaseBuilder, pod: Json) -> None:
        rng = case.rng
        ns = pod["metadata"].get("namespace", "default")
        if self.ext and case.chance(0.4):
            res = pod["spec"]["containers"][0].setdefault("resources", {})
            res.setdefault("limits", {})["example.com/dra-gpu"] = str(rng.choice([1, 1, 2]))
            if "requests" in res:
                res["requests"]["example.com/dra-gpu"] = res["limits"]["example.com/dra-gpu"]
            return
        if not case.chance(0.9):
            return
        refs = []
        for i in range(rng.choice([1, 1, 1, 2])):
            x = rng.random()
            if x < 0.05:
                refs.append({"name": f"c{i}", "resourceClaimName": "dev-missing"})
                continue
            if x < 0.09:
                refs.append({"name": f"c{i}", "resourceClaimTemplateName": "template"})
                if case.chance(0.5):
                    pod.setdefault("status", {}).setdefault("resourceClaimStatuses", []).append({"name": f"c{i}"})
                continue
            if x < 0.2 and self.shared and self.shared[0] == ns:
                name = self.shared[1]
                if name not in [ref.get("resourceClaimName") for ref in refs]:
                    refs.append({"name": f"c{i}", "resourceClaimName": name})
                    continue
            claim = self.add_claim(case, ns)
            if x < 0.32 and self.devices and self.allocate(case, claim, case.pick(self.devices)[0]):
                y = rng.random()
                if y < 0.3:
                    claim["status"]["reservedFor"] = [{"resource": "pods", "name": "other-pod", "uid": "other-uid"}]
                elif y < 0.45:
                    claim["status"]["reservedFor"] = [
                        {"resource": "pods", "name": f"p{k}", "uid": f"u{k}"} for k in range(256)
                    ]
            if case.chance(0.03):
                claim["metadata"]["deletionTimestamp"] = stamp(4000)
                claim["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
            name = claim["metadata"]["name"]
            if case.chance(0.15):
                # Made for the pod from a template.
                u = uid("Pod", ns, pod["metadata"]["name"])
                pod["metadata"]["uid"] = u
                claim["metadata"]["ownerReferences"] = [
                    {
                        "apiVersion": "v1",
                        "kind": "Pod",
                        "name": pod["metadata"]["name"],
                        "uid": u if case.chance(0.9) else "other",
                        "controller": True,
                    }
                ]
                refs.append({"name": f"c{i}", "resourceClaimTemplateName": "template"})
                pod.setdefault("status", {}).setdefault("resourceClaimStatuses", []).append(
                    {"name": f"c{i}", "resourceClaimName": name}
                )
            else:
                refs.append({"name": f"c{i}", "resourceClaimName": name})
                self.shared = (ns, name)
            case.add(claim)
        pod["spec"]["resourceClaims"] = refs
        pod["spec"]["containers"][0].setdefault("resources", {})["claims"] = [{"name": ref["name"]} for ref in refs]
