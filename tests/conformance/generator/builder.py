"""Builds one case: nodes, running pods and the pods to schedule; what else there is, features add."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from typing import TypeVar

from tests.conformance.generator.feature import Feature, Json
from tests.conformance.generator.vocabulary import APPS, HOST, REGION, TIERS, VERSIONS, ZONE, Gi, Ki, Mi, stamp

T = TypeVar("T")


class CaseBuilder:
    """One case under construction.

    Attributes:
        rng: all chance comes from here, in a fixed order.
        on: the names of the features.
        objects: what the cluster has; nodes are added last, when they are complete.
        nodes: with notes: ``_cpu`` (milli), ``_mem`` (bytes) and ``_pods`` are sizes, ``_ucpu`` … what is used.
        bound: running pods with their nodes.
        targets: the pods to schedule.
        hard: how hard the targets are to place, from 0 (easy) to 1.
    """

    def __init__(
        self, rng: random.Random, features: Collection[str], nodes: tuple[int, int], all_features: Sequence[Feature]
    ) -> None:
        self.rng = rng
        self.features = [f for f in all_features if f.name in features]
        self.on = set(features)
        self.lo, self.hi = nodes
        self.objects = []
        self.nodes = []
        self.targets = []
        self.bound = []
        self.profile = None
        self.scheduler = None
        self.times = set()
        self.seen = set()
        # How hard the targets are to place: 0 easy, 1 hard. The more
        # features, the easier each must be for the pod to have a chance.
        n = len(self.on - {"requests", "quantities", "details", "owners", "images", "podlevel", "profile"})
        k = {0: 2.0, 1: 1.5, 2: 1.1, 3: 0.8, 4: 0.5}.get(n, 0.1)
        self.hard = min(0.95, self.rng.choice([0.15, 0.35, 0.35, 0.6, 0.8]) * k)
        # In some cases all running pods started at the same time.
        self.same_start = self.rng.random() < 0.12
        # The app that many pods of this case belong to.
        self.app = self.pick(APPS)

    # -- small helpers -------------------------------------------------

    def chance(self, p: float) -> bool:
        """Return True with probability ``p``."""
        return self.rng.random() < p

    def pick(self, seq: Sequence[T]) -> T:
        """Return one of the elements."""
        return seq[self.rng.randrange(len(seq))]

    def some(self, seq: Sequence[T], lo: int = 1, hi: int | None = None) -> list[T]:
        """Return ``lo`` to ``hi`` different elements (no limit: up to all)."""
        hi = min(len(seq), len(seq) if hi is None else hi)
        return self.rng.sample(list(seq), self.rng.randint(min(lo, hi), hi))

    def start_time(self) -> str:
        """Return when a pod started; no two are equal, unless all are."""
        if self.same_start:
            return stamp(86400)
        while True:
            t = self.rng.randrange(200 * 86400)
            if t not in self.times:
                self.times.add(t)
                return stamp(t)

    def add(self, obj: Json) -> bool:
        """Add an object; False if there is one of this kind and name already."""
        m = obj["metadata"]
        key = (obj["kind"], m.get("namespace", ""), m["name"])
        if key in self.seen:
            return False
        self.seen.add(key)
        self.objects.append(obj)
        return True

    # -- quantities ----------------------------------------------------

    def q_cpu(self, milli: float) -> str:
        """Write an amount of CPU."""
        milli = max(0, int(milli))
        if "quantities" in self.on:
            form = self.rng.randrange(8)
            if form == 0:
                return f"{milli * 1000 + self.rng.choice([0, 0, 1, 500, 999])}u"
            if form == 1:
                return f"{milli * 1000000 + self.rng.choice([0, 0, 1, 999999])}n"
            if form == 2:
                return (f"{milli / 1000:.3f}").rstrip("0").rstrip(".") or "0"
            if form == 3 and milli % 100 == 0:
                return f"{milli // 100}e-1"
            if form == 4 and milli % 1000 == 0:
                return f"{milli // 1000}E0" if self.chance(0.3) else f"{milli // 1000}e0"
            if form == 5:
                return (f"{milli / 1000 + 0.0004:.4f}").rstrip("0")
        if milli % 1000 == 0 and self.chance(0.7):
            return str(milli // 1000)
        return f"{milli}m"

    def q_mem(self, n: float) -> str:
        """Write a number of bytes."""
        n = max(0, int(n))
        if "quantities" in self.on:
            form = self.rng.randrange(9)
            if form == 0:
                return f"{n // Ki}Ki"
            if form == 1:
                return f"{n // 10**6}M"
            if form == 2:
                return f"{n // 1000}k"
            if form == 3:
                return f"{n / Gi:.1f}Gi"
            if form == 4:
                return f"{n // 10**6}e6"
            if form == 5:
                return f"{n * 1000 + self.rng.choice([0, 1, 500])}m"
            if form == 6:
                return f"{n / 10**9:.2f}G"
            if form == 7:
                return str(n)
        return f"{n // Mi}Mi"

    # -- the cluster ---------------------------------------------------

    def build(self) -> Json:
        """Return the case, with notes."""
        rng = self.rng
        if self.chance(0.12) and self.hi > 12:
            n = rng.randint(max(self.lo, min(30, self.hi)), self.hi)
        else:
            n = rng.randint(self.lo, max(self.lo, min(12, self.hi)))
        self.zones = [f"zone-{i + 1}" for i in range(rng.choice([1, 2, 2, 3, 3, 4]))]
        self.namespaces = ["default", *rng.sample(["ns-a", "ns-b", "ns-c"], rng.choice([0, 0, 1, 2]))]
        for ns in self.namespaces:
            labels = {}
            if ns != "default" or self.chance(0.5):
                labels = {"team": rng.choice(["red", "blue"])}
                if self.chance(0.3):
                    labels["env"] = rng.choice(["prod", "dev"])
            self.add(
                {
                    "apiVersion": "v1",
                    "kind": "Namespace",
                    "metadata": {"name": ns, **({"labels": labels} if labels else {})},
                }
            )
        self.uniform = self.chance(0.8 if self.same_start else 0.2)
        self.base_cpu = rng.choice([1000, 2000, 4000, 8000, 16000])
        self.base_mem = rng.choice([2, 4, 8, 16, 32]) * Gi
        self.nodes = [self.make_node(i) for i in range(n)]
        for f in self.features:
            f.cluster(self)
        self.make_bound()
        for i in range(rng.choice([1, 1, 2, 2, 3, 4])):
            self.make_target(i)
        for f in self.features:
            f.finish(self)
        for node in self.nodes:
            self.add(node)
        rng.shuffle(self.objects)
        out = {"features": sorted(self.on), "objects": self.objects, "pods": self.targets}
        if self.profile is not None:
            out["profile"] = self.profile
        return out

    def make_node(self, i: int) -> Json:
        rng = self.rng
        name = f"node-{i + 1}"
        labels = {}
        if self.chance(0.95):
            labels[HOST] = name
        if self.chance(0.92):
            labels[ZONE] = rng.choice(self.zones)
        if self.chance(0.5):
            labels[REGION] = "region-1" if self.chance(0.8) else "region-2"
        if self.chance(0.7):
            labels["disk"] = rng.choice(["ssd", "hdd"])
        if self.chance(0.6):
            labels["rank"] = str(rng.choice([1, 2, 3, 5, 8, 10, 12]))
        if self.chance(0.4):
            labels["pool"] = rng.choice(["pool-x", "pool-y", "pool-z"])
        if self.uniform:
            cpu, mem = self.base_cpu, self.base_mem
        else:
            cpu = int(self.base_cpu * rng.choice([0.5, 0.75, 1, 1, 1.25, 1.5, 2]))
            mem = int(self.base_mem * rng.choice([0.5, 0.75, 1, 1, 1.25, 1.5, 2]))
            if self.chance(0.5):
                cpu -= rng.randrange(0, 200, 10)
                mem -= rng.randrange(0, 512) * Mi
        pods = rng.choice([110, 110, 30, 12, 8])
        alloc = {"cpu": self.q_cpu(cpu), "memory": self.q_mem(mem), "pods": str(pods)}
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": {},
            "status": {"allocatable": alloc},
        }
        if self.chance(0.3):
            # Only capacity given: allocatable defaults to it.
            node["status"]["capacity"] = node["status"].pop("allocatable")
            alloc = node["status"]["capacity"]
        elif self.chance(0.3):
            node["status"]["capacity"] = {
                "cpu": self.q_cpu(cpu + 100),
                "memory": self.q_mem(mem + 256 * Mi),
                "pods": str(pods),
            }
        node["_cpu"], node["_mem"], node["_pods"] = cpu, mem, pods
        node["_ucpu"], node["_umem"], node["_upods"] = 0, 0, 0
        node["_alloc"] = alloc
        return node

    def make_bound(self) -> None:
        """Let pods run."""
        rng = self.rng
        total = rng.choice([0, 2, 5, 8, 12, 20, 30, 40])
        fill = rng.choice([0.2, 0.4, 0.6, 0.8, 0.95])
        skip = set(rng.sample(range(len(self.nodes)), len(self.nodes) // 4)) if self.chance(0.4) else set()
        usable = [i for i in range(len(self.nodes)) if i not in skip]
        for i in range(total):
            node = self.nodes[rng.choice(usable)]
            if node["_upods"] + 1 > node["_pods"]:
                continue
            per = max(1, total / len(usable))
            share = fill / per * (1 if self.same_start and self.uniform else rng.uniform(0.5, 1.5))
            cpu = int(node["_cpu"] * min(share, 0.9))
            mem = int(
                node["_mem"] * min(share * (1 if self.same_start and self.uniform else rng.uniform(0.5, 1.2)), 0.9)
            )
            is_too_much = node["_ucpu"] + cpu > node["_cpu"] or node["_umem"] + mem > node["_mem"]
            if is_too_much and self.chance(0.9):
                continue
            pod = self.make_pod(f"run-{i + 1}", cpu, mem, target=False)
            pod["apiVersion"], pod["kind"] = "v1", "Pod"
            name = node["metadata"]["name"]
            pod["spec"]["nodeName"] = name
            pod["status"] = {"phase": "Running", "startTime": self.start_time()}
            node["_ucpu"] += cpu
            node["_umem"] += mem
            node["_upods"] += 1
            for f in self.features:
                f.bound(self, pod, node)
            if self.chance(0.04):
                pod["metadata"]["deletionTimestamp"] = stamp(rng.randrange(200 * 86400))
                pod["metadata"]["deletionGracePeriodSeconds"] = 30
            if self.chance(0.02):
                pod["status"]["phase"] = rng.choice(["Succeeded", "Failed"])
            self.bound.append((pod, node))
            self.add(pod)

    def pod_labels(self) -> dict[str, str]:
        labels = {}
        if self.chance(0.9):
            labels["app"] = self.app if self.chance(0.4) else self.pick(APPS)
        if self.chance(0.5):
            labels["tier"] = self.pick(TIERS)
        if self.chance(0.5):
            labels["version"] = self.pick(VERSIONS)
        return labels

    def make_pod(self, name: str, cpu: int, mem: int, target: bool) -> Json:
        """A pod that requests about the given cpu (milli) and memory."""
        rng = self.rng
        pod = {"metadata": {"name": name, "labels": self.pod_labels()}, "spec": {}}
        ns = self.pick(self.namespaces) if self.chance(0.4) else "default"
        if ns != "default":
            pod["metadata"]["namespace"] = ns
        n = rng.choice([1, 1, 1, 2, 3])
        containers = []
        for i in range(n):
            req = {}
            if cpu > 0:
                req["cpu"] = self.q_cpu(cpu // n)
            if mem > 0:
                req["memory"] = self.q_mem(mem // n)
            c = {
                "name": f"c{i}",
                "image": "registry.example.com/{}:{}".format(
                    pod["metadata"]["labels"].get("app", "tool"), rng.choice(["1", "2"])
                ),
            }
            if req and self.chance(0.93):
                if self.chance(0.1):
                    c["resources"] = {"limits": req}
                elif self.chance(0.1):
                    c["resources"] = {"requests": req, "limits": dict(req)}
                else:
                    c["resources"] = {"requests": req}
            containers.append(c)
        pod["spec"]["containers"] = containers
        if not pod["metadata"]["labels"]:
            del pod["metadata"]["labels"]
        if "details" in self.on:
            self.details(pod, cpu, mem)
        if self.scheduler and (target or self.chance(0.5)):
            pod["spec"]["schedulerName"] = self.scheduler
        return pod

    def details(self, pod: Json, cpu: int, mem: int) -> None:
        """Init containers, sidecars, overhead, zero and missing requests."""
        rng = self.rng
        spec = pod["spec"]
        if self.chance(0.35):
            inits = []
            for i in range(rng.choice([1, 1, 2, 3])):
                c = {"name": f"i{i}", "image": f"registry.example.com/init:{rng.choice([1, 2])}"}
                k = rng.choice([0.3, 0.8, 1.0, 1.3])
                c["resources"] = {
                    "requests": {"cpu": self.q_cpu(cpu * k), "memory": self.q_mem(mem * rng.choice([0.3, 1.0, 1.2]))}
                }
                if self.chance(0.4):
                    c["restartPolicy"] = "Always"
                    c["resources"]["requests"] = {"cpu": self.q_cpu(cpu * 0.15), "memory": self.q_mem(mem * 0.15)}
                elif self.chance(0.2):
                    del c["resources"]
                inits.append(c)
            spec["initContainers"] = inits
        if self.chance(0.15):
            spec["overhead"] = {
                "cpu": self.q_cpu(rng.choice([10, 50, 100, 250])),
                "memory": self.q_mem(rng.choice([16, 64, 128]) * Mi),
            }
        if self.chance(0.1):
            c = self.pick(spec["containers"])
            c["resources"] = {"requests": {"cpu": "0", "memory": "0"}}
        if self.chance(0.1):
            c = self.pick(spec["containers"])
            c.pop("resources", None)

    def free(self, node: Json) -> tuple[int, int]:
        """Return the CPU (milli) and memory (bytes) that running pods leave."""
        return node["_cpu"] - node["_ucpu"], node["_mem"] - node["_umem"]

    def make_target(self, i: int) -> None:
        """Add a pod to schedule."""
        rng = self.rng
        node = self.pick(self.nodes)
        fc, fm = self.free(node)
        mode = rng.random()
        if mode < self.hard * 0.5:
            # Near or above what a random node has left.
            k = rng.choice([0.9, 0.99, 1.0, 1.05, 1.2, 1.6])
            cpu = max(10, int(max(fc, node["_cpu"] * 0.1) * k))
            mem = max(Mi, int(max(fm, node["_mem"] * 0.1) * rng.choice([0.3, 0.6, 1.0, 1.1])))
        elif mode < self.hard * 0.75:
            cpu = int(node["_cpu"] * rng.choice([0.8, 1.0, 1.2, 3]))
            mem = int(node["_mem"] * rng.choice([0.3, 0.8, 1.1]))
        else:
            cpu = int(self.base_cpu * rng.choice([0, 0.02, 0.05, 0.1, 0.2]))
            mem = int(self.base_mem * rng.choice([0, 0.02, 0.05, 0.1, 0.2]))
        pod = self.make_pod(f"new-{i + 1}", cpu, mem, target=True)
        pod["_cpu"], pod["_mem"] = cpu, mem
        for f in self.features:
            f.target(self, pod)
        del pod["_cpu"], pod["_mem"]
        self.targets.append(pod)

    # -- selectors -----------------------------------------------------

    def selector(self, pod: Json | None = None, allow_empty: bool = True) -> Json:
        """A label selector over pod labels; sometimes matches pod itself."""
        rng = self.rng
        own = (pod or {}).get("metadata", {}).get("labels", {})
        x = rng.random()
        if allow_empty and x < 0.06:
            return {}
        if x < 0.55 and "app" in own:
            return {"matchLabels": {"app": own["app"]}}
        if x < 0.75:
            return {"matchLabels": {"app": self.pick(APPS)}}
        op = rng.choice(["In", "NotIn", "Exists", "DoesNotExist"])
        key = rng.choice(["app", "tier", "app"])
        e = {"key": key, "operator": op}
        if op in ("In", "NotIn"):
            e["values"] = self.some(APPS if key == "app" else TIERS, 1, 2)
        s = {"matchExpressions": [e]}
        if self.chance(0.2):
            s["matchLabels"] = {"tier": self.pick(TIERS)}
        return s


def node_labels(case: CaseBuilder) -> dict[str, list[str]]:
    """Return the values of each label that occurs on a node."""
    found: dict[str, set[str]] = {}
    for node in case.nodes:
        for key, value in node["metadata"]["labels"].items():
            found.setdefault(key, set()).add(value)
    return {key: sorted(values) for key, values in sorted(found.items())}
