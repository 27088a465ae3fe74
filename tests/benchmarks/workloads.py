"""The workloads of the side-by-side comparison, derived from kube-scheduler's own performance suite.

    W1   plain pods, 1,000 nodes            W7   plain pods among five kinds of affinity pods
    W1a  the same, created while scheduling W8   unschedulable noise, gated pods, node churn
    W2   plain pods, 5,000 nodes            W8a  the same, pods arriving at a steady rate; W8q without the noise
    W3   hard zone spread                   W9   preemption; W9b in the background
    W4   service and soft zone spread       W10  daemonset: every pod names one node
    W5   required anti-affinity; W5m the symmetric case
    W6   required affinity by zone          W12  event storm; W12r restart with a full cluster

Measured pods (``m-…``) are in a namespace of the run; what runs beforehand is in ``init`` or, where schedulers change
it, in the run's own. Pods that must not fit (``x-…``) and gated ones (``g-…``) are not counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from time import perf_counter

from tests.benchmarks.api import Api
from tests.benchmarks.objects import HOSTNAME, ZONE, ZONES, Manifest, node, pod

INIT = "init"
MEASURED = "m-"
STD = {"cpu": "100m", "memory": "500Mi"}

Note = Callable[[str], None]
"""``note(slot)`` says that a slot has just become free."""

Noise = Callable[[Api, str, Note], Awaitable[None]]
"""``noise(api, namespace, note)`` runs beside the measurement until it is cancelled."""


def _round_robin(index: int, nodes: int) -> int:
    return index % nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One workload.

    Attributes:
        key: W1 to W12r.
        title: for tables.
        nodes: cluster size; ``init`` and ``pods``: how many run beforehand and are measured.
        node: makes the i-th node.
        measured: makes the i-th measured pod in a namespace.
        running: makes the i-th pod of those that run beforehand, on a node, in a namespace.
        parked: more pods of the run that are never bound (gated, never fitting).
        also: objects of the run's namespace (services).
        per_namespace: how many pods of those beforehand share a namespace ``init-0`` …; 0: all are in ``init``.
        reset: what runs beforehand belongs to the run, because schedulers or the noise delete it.
        creation_rate: 0: everything is created beforehand; inf: as fast as possible while scheduling; else pods/s.
        noise: what happens meanwhile.
        needs: default plugins without which the workload says nothing.
        target: node of the i-th pod in the null scheduler's list; None: there can be no such list.
        home: node of the i-th pod of those that run beforehand.
        slot: what the i-th measured pod waits for, where the noise frees such slots one by one.
        judged_by: what two schedulers are compared by: ``rate`` (pods/s), ``wait`` (median wait of a pod) or ``start``
            (from the start of the process to the first bind).
        places: how many pods a node has room for, to refuse sizes that cannot end; 0: not checked.
        quick: sizes (nodes, init, pods) in the quick set; None: not part of it.
    """

    key: str
    title: str
    nodes: int
    init: int
    pods: int
    node: Callable[[int], Manifest]
    measured: Callable[[int, str], Manifest]
    running: Callable[[int, str, str], Manifest] | None = None
    parked: Callable[[str], list[Manifest]] = field(default=lambda namespace: [])
    also: Callable[[str], list[Manifest]] = field(default=lambda namespace: [])
    per_namespace: int = 0
    reset: bool = False
    creation_rate: float = 0.0
    noise: Noise | None = None
    needs: tuple[str, ...] = ()
    target: Callable[[int, int], int] | None = _round_robin
    home: Callable[[int, int], int] = _round_robin
    slot: Callable[[int], str] | None = None
    judged_by: str = "rate"
    places: int = 40
    quick: tuple[int, int, int] | None = None

    def sized(self, nodes: int, init: int, pods: int) -> Workload:
        """Return the workload with other sizes.

        Raises:
            ValueError: the pods cannot all be placed.
        """
        if self.places and init + pods > nodes * self.places:
            raise ValueError(f"{self.key}: {init} + {pods} pods do not fit {nodes} nodes, {self.places} on each")
        return replace(self, nodes=nodes, init=init, pods=pods)

    def scaled(self, factor: float) -> Workload:
        """Return the workload with all sizes multiplied; at least 10 nodes (as full as the original's) and 10 pods."""
        nodes = max(round(self.nodes * factor), 10)
        return self.sized(nodes, round(self.init * nodes / self.nodes), max(round(self.pods * factor), 10))


def node_name(index: int) -> str:
    """Return the name of the i-th node."""
    return f"node-{index:05d}"


def _zoned(index: int) -> Manifest:
    return node(node_name(index), zone=f"zone-{index % ZONES}")


def _one_zone(index: int) -> Manifest:
    return node(node_name(index), zone="zone1")


def _std(name: str, namespace: str, **more: object) -> Manifest:
    return pod(name, namespace, requests=STD, **more)  # type: ignore[arg-type]


def _plain(index: int, namespace: str) -> Manifest:
    return _std(f"{MEASURED}{index:06d}", namespace)


def _plain_on(index: int, namespace: str, on: str) -> Manifest:
    return _std(f"i-{index:06d}", namespace, node_name=on)


def _spread(when: str) -> Callable[[int, str], Manifest]:
    constraint = {
        "maxSkew": 5,
        "topologyKey": ZONE,
        "whenUnsatisfiable": when,
        "labelSelector": {"matchLabels": {"color": "blue"}},
    }

    def make(index: int, namespace: str) -> Manifest:
        spec = {"topologySpreadConstraints": [constraint]}
        return _std(f"{MEASURED}{index:06d}", namespace, labels={"color": "blue", "app": "bench"}, spec=spec)

    return make


def _service(namespace: str) -> list[Manifest]:
    meta = {"name": "bench", "namespace": namespace}
    spec = {"selector": {"app": "bench"}, "ports": [{"port": 80}]}
    return [{"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}]


def _affinity(
    kind: str, color: str, key: str, namespaces: list[str], *, weight: int = 0, by_team: bool = False
) -> Manifest:
    term: Manifest = {"topologyKey": key, "labelSelector": {"matchLabels": {"color": color}}}
    if by_team:
        term["namespaceSelector"] = {"matchLabels": {"team": "devops"}}
    else:
        term["namespaces"] = namespaces
    if weight:
        return {"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": weight, "podAffinityTerm": term}]}}}  # fmt: skip
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def _repelling(index: int, namespace: str) -> Manifest:
    spec = _affinity("podAntiAffinity", "green", HOSTNAME, [INIT, namespace])
    return _std(f"{MEASURED}{index:06d}", namespace, labels={"color": "green"}, spec=spec)


def _repelling_on(index: int, namespace: str, on: str) -> Manifest:
    spec = _affinity("podAntiAffinity", "green", HOSTNAME, [INIT])
    return _std(f"i-{index:06d}", namespace, labels={"color": "green"}, spec=spec, node_name=on)


def _repelling_all_on(index: int, namespace: str, on: str) -> Manifest:
    """Repels green pods of every namespace, so that measured pods without any rule of their own are kept off."""
    made = _repelling_on(index, namespace, on)
    term = made["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
    del term["namespaces"]
    term["namespaceSelector"] = {}
    return made


def _green(index: int, namespace: str) -> Manifest:
    return _std(f"{MEASURED}{index:06d}", namespace, labels={"color": "green"})


def _attracted(index: int, namespace: str) -> Manifest:
    spec = _affinity("podAffinity", "blue", ZONE, [], by_team=True)
    return _std(f"{MEASURED}{index:06d}", namespace, labels={"color": "blue"}, spec=spec)


def _attracted_on(index: int, namespace: str, on: str) -> Manifest:
    spec = _affinity("podAffinity", "blue", ZONE, [], by_team=True)
    return _std(f"i-{index:06d}", namespace, labels={"color": "blue"}, spec=spec, node_name=on)


def _mixed_on(index: int, namespace: str, on: str) -> Manifest:
    kinds: list[tuple[str, Manifest]] = [
        ("none", {}),
        ("blue", _affinity("podAffinity", "blue", ZONE, [INIT])),
        ("green", _affinity("podAntiAffinity", "green", HOSTNAME, [INIT])),
        ("red", _affinity("podAffinity", "red", HOSTNAME, [INIT], weight=1)),
        ("yellow", _affinity("podAntiAffinity", "yellow", HOSTNAME, [INIT], weight=1)),
    ]
    color, spec = kinds[index % len(kinds)]
    return _std(f"i-{index:06d}", namespace, labels={"color": color}, spec=spec, node_name=on)


def _kinds_apart(index: int, nodes: int) -> int:
    """Pods of one kind stand on different nodes, because the green ones repel one another."""
    return (index // 5 + index % 5 * (nodes // 5)) % nodes


def _never_fitting(name: str, namespace: str) -> Manifest:
    return pod(name, namespace, requests={"cpu": "9", "memory": "500Mi"})


def _parked(gated: int, bad: int) -> Callable[[str], list[Manifest]]:
    def make(namespace: str) -> list[Manifest]:
        gate = {"schedulingGates": [{"name": "bench.podium.dev/wait"}]}
        pods = [_std(f"g-{i:06d}", namespace, spec=gate) for i in range(gated)]
        return pods + [_never_fitting(f"x-{i:06d}", namespace) for i in range(bad)]

    return make


async def _unschedulable_noise(api: Api, namespace: str, note: Note) -> None:
    """Five never-fitting pods a second, and a useless node that comes and goes once a second."""
    del note
    churn = node("churn-node", pods="0")
    for tick in range(10_000_000):
        await api.create(_never_fitting(f"x-late-{tick:06d}", namespace))
        if tick % 5 == 0:
            await (api.create(churn) if tick % 10 == 0 else api.delete("/api/v1/nodes/churn-node"))
        await asyncio.sleep(0.2)


def _low_on(index: int, namespace: str, on: str) -> Manifest:
    return pod(f"i-{index:06d}", namespace, requests={"cpu": "900m", "memory": "500Mi"}, node_name=on)


def _high(index: int, namespace: str) -> Manifest:
    spec = {"priorityClassName": "bench-high"}
    return pod(f"{MEASURED}{index:06d}", namespace, requests={"cpu": "3", "memory": "500Mi"}, spec=spec)


async def _preempting_noise(api: Api, namespace: str, note: Note) -> None:
    """Five pods a second that must evict others."""
    del note
    for tick in range(10_000_000):
        made = pod(f"x-high-{tick:06d}", namespace, requests={"cpu": "3", "memory": "500Mi"},
                   spec={"priorityClassName": "bench-high"})  # fmt: skip
        await api.create(made)
        await asyncio.sleep(0.2)


def _priority_class(namespace: str) -> list[Manifest]:
    del namespace
    meta = {"name": "bench-high"}
    return [{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": meta, "value": 10}]


def _named(index: int, namespace: str) -> Manifest:
    field_is = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node_name(0)]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [field_is]}}
    return pod(f"{MEASURED}{index:06d}", namespace, spec={"affinity": {"nodeAffinity": required}})


def _one_huge(index: int) -> Manifest:
    return node(node_name(index), zone=f"zone-{index % ZONES}", pods="90000" if index == 0 else "110")


_PORTS = 10


def _with_port(index: int, namespace: str) -> Manifest:
    return pod(f"{MEASURED}{index:06d}", namespace, requests={"cpu": "100m", "memory": "100Mi"},
               host_port=int(_port(index)))  # fmt: skip


def _with_port_on(index: int, namespace: str, on: str) -> Manifest:
    return pod(f"i-{index:06d}", namespace, requests={"cpu": "100m", "memory": "100Mi"}, node_name=on,
               host_port=int(_port(index)))  # fmt: skip


def _port(index: int) -> str:
    return str(8000 + index % _PORTS)


async def _freeing(api: Api, namespace: str, note: Note) -> None:
    """Delete the blockers at 100 a second; each one frees its port on one node."""
    blockers = sorted(p["metadata"]["name"] for p in await api.list(f"/api/v1/namespaces/{namespace}/pods"))
    begin_s = perf_counter()
    for i, name in enumerate(n for n in blockers if n.startswith("i-")):
        await asyncio.sleep(max(begin_s + i / 100 - perf_counter(), 0.0))
        note(_port(i))
        await api.delete(f"/api/v1/namespaces/{namespace}/pods/{name}")
    await asyncio.Event().wait()


_W1 = Workload(
    key="W1", title="plain", nodes=1_000, init=500, pods=5_000, node=_zoned, measured=_plain, running=_plain_on,
    quick=(1_000, 200, 2_000),
)  # fmt: skip
_W8 = Workload(
    key="W8", title="plain with unschedulable noise", nodes=2_000, init=2_000, pods=4_000, node=_zoned,
    measured=_plain, running=_plain_on, parked=_parked(2_000, 500), noise=_unschedulable_noise,
    quick=(1_000, 500, 1_000),
)  # fmt: skip
_W5 = Workload(
    key="W5", title="required anti-affinity by hostname", nodes=2_000, init=500, pods=1_000, node=_zoned,
    measured=_repelling, running=_repelling_on, needs=("InterPodAffinity",), places=1, target=lambda i, nodes: nodes - 1 - i,
)  # fmt: skip
_PREEMPTION = Workload(
    key="W9", title="preemption", nodes=500, init=2_000, pods=500, node=_zoned, measured=_high, running=_low_on,
    also=_priority_class, reset=True, needs=("DefaultPreemption",), places=0, target=None,
)  # fmt: skip

ALL = (
    _W1,
    replace(_W1, key="W1a", title="plain, created while scheduling", pods=3_000, creation_rate=float("inf"), quick=None, target=None),
    replace(_W1, key="W2", title="plain", nodes=5_000, init=1_000, pods=10_000, quick=(5_000, 500, 2_000)),
    replace(
        _W1, key="W3", title="hard zone spread", nodes=2_000, init=2_000, pods=4_000, measured=_spread("DoNotSchedule"),
        needs=("PodTopologySpread",), quick=(1_000, 500, 1_000),
    ),
    replace(
        _W1, key="W4", title="service and soft zone spread", nodes=2_000, init=2_000, pods=4_000,
        measured=_spread("ScheduleAnyway"), also=_service, needs=("PodTopologySpread",), quick=None,
    ),
    _W5,
    replace(_W5, key="W5m", title="symmetric anti-affinity", measured=_green, running=_repelling_all_on),
    Workload(
        key="W6", title="required affinity by zone", nodes=2_000, init=2_000, pods=1_000, node=_one_zone,
        measured=_attracted, running=_attracted_on, per_namespace=40, needs=("InterPodAffinity",),
        quick=(1_000, 200, 500),
    ),
    replace(
        _W1, key="W7", title="plain among affinity pods", nodes=2_000, init=2_500, pods=3_000, running=_mixed_on,
        home=_kinds_apart, needs=("InterPodAffinity",), quick=None,
    ),
    _W8,
    replace(_W8, key="W8a", title="arriving at 60/s, with noise", pods=1_200, creation_rate=60.0, quick=None, target=None, judged_by="wait"),
    replace(_W8, key="W8q", title="arriving at 60/s, quiet", pods=1_200, creation_rate=60.0, quick=None, target=None,
            noise=None, parked=_parked(0, 0), judged_by="wait"),
    _PREEMPTION,
    replace(_PREEMPTION, key="W9b", title="plain with background preemption", nodes=2_000, init=6_000, pods=1_000,
            measured=_plain, noise=_preempting_noise),
    Workload(
        key="W10", title="daemonset: one node by name", nodes=5_001, init=0, pods=2_000, node=_one_huge, measured=_named,
        places=0, target=lambda i, nodes: 0,
    ),
    Workload(
        key="W12", title="event storm: ports freed at 100/s", nodes=50, init=500, pods=500, node=_zoned,
        measured=_with_port, running=_with_port_on, reset=True, noise=_freeing, target=None, slot=_port, judged_by="wait",
        home=lambda i, nodes: i // _PORTS,
    ),
    replace(_W1, key="W12r", title="restart with bound pods", nodes=5_000, init=30_000, pods=1_000, quick=None, target=None, judged_by="start"),
)  # fmt: skip
BY_KEY = {w.key: w for w in ALL}
QUICK = tuple(w.sized(*w.quick) for w in ALL if w.quick is not None)
