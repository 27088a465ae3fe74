"""Features about a pod and a node alone: taints, node affinity, ports, names, gates, images, declared features."""

from __future__ import annotations

import hashlib
from typing import ClassVar

from tests.conformance.generator.builder import CaseBuilder, node_labels
from tests.conformance.generator.feature import Feature, Json
from tests.conformance.generator.vocabulary import APPS, UNSCHEDULABLE


class Unschedulable(Feature):
    """Cordoned nodes."""

    name = "unschedulable"

    def cluster(self, case: CaseBuilder) -> None:
        p = case.rng.choice([0.2, 0.5, 0.5, 0.9, 1.0])
        for n in case.nodes:
            if case.chance(p):
                n["spec"]["unschedulable"] = True
                if case.chance(0.6):
                    n["spec"].setdefault("taints", []).append({"key": UNSCHEDULABLE, "effect": "NoSchedule"})

    def target(self, case: CaseBuilder, pod: Json) -> None:
        if case.chance(0.2):
            t = {"key": UNSCHEDULABLE, "operator": "Exists"}
            if case.chance(0.5):
                t["effect"] = case.rng.choice(["NoSchedule", "NoSchedule", "NoExecute"])
            pod["spec"].setdefault("tolerations", []).append(t)


class Taints(Feature):
    name = "taints"
    weight = 1.6
    KEYS: ClassVar = ["dedicated", "maintenance", "node.kubernetes.io/not-ready", "example.com/special"]

    def cluster(self, case: CaseBuilder) -> None:
        p = 0.3 + 0.6 * case.hard
        self.used = []
        for n in case.nodes:
            taints = n["spec"].setdefault("taints", [])
            have = {(t["key"], t["effect"]) for t in taints}
            if case.chance(p):
                for _ in range(case.rng.choice([1, 1, 2, 3])):
                    k = case.pick(self.KEYS)
                    e = case.rng.choice(
                        ["NoSchedule", "NoSchedule", "PreferNoSchedule", "PreferNoSchedule", "NoExecute"]
                    )
                    if (k, e) in have:
                        continue
                    have.add((k, e))
                    t = {"key": k, "effect": e}
                    if case.chance(0.7):
                        t["value"] = case.rng.choice(["blue", "red", "5"])
                    taints.append(t)
                    self.used.append(t)
            if not taints:
                del n["spec"]["taints"]

    def toleration(self, case: CaseBuilder):
        rng = case.rng
        if case.chance(0.07):
            t = {"operator": "Exists"}
            if case.chance(0.6):
                t["effect"] = rng.choice(["NoSchedule", "NoExecute", "PreferNoSchedule"])
            return t
        src = (
            case.pick(self.used)
            if self.used and case.chance(0.8)
            else {"key": case.pick(self.KEYS), "effect": "NoSchedule", "value": "blue"}
        )
        t = {"key": src["key"]}
        if case.chance(0.5):
            t["operator"] = "Exists"
        else:
            if case.chance(0.5):
                t["operator"] = "Equal"
            v = src.get("value", "") if case.chance(0.8) else "other"
            if v:
                t["value"] = v
        if case.chance(0.7):
            t["effect"] = (
                src["effect"] if case.chance(0.85) else rng.choice(["NoSchedule", "NoExecute", "PreferNoSchedule"])
            )
            if t["effect"] == "NoExecute" and case.chance(0.4):
                t["tolerationSeconds"] = rng.choice([0, 30, 300])
        return t

    def target(self, case: CaseBuilder, pod: Json) -> None:
        if case.chance(0.75):
            tol = pod["spec"].setdefault("tolerations", [])
            for _ in range(case.rng.choice([1, 1, 2, 3])):
                tol.append(self.toleration(case))


class NodeAffinity(Feature):
    name = "nodeaffinity"
    weight = 1.6

    def requirement(self, case: CaseBuilder, labels, loose):
        rng = case.rng
        key = case.pick(sorted(labels)) if labels and case.chance(0.93) else "absent"
        values = labels.get(key, ["x"])
        if key == "rank" and case.chance(0.5):
            return {
                "key": key,
                "operator": rng.choice(["Gt", "Lt"]),
                "values": [str(rng.choice([0, 1, 3, 5, 9, 11, 20]))],
            }
        op = rng.choice(["In", "In", "In", "NotIn", "Exists", "DoesNotExist"])
        if loose and op == "DoesNotExist":
            op = "Exists"
        e = {"key": key, "operator": op}
        if op in ("In", "NotIn"):
            vals = case.some(values, 1, 3 if loose else 1)
            if case.chance(0.15):
                vals.append("nowhere")
            if not loose and op == "In" and case.chance(0.2):
                vals = ["nowhere"]
            e["values"] = vals
        return e

    def term(self, case: CaseBuilder, labels, loose):
        t = {}
        if case.chance(0.9):
            t["matchExpressions"] = [
                self.requirement(case, labels, loose) for _ in range(1 if loose else case.rng.choice([1, 1, 2]))
            ]
        if not t or case.chance(0.12):
            t["matchFields"] = [self.field(case)]
        return t

    def field(self, case: CaseBuilder):
        name = case.pick(case.nodes)["metadata"]["name"] if case.chance(0.85) else "node-absent"
        return {"key": "metadata.name", "operator": "In" if case.chance(0.75) else "NotIn", "values": [name]}

    def required(self, case: CaseBuilder, labels):
        loose = not case.chance(case.hard)
        x = case.rng.random()
        if x < 0.1:
            terms = [{"matchFields": [self.field(case)]} for _ in range(case.rng.choice([1, 1, 2]))]
        elif x < 0.13:
            # Two names in one term: they conflict.
            a, b = case.pick(case.nodes)["metadata"]["name"], case.pick(case.nodes)["metadata"]["name"]
            terms = [
                {
                    "matchFields": [
                        {"key": "metadata.name", "operator": "In", "values": [a]},
                        {"key": "metadata.name", "operator": "In", "values": [b]},
                    ]
                }
            ]
        else:
            terms = [self.term(case, labels, loose) for _ in range(case.rng.choice([1, 1, 1, 2, 3]))]
            if case.chance(0.06):
                terms.append({})
        return {"nodeSelectorTerms": terms}

    def preferred(self, case: CaseBuilder, labels):
        out = []
        for _ in range(case.rng.choice([1, 2, 3])):
            pref = (
                {}
                if case.chance(0.05)
                else {
                    "matchExpressions": [
                        self.requirement(case, labels, case.chance(0.5)) for _ in range(case.rng.choice([1, 1, 2]))
                    ]
                }
            )
            if pref and case.chance(0.1):
                pref["matchFields"] = [self.field(case)]
            out.append({"weight": case.rng.choice([1, 5, 10, 37, 50, 100]), "preference": pref})
        return out

    def target(self, case: CaseBuilder, pod: Json) -> None:
        labels = node_labels(case)
        if case.chance(0.3):
            sel = {}
            for k in case.some(sorted(labels) or ["absent"], 1, 2 if case.chance(case.hard) else 1):
                sel[k] = case.pick(labels.get(k, ["x"])) if case.chance(0.85) else "nowhere"
            pod["spec"]["nodeSelector"] = sel
        aff = {}
        if case.chance(0.6):
            aff["requiredDuringSchedulingIgnoredDuringExecution"] = self.required(case, labels)
        if case.chance(0.55):
            aff["preferredDuringSchedulingIgnoredDuringExecution"] = self.preferred(case, labels)
        if aff:
            pod["spec"].setdefault("affinity", {})["nodeAffinity"] = aff


class Ports(Feature):
    """Host ports."""

    name = "ports"
    PORTS: ClassVar = [80, 443, 8080, 9000]

    def ports(self, case: CaseBuilder, few):
        out, seen = [], set()
        for _ in range(case.rng.choice([1, 1, 2, 3] if not few else [1, 1, 2])):
            p = {"containerPort": case.pick(self.PORTS)}
            if case.chance(0.93):
                p["hostPort"] = p["containerPort"] if case.chance(0.9) else case.pick(self.PORTS)
            if case.chance(0.4):
                p["protocol"] = case.rng.choice(["TCP", "UDP", "SCTP"])
            if case.chance(0.4):
                p["hostIP"] = case.rng.choice(["0.0.0.0", "127.0.0.1", "10.0.0.1", "10.0.0.2"])
            key = (p.get("hostPort"), p.get("protocol", "TCP"), p.get("hostIP", ""))
            if key not in seen:
                seen.add(key)
                out.append(p)
        return out

    def decorate(self, case: CaseBuilder, pod, few):
        case.pick(pod["spec"]["containers"])["ports"] = self.ports(case, few)
        if case.chance(0.08):
            for c in pod["spec"]["containers"]:
                for p in c.get("ports", []):
                    p["hostPort"] = p["containerPort"]
                    p.pop("hostIP", None)
                ps, seen = c.get("ports", []), set()
                c["ports"] = [
                    p
                    for p in ps
                    if not (
                        (p["hostPort"], p.get("protocol", "TCP")) in seen
                        or seen.add((p["hostPort"], p.get("protocol", "TCP")))
                    )
                ]
            pod["spec"]["hostNetwork"] = True
        if case.chance(0.05) and "initContainers" in pod["spec"]:
            c = case.pick(pod["spec"]["initContainers"])
            c["ports"] = [{"containerPort": 7000, "hostPort": case.pick([80, 443])}]

    def bound(self, case: CaseBuilder, pod: Json, node: Json) -> None:
        if case.chance(0.3 + 0.4 * case.hard):
            self.decorate(case, pod, True)

    def target(self, case: CaseBuilder, pod: Json) -> None:
        if case.chance(0.85):
            self.decorate(case, pod, False)


class NodeName(Feature):
    """Pods that come with a node name (also of a node that is not there)."""

    name = "nodename"
    weight = 0.25

    def target(self, case: CaseBuilder, pod: Json) -> None:
        if case.chance(0.5):
            pod["spec"]["nodeName"] = case.pick(case.nodes)["metadata"]["name"] if case.chance(0.8) else "node-absent"
            pod["spec"].pop("schedulingGates", None)


class Gates(Feature):
    """Scheduling gates."""

    name = "gates"
    weight = 0.3

    def target(self, case: CaseBuilder, pod: Json) -> None:
        if case.chance(0.6) and "nodeName" not in pod["spec"]:
            pod["spec"]["schedulingGates"] = [
                {"name": n} for n in case.some(["example.com/quota", "example.com/wait", "example.com/net"], 1, 3)
            ]


class Images(Feature):
    """Images on nodes, for ImageLocality."""

    name = "images"

    def cluster(self, case: CaseBuilder) -> None:
        sizes = {}
        for app in [*APPS, "tool", "init"]:
            for tag in ("1", "2", "latest"):
                sizes[f"registry.example.com/{app}:{tag}"] = case.rng.choice(
                    [5, 30, 120, 450, 900, 2500]
                ) * 1000 * 1000 + case.rng.randrange(10**6)
        for n in case.nodes:
            imgs = []
            for name in sorted(sizes):
                if case.chance(0.4):
                    names = [name]
                    if case.chance(0.2):
                        names.append(
                            "registry.example.com/{}@sha256:{}".format(
                                name.split("/")[1].split(":")[0], hashlib.sha256(name.encode()).hexdigest()
                            )
                        )
                    if case.chance(0.1):
                        names.append("mirror.example.com/" + name.split("/")[1])
                    imgs.append({"names": names, "sizeBytes": sizes[name]})
            if imgs:
                n["status"]["images"] = imgs

    def target(self, case: CaseBuilder, pod: Json) -> None:
        for c in pod["spec"]["containers"]:
            if case.chance(0.2):
                c["image"] = "registry.example.com/" + case.pick(APPS)  # no tag
            elif case.chance(0.1):
                c["image"] = f"mirror.example.com/{case.pick(APPS)}:1"


class Declared(Feature):
    """Features that nodes declare."""

    name = "declared"
    weight = 0.25

    def cluster(self, case: CaseBuilder) -> None:
        for n in case.nodes:
            if case.chance(0.6):
                n["status"]["declaredFeatures"] = (
                    ["RestartAllContainersOnContainerExits"] if case.chance(0.8) else ["OtherFeature"]
                )

    def target(self, case: CaseBuilder, pod: Json) -> None:
        if case.chance(0.8):
            c = pod["spec"]["containers"][0]
            c["restartPolicy"] = "Never"
            c["restartPolicyRules"] = [
                {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
            ]
