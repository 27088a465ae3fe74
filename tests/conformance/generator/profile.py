"""Configuration of the scheduler: strategies, default constraints, added affinity, weights, disabled plugins."""

from __future__ import annotations

from tests.conformance.generator.builder import CaseBuilder, node_labels
from tests.conformance.generator.feature import Feature
from tests.conformance.generator.placement import NodeAffinity
from tests.conformance.generator.vocabulary import HOST, ZONE


class Profile(Feature):
    """Configuration of the scheduler."""

    name = "profile"
    weight = 1.8

    def cluster(self, case: CaseBuilder) -> None:
        rng = case.rng
        prof, args, plugins = {}, {}, {}
        if case.chance(0.2):
            prof["schedulerName"] = case.scheduler = "sched-b"
        if case.chance(0.5):
            t = rng.choice(["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"])
            st = {"type": t}
            if case.chance(0.7) or t == "RequestedToCapacityRatio":
                names = case.some(["cpu", "memory", "ephemeral-storage", "example.com/gpu"], 1, 3)
                st["resources"] = [{"name": n, "weight": rng.choice([1, 1, 2, 5, 100])} for n in names]
            if t == "RequestedToCapacityRatio":
                us = sorted(rng.sample([0, 10, 25, 50, 60, 75, 100], rng.choice([2, 2, 3, 4])))
                st["requestedToCapacityRatio"] = {
                    "shape": [{"utilization": u, "score": rng.randint(0, 10)} for u in us]
                }
            args["NodeResourcesFit"] = {"scoringStrategy": st}
            if case.chance(0.2):
                args["NodeResourcesFit"]["ignoredResources"] = ["example.com/gpu"]
            if case.chance(0.15):
                args["NodeResourcesFit"]["ignoredResourceGroups"] = ["example.com"]
        if case.chance(0.25):
            args["NodeResourcesBalancedAllocation"] = {
                "resources": [
                    {"name": n, "weight": 1}
                    for n in case.some(["cpu", "memory", "ephemeral-storage", "example.com/gpu"], 1, 4)
                ]
            }
        if case.chance(0.35):
            cs, seen = [], set()
            for _ in range(rng.choice([1, 2, 2, 3])):
                k = (
                    rng.choice([ZONE, HOST, "pool"]),
                    rng.choice(["ScheduleAnyway", "ScheduleAnyway", "DoNotSchedule"]),
                )
                if k not in seen:
                    seen.add(k)
                    cs.append({"maxSkew": rng.choice([1, 2, 5]), "topologyKey": k[0], "whenUnsatisfiable": k[1]})
            args["PodTopologySpread"] = {"defaultingType": "List", "defaultConstraints": cs}
            if case.chance(0.15):
                args["PodTopologySpread"] = {"defaultingType": "List", "defaultConstraints": []}
        if case.chance(0.35):
            args["InterPodAffinity"] = {"hardPodAffinityWeight": rng.choice([0, 1, 5, 50, 100])}
            if case.chance(0.4):
                args["InterPodAffinity"]["ignorePreferredTermsOfExistingPods"] = True
        if case.chance(0.3):
            na = NodeAffinity()
            labels = node_labels(case)
            add = {}
            if case.chance(0.6) and labels:
                add["requiredDuringSchedulingIgnoredDuringExecution"] = {
                    "nodeSelectorTerms": [{"matchExpressions": [na.requirement(case, labels, True)]}]
                }
            if case.chance(0.6) or not add:
                add["preferredDuringSchedulingIgnoredDuringExecution"] = na.preferred(case, labels)
            args["NodeAffinity"] = {"addedAffinity": add}
        scorers = [
            "TaintToleration",
            "NodeAffinity",
            "NodeResourcesFit",
            "PodTopologySpread",
            "InterPodAffinity",
            "NodeResourcesBalancedAllocation",
            "ImageLocality",
        ]
        if case.chance(0.4):
            names = case.some(scorers, 1, 3)
            if case.chance(0.5):
                plugins["multiPoint"] = {
                    "enabled": [{"name": n, "weight": rng.choice([1, 2, 4, 7, 10])} for n in names]
                }
            else:
                plugins["score"] = {"enabled": [{"name": n, "weight": rng.choice([1, 3, 5, 20])} for n in names]}
        if case.chance(0.3):
            point = rng.choice(["multiPoint", "filter", "score", "score", "postFilter", "preScore"])
            pool = {
                "multiPoint": [
                    "NodePorts",
                    "ImageLocality",
                    "NodeUnschedulable",
                    "NodeName",
                    "VolumeZone",
                    "NodeVolumeLimits",
                    "DefaultPreemption",
                    "SchedulingGates",
                    "DynamicResources",
                ],
                "filter": [
                    "NodePorts",
                    "TaintToleration",
                    "NodeUnschedulable",
                    "NodeResourcesFit",
                    "VolumeZone",
                    "InterPodAffinity",
                    "PodTopologySpread",
                ],
                "score": scorers,
                "postFilter": ["DefaultPreemption", "DynamicResources"],
                "preScore": ["NodeAffinity", "InterPodAffinity"],
            }[point]
            names = case.some(pool, 1, 2)
            p = plugins.setdefault(point, {})
            enabled = {e["name"] for e in p.get("enabled", [])}
            dis = [{"name": n} for n in names if n not in enabled]
            if point == "preScore":
                # Score reads what PreScore wrote.
                plugins.setdefault("score", {}).setdefault("disabled", []).extend(
                    d for d in dis if d["name"] not in {e["name"] for e in plugins["score"].get("enabled", [])}
                )
                on = {e["name"] for e in plugins["score"].get("enabled", [])}
                dis = [d for d in dis if d["name"] not in on]
            p["disabled"] = dis
        if args:
            prof["pluginConfig"] = [{"name": n, "args": a} for n, a in sorted(args.items())]
        if plugins:
            prof["plugins"] = plugins
        case.profile = prof
