"""Priorities, preemption, disruption budgets and nominated pods."""

from __future__ import annotations

from typing import ClassVar

from tests.conformance.generator.builder import CaseBuilder
from tests.conformance.generator.feature import Feature, Json
from tests.conformance.generator.neighbours import PodAffinity
from tests.conformance.generator.vocabulary import APPS, Mi, stamp


class Priority(Feature):
    """Priorities, preemption, disruption budgets, nominated pods."""

    name = "priority"
    weight = 3.5
    CLASSES: ClassVar = {"low": -10, "mid": 100, "high": 1000, "top": 100000}

    def cluster(self, case: CaseBuilder) -> None:
        self.classes = case.chance(0.5)
        if self.classes:
            for name, v in self.CLASSES.items():
                pc = {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "metadata": {"name": name},
                    "value": v,
                }
                if name == "high" and case.chance(0.2):
                    pc["preemptionPolicy"] = "Never"
                if name == "mid" and case.chance(0.2):
                    pc["globalDefault"] = True
                case.add(pc)
        self.levels = case.rng.choice([[0], [0, 0, 100], [-10, 0, 100], [-10, 0, 100, 1000]])

    def set(self, case: CaseBuilder, pod, value):
        by_value = {v: k for k, v in self.CLASSES.items()}
        if self.classes and value in by_value:
            pod["spec"]["priorityClassName"] = by_value[value]
        else:
            pod["spec"]["priority"] = value

    def bound(self, case: CaseBuilder, pod: Json, node: Json) -> None:
        self.set(case, pod, case.pick(self.levels))
        if pod["metadata"].get("deletionTimestamp") and case.chance(0.5):
            pod["status"]["conditions"] = [
                {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
            ]

    def target(self, case: CaseBuilder, pod: Json) -> None:
        self.set(case, pod, case.rng.choice([-10, 0, 100, 1000, 1000, 1000, 100000, 100000, 100000]))
        if case.chance(0.12):
            pod["spec"]["preemptionPolicy"] = "Never"
            if pod["spec"].get("priorityClassName"):
                pod["spec"]["priority"] = self.CLASSES[pod["spec"].pop("priorityClassName")]
        # Ask for more than is free anywhere, but not more than a node has.
        if case.chance(0.75):
            c = pod["spec"]["containers"][0]
            node = max(case.nodes, key=lambda n: case.free(n)[0])
            top = max(n["_cpu"] for n in case.nodes)
            fc, fm = case.free(node)
            fc = max(0, fc)
            k = case.rng.uniform(0.02, 0.8)
            cpu, mem = max(10, fc + (top - fc) * k), max(0, min(case.free(n)[1] for n in case.nodes)) * 0.5
            if case.chance(0.3):
                fm = max(0, *(case.free(n)[1] for n in case.nodes))
                mem = fm + (max(n["_mem"] for n in case.nodes) - fm) * k
                if case.chance(0.5):
                    cpu = max(10, fc * 0.3)
            c["resources"] = {"requests": {"cpu": case.q_cpu(cpu), "memory": case.q_mem(mem)}}
            pod["spec"].pop("resources", None)
            for other in pod["spec"]["containers"][1:]:
                other.pop("resources", None)
        if case.chance(0.12):
            pod["status"] = {
                "nominatedNodeName": case.pick(case.nodes)["metadata"]["name"] if case.chance(0.9) else "node-absent"
            }

    def finish(self, case: CaseBuilder) -> None:
        for ns in case.namespaces:
            for app in APPS:
                if case.chance(0.3):
                    pdb = {
                        "apiVersion": "policy/v1",
                        "kind": "PodDisruptionBudget",
                        "metadata": {"name": "pdb-" + app, "namespace": ns},
                        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}},
                        "status": {
                            "disruptionsAllowed": case.rng.choice([0, 0, 1, 2]),
                            "currentHealthy": 1,
                            "desiredHealthy": 1,
                            "expectedPods": 1,
                        },
                    }
                    if case.chance(0.1):
                        pdb["spec"]["selector"] = (
                            {} if case.chance(0.5) else {"matchExpressions": [{"key": "tier", "operator": "Exists"}]}
                        )
                    if case.chance(0.1):
                        victims = [p for p, _ in case.bound if p["metadata"].get("namespace", "default") == ns]
                        if victims:
                            pdb["status"]["disruptedPods"] = {case.pick(victims)["metadata"]["name"]: stamp(1000)}
                    case.add(pdb)
        # Pods that already preempted and wait for their node.
        for i in range(case.rng.choice([0, 0, 0, 1, 2])):
            node = case.pick(case.nodes)
            fc, fm = case.free(node)
            pod = case.make_pod(
                f"wait-{i + 1}",
                max(10, int(fc * case.rng.choice([0.3, 0.8, 1.0]))),
                max(Mi, int(fm * 0.3)),
                target=True,
            )
            pod["apiVersion"], pod["kind"] = "v1", "Pod"
            pod["status"] = {"nominatedNodeName": node["metadata"]["name"]}
            self.set(case, pod, case.rng.choice([0, 100, 1000, 100000]))
            if "podaffinity" in case.on and case.chance(0.5):
                PodAffinity().decorate(case, pod, 0.8, False)
            case.add(pod)
