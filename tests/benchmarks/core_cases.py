"""The in-process cases: which cluster, which pods, which plugins they need.

    A  plain pods, one class                       F  required affinity by zone
    B  plain pods, 50 classes interleaved          G  preemption (core_preemption.py)
    C  heterogeneous: every pod has its own size   H  pods that fit nowhere
    D  hard zone spread, soft hostname spread      I  gangs of 100
    E  required anti-affinity by hostname, 20 services
    S  hard zone spread alone

Every node has 32 cores, 128 GiB and 110 pod places in one of three zones, and one pod that takes about a fifth of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from scheduler.plugins.fail_safe import FAIL_SAFE
from tests.benchmarks.objects import HOSTNAME, ZONE, ZONES, Manifest, as_served_node, as_served_pod, node, pod

SIZES = (100, 1_000, 5_000, 15_000, 65_000)
NAMESPACE = "bench"
NODE_CPU_MILLI = 32_000
SERVICES = 20
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Case:
    """One in-process case.

    Attributes:
        letter: names it on the command line.
        title: for tables.
        needs: default plugins without which the case says nothing.
        make: the n-th measured pod (name and uid are tokens).
        shapes: after how many pods ``make`` repeats itself; 0: never, the amounts are tokens.
        fill: the n-th pod that runs on a node beforehand (``@NODE@``), and how many there are on each.
        limit: how many pods can be placed at most on this many nodes; None: as many as asked for.
        is_bound: whether the pods get a node (False: the verdict itself is measured).
        elsewhere: the command that measures the case, where it takes more than one attempt a pod.
        not_built: why the case cannot be run yet.
    """

    letter: str
    title: str
    make: Callable[[int], Manifest]
    needs: tuple[str, ...] = ()
    shapes: int = 1
    fill: tuple[int, str, str] = (1, "6400m", "25Gi")
    limit: Callable[[int], int] | None = None
    is_bound: bool = True
    elsewhere: str = ""
    not_built: str = ""

    @property
    def missing(self) -> str:
        """Return why the case is not run here, or ""."""
        stand_ins = [name for name in self.needs if name in FAIL_SAFE]
        if stand_ins:
            return f"{', '.join(stand_ins)} is not built yet"
        return f"measured by `{self.elsewhere}`" if self.elsewhere else self.not_built


def cluster_node(index: int) -> Manifest:
    """Return the template of a node in the index-th zone."""
    made = node("@NAME@", cpu="32", memory="128Gi", zone=f"zone-{index % ZONES}", labels={"pool": f"pool-{index % 7}"})
    return as_served_node(made, "uid-@NAME@", "1")


def filling_pod(case: Case) -> Manifest:
    """Return the template of a pod that runs already."""
    _, cpu, memory = case.fill
    labels = {"app": "filler", "svc": "none"}
    made = pod("@NAME@", NAMESPACE, requests={"cpu": cpu, "memory": memory}, labels=labels, node_name="@NODE@")
    return as_served_pod(made, "uid-@NAME@", "1")


def _plain(index: int) -> Manifest:
    del index
    return pod("@NAME@", NAMESPACE, requests={"cpu": "100m", "memory": "500Mi"}, labels={"app": "plain"})


def _one_of_50(index: int) -> Manifest:
    amounts = {"cpu": f"{50 + 5 * (index % 50)}m", "memory": f"{200 + 10 * (index % 50)}Mi"}
    return pod("@NAME@", NAMESPACE, requests=amounts, labels={"app": f"class-{index % 50}"})


def _own_size(index: int) -> Manifest:
    del index
    return pod("@NAME@", NAMESPACE, requests={"cpu": "@CPU@", "memory": "@MEMORY@"}, labels={"app": "@NAME@"})


def own_size(index: int) -> dict[str, str]:
    """Return the amounts of the index-th heterogeneous pod: no two pods are alike (cpu 50..349m, memory by the byte)."""
    return {"CPU": f"{50 + index * 7919 % 300}m", "MEMORY": str(200 * _MIB + index * 4099)}


def _spread(index: int) -> Manifest:
    made = _plain(index)
    selector = {"matchLabels": {"app": "plain"}}
    made["spec"]["topologySpreadConstraints"] = [
        {"maxSkew": 5, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector},
        {"maxSkew": 1, "topologyKey": HOSTNAME, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": selector},
    ]
    return made


def _hard_spread(index: int) -> Manifest:
    made = _spread(index)
    del made["spec"]["topologySpreadConstraints"][1]
    return made


def _repelling(index: int) -> Manifest:
    made = _plain(index)
    labels = made["metadata"]["labels"] = {"svc": f"svc-{index % SERVICES}"}
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": labels}}
    made["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return made


def _attracted(index: int) -> Manifest:
    made = _plain(index)
    labels = made["metadata"]["labels"] = {"svc": f"svc-{index % SERVICES}"}
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": labels}}
    made["spec"]["affinity"] = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return made


def _too_big(index: int) -> Manifest:
    del index
    return pod("@NAME@", NAMESPACE, requests={"cpu": "64", "memory": "1Gi"}, labels={"app": "big"})


CASES = (
    Case("A", "plain, one class", _plain),
    Case("B", "plain, 50 classes", _one_of_50, shapes=50),
    Case("C", "heterogeneous", _own_size, shapes=0),
    Case("D", "hard zone + soft hostname spread", _spread, needs=("PodTopologySpread",)),
    Case("S", "hard zone spread", _hard_spread, needs=("PodTopologySpread",)),
    Case(
        "E",
        "anti-affinity by hostname",
        _repelling,
        needs=("InterPodAffinity",),
        shapes=SERVICES,
        limit=lambda nodes: nodes * SERVICES * 3 // 4,
    ),
    Case("F", "affinity by zone", _attracted, needs=("InterPodAffinity",), shapes=SERVICES),
    Case(
        "G", "preemption", _plain, needs=("DefaultPreemption",), elsewhere="python -m tests.benchmarks.core_preemption"
    ),
    Case("H", "fits nowhere", _too_big, is_bound=False),
    Case(
        "I",
        "gangs of 100",
        _plain,
        not_built="kube-scheduler schedules gangs behind an alpha gate only, and Podium not at all",
    ),
)
