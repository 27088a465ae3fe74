"""Features about what pods ask for and nodes have: containers, quantities, extended resources, pod level."""

from __future__ import annotations

from typing import ClassVar

from tests.conformance.generator.builder import CaseBuilder
from tests.conformance.generator.feature import Feature, Json
from tests.conformance.generator.vocabulary import Gi, Mi


class Requests(Feature):
    """cpu and memory; always on."""

    name = "requests"


class Details(Feature):
    """Init containers, sidecars, overhead, zero and missing requests."""

    name = "details"
    weight = 1.5

    def bound(self, case: CaseBuilder, pod: Json, node: Json) -> None:
        # In-place resize: the status says more or less than the spec.
        if case.chance(0.12):
            sts = []
            for c in pod["spec"]["containers"]:
                k = case.rng.choice([0.5, 1.5, 2])
                res = {"cpu": case.q_cpu(node["_cpu"] * 0.05 * k), "memory": case.q_mem(node["_mem"] * 0.05 * k)}
                st = {"name": c["name"], "resources": {"requests": res}}
                if case.chance(0.5):
                    st["allocatedResources"] = dict(res)
                sts.append(st)
            pod["status"]["containerStatuses"] = sts
            if case.chance(0.2):
                pod["status"]["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]


class Quantities(Feature):
    """Unusual spellings of quantities."""

    name = "quantities"


class Resources(Feature):
    """Ephemeral storage, extended resources, hugepages, pod counts."""

    name = "resources"
    weight = 1.5
    EXT: ClassVar = ["example.com/gpu", "example.com/fpga", "vendor.example/token"]

    def cluster(self, case: CaseBuilder) -> None:
        for n in case.nodes:
            a = n["_alloc"]
            if case.chance(0.8):
                a["ephemeral-storage"] = case.q_mem(case.rng.choice([5, 10, 20]) * Gi)
            for e in self.EXT:
                if case.chance(0.5):
                    a[e] = str(case.rng.choice([0, 1, 2, 4, 8]))
            if case.chance(0.4):
                a["hugepages-2Mi"] = f"{case.rng.choice([0, 64, 128, 512])}Mi"
            if case.chance(0.2):
                a["hugepages-1Gi"] = f"{case.rng.choice([1, 2])}Gi"
            if case.chance(0.15):
                a["pods"] = str(n["_upods"] + case.rng.choice([0, 1, 2]))
            if case.chance(0.05):
                del a["pods"]
            if "capacity" in n["status"] and "allocatable" in n["status"]:
                # Capacity must not lack what is allocatable.
                n["status"]["capacity"].update({k: v for k, v in a.items() if k not in n["status"]["capacity"]})

    def decorate(self, case: CaseBuilder, pod, small):
        c = case.pick(pod["spec"]["containers"])
        res = c.setdefault("resources", {})
        if "limits" in res and "requests" not in res:
            return
        req = res.setdefault("requests", {})
        lim = res.setdefault("limits", {})
        if case.chance(0.4):
            req["ephemeral-storage"] = case.q_mem(
                case.rng.choice([0.1, 0.5, 1, 3] if small else [0.5, 3, 6, 12, 25]) * Gi
            )
            if "ephemeral-storage" in lim:
                lim["ephemeral-storage"] = req["ephemeral-storage"]
        if case.chance(0.5):
            e = case.pick(self.EXT)
            n = str(case.rng.choice([1] if small else [1, 1, 2, 3]))
            lim[e] = n
            if case.chance(0.5):
                req[e] = n
        if case.chance(0.25):
            lim["hugepages-2Mi"] = f"{case.rng.choice([2, 16] if small else [2, 64, 100])}Mi"
            req["hugepages-2Mi"] = lim["hugepages-2Mi"]
            req.setdefault("memory", "16Mi")
            if "memory" in lim:
                lim["memory"] = req["memory"]
        if case.chance(0.1) and not small:
            lim["hugepages-1Gi"] = "1Gi"
            req["hugepages-1Gi"] = "1Gi"
            req.setdefault("memory", "16Mi")
            if "memory" in lim:
                lim["memory"] = req["memory"]
        for k in ("requests", "limits"):
            if not res[k]:
                del res[k]

    def bound(self, case: CaseBuilder, pod: Json, node: Json) -> None:
        if case.chance(0.5):
            self.decorate(case, pod, True)

    def target(self, case: CaseBuilder, pod: Json) -> None:
        if case.chance(0.8):
            self.decorate(case, pod, case.chance(1 - case.hard))


class PodLevel(Feature):
    """Pod-level resource requests."""

    name = "podlevel"
    weight = 0.7

    def decorate(self, case: CaseBuilder, pod, cpu, mem):
        # The containers' own requests must not exceed the pod's.
        spec = pod["spec"]
        n = len(spec["containers"]) + 2 * len(spec.get("initContainers", []))
        for c in spec["containers"] + spec.get("initContainers", []):
            c.pop("resources", None)
            if case.chance(0.4):
                req = {"cpu": f"{max(1, cpu // (2 * n))}m"}
                if case.chance(0.6):
                    req["memory"] = f"{max(1, mem // (2 * n) // Mi)}Mi"
                c["resources"] = {"requests": req}
        req = {}
        if case.chance(0.85):
            req["cpu"] = f"{max(n, cpu)}m"
        if case.chance(0.85):
            req["memory"] = f"{max(n, mem // Mi)}Mi"
        if not req:
            return
        spec["resources"] = {"requests": req}
        if case.chance(0.3):
            spec["resources"]["limits"] = dict(req)
        elif case.chance(0.1):
            spec["resources"] = {"limits": req}

    def bound(self, case: CaseBuilder, pod: Json, node: Json) -> None:
        if (
            case.chance(0.5)
            and "resources" not in pod["spec"]
            and not any("limits" in c.get("resources", {}) for c in pod["spec"]["containers"])
        ):
            self.decorate(
                case,
                pod,
                int(node["_cpu"] * case.rng.uniform(0.02, 0.2)),
                int(node["_mem"] * case.rng.uniform(0.02, 0.2)),
            )

    def target(self, case: CaseBuilder, pod: Json) -> None:
        if case.chance(0.8) and not any("limits" in c.get("resources", {}) for c in pod["spec"]["containers"]):
            cpu, mem = pod["_cpu"], pod["_mem"]
            self.decorate(
                case,
                pod,
                max(20, int(cpu * case.rng.choice([0.8, 1, 1.3]))),
                max(32 * Mi, int(mem * case.rng.choice([0.8, 1, 1.3]))),
            )
