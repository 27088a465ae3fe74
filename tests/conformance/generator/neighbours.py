"""Features about a pod and other pods: affinity, topology spread, owners."""

from __future__ import annotations

from tests.conformance.generator.builder import CaseBuilder
from tests.conformance.generator.feature import Feature, Json
from tests.conformance.generator.vocabulary import APPS, HOST, REGION, TIERS, ZONE, stamp, uid


class PodAffinity(Feature):
    """Inter-pod affinity and anti-affinity."""

    name = "podaffinity"
    weight = 2.2

    def key(self, case: CaseBuilder):
        return case.rng.choice(
            [HOST, HOST, ZONE, ZONE, ZONE, REGION, "pool", "absent"] if case.chance(0.3) else [HOST, ZONE]
        )

    def term(self, case: CaseBuilder, pod):
        t = {"topologyKey": self.key(case)}
        if case.chance(0.95):
            t["labelSelector"] = case.selector(pod)
        if case.chance(0.2):
            t["namespaces"] = case.some([*case.namespaces, "ns-absent"], 1, 2)
        if case.chance(0.25):
            t["namespaceSelector"] = case.rng.choice(
                [
                    {},
                    {"matchLabels": {"team": "red"}},
                    {"matchLabels": {"team": "blue"}},
                    {"matchExpressions": [{"key": "env", "operator": "Exists"}]},
                    {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
                ]
            )
        if "labelSelector" in t and case.chance(0.15):
            k = case.rng.choice(["matchLabelKeys", "mismatchLabelKeys"])
            used = set(t["labelSelector"].get("matchLabels", {})) | {
                e["key"] for e in t["labelSelector"].get("matchExpressions", [])
            }
            label = "version" if case.chance(0.8) else "absent"
            if label not in used:
                t[k] = [label]
        return t

    def decorate(self, case: CaseBuilder, pod, p_req, hard):
        aff = {}
        for kind, p in (("podAffinity", 0.5), ("podAntiAffinity", 0.5)):
            a = {}
            if case.chance(p * p_req):
                n = case.rng.choice([1, 1, 2]) if hard else 1
                a["requiredDuringSchedulingIgnoredDuringExecution"] = [self.term(case, pod) for _ in range(n)]
            if case.chance(0.45):
                a["preferredDuringSchedulingIgnoredDuringExecution"] = [
                    {"weight": case.rng.choice([1, 7, 30, 50, 100]), "podAffinityTerm": self.term(case, pod)}
                    for _ in range(case.rng.choice([1, 1, 2]))
                ]
            if a:
                aff[kind] = a
        if aff:
            pod["spec"].setdefault("affinity", {}).update(aff)

    def bound(self, case: CaseBuilder, pod: Json, node: Json) -> None:
        if case.chance(0.5):
            self.decorate(case, pod, 0.2 + 0.4 * case.hard, False)

    def target(self, case: CaseBuilder, pod: Json) -> None:
        if case.chance(0.9):
            self.decorate(case, pod, 0.6 + 0.6 * case.hard, True)


class Spread(Feature):
    """Topology spread constraints."""

    name = "spread"
    weight = 2.0

    def target(self, case: CaseBuilder, pod: Json) -> None:
        if not case.chance(0.9):
            return
        out, seen = [], set()
        for _ in range(case.rng.choice([1, 1, 2, 3])):
            key = case.rng.choice(
                [ZONE, ZONE, HOST, HOST, REGION, "pool", "disk", "absent"] if case.chance(0.35) else [ZONE, HOST]
            )
            when = "DoNotSchedule" if case.chance(0.45 + 0.4 * case.hard) else "ScheduleAnyway"
            if (key, when) in seen:
                continue
            seen.add((key, when))
            c = {"maxSkew": case.rng.choice([1, 1, 1, 2, 3]), "topologyKey": key, "whenUnsatisfiable": when}
            if case.chance(0.95):
                c["labelSelector"] = case.selector(pod)
                used = set(c["labelSelector"].get("matchLabels", {})) | {
                    e["key"] for e in c["labelSelector"].get("matchExpressions", [])
                }
                if case.chance(0.15) and "version" not in used:
                    c["matchLabelKeys"] = ["version"] if case.chance(0.8) else ["absent"]
            if when == "DoNotSchedule" and case.chance(0.2):
                c["minDomains"] = case.rng.choice([1, 2, 3, 5])
            if case.chance(0.25):
                c["nodeAffinityPolicy"] = case.rng.choice(["Honor", "Ignore"])
            if case.chance(0.25):
                c["nodeTaintsPolicy"] = case.rng.choice(["Honor", "Ignore"])
            out.append(c)
        pod["spec"]["topologySpreadConstraints"] = out

    def bound(self, case: CaseBuilder, pod: Json, node: Json) -> None:
        # Deleted pods do not count.
        if case.chance(0.08):
            pod["metadata"]["deletionTimestamp"] = stamp(case.rng.randrange(200 * 86400))
            pod["metadata"]["deletionGracePeriodSeconds"] = 30


class Owners(Feature):
    """Services and controllers, which give default spread constraints."""

    name = "owners"
    weight = 0.8

    def cluster(self, case: CaseBuilder) -> None:
        self.rs = []
        for ns in case.namespaces:
            for app in APPS:
                if case.chance(0.5):
                    sel = {"app": app}
                    if case.chance(0.2):
                        sel["tier"] = case.pick(TIERS)
                    case.add(
                        {
                            "apiVersion": "v1",
                            "kind": "Service",
                            "metadata": {"name": "svc-" + app, "namespace": ns},
                            "spec": {"selector": sel, "ports": [{"port": 80}]},
                        }
                    )
                if case.chance(0.6):
                    kind = case.rng.choice(["ReplicaSet", "StatefulSet", "ReplicationController"])
                    api = "v1" if kind == "ReplicationController" else "apps/v1"
                    name = "ctl-" + app
                    u = uid(kind, ns, name)
                    sel = {"app": app}
                    spec = {
                        "selector": sel if kind == "ReplicationController" else {"matchLabels": sel},
                        "template": {
                            "metadata": {"labels": sel},
                            "spec": {"containers": [{"name": "c", "image": "i"}]},
                        },
                    }
                    if kind == "StatefulSet":
                        spec["serviceName"] = "svc-" + app
                    case.add(
                        {
                            "apiVersion": api,
                            "kind": kind,
                            "metadata": {"name": name, "namespace": ns, "uid": u},
                            "spec": spec,
                        }
                    )
                    self.rs.append((ns, app, api, kind, name, u))

    def own(self, case: CaseBuilder, pod):
        ns = pod["metadata"].get("namespace", "default")
        app = pod["metadata"].get("labels", {}).get("app")
        for o in self.rs:
            if o[0] == ns and o[1] == app:
                pod["metadata"]["ownerReferences"] = [
                    {"apiVersion": o[2], "kind": o[3], "name": o[4], "uid": o[5], "controller": True}
                ]

    def bound(self, case: CaseBuilder, pod: Json, node: Json) -> None:
        if case.chance(0.8):
            self.own(case, pod)

    def target(self, case: CaseBuilder, pod: Json) -> None:
        if case.chance(0.8):
            self.own(case, pod)
