"""Hostile input: pods that the API server accepts and that no sane person makes, by the thousand.

Each kind is a few pods that wait or run beside ordinary ones, and objects that they need. Waiting pods are refused by
the plugin that the kind is about, so that every later event asks that plugin's hint about them; running ones came by
another scheduler, which did not look.

Some rules cost something as soon as one pod has one (a preference makes scores, a full node is left out). Where running
pods have thousands of such rules, the quiet cluster has as many pods with one each, and what one costs is a kind of its
own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from scheduler.model.meta import KubeObject, Namespace
from scheduler.model.policy import PodDisruptionBudget
from scheduler.model.storage import PersistentVolume, PersistentVolumeClaim
from scheduler.plugins.inter_pod_affinity.plugin import MAX_TERMS
from scheduler.testing.builders import PodBuilder, absent, exists, in_, not_in, obj, pod
from tests.benchmarks.objects import HOSTNAME, ZONE

__all__ = ["KINDS", "MANY", "Kind", "budgets_over_all"]

MANY = 2_000
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

Manifest = dict[str, object]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of hostile input.

    Attributes:
        title: what there is.
        make: yields the objects; pods without a node wait.
        beside: yields what the quiet cluster has instead.
        is_honest: as anybody's pods are; only here to tell what the first of a kind costs.
    """

    title: str
    make: Callable[[], Iterator[KubeObject]]
    beside: Callable[[], Iterator[KubeObject]] | None = None
    is_honest: bool = False


def _bad(index: int) -> PodBuilder:
    return pod(f"bad-{index}").requests(cpu="1m").label("app", f"bad-{index}")


Change = Callable[[PodBuilder, int], PodBuilder]


def _pods(title: str, count: int, change: Change, *, one: Change | None = None, one_title: str = "") -> list[Kind]:
    """Return the kind twice: waiting, and running on the first nodes, there against pods with ``one`` rule if given."""

    def waiting() -> Iterator[KubeObject]:
        return (change(_bad(i), i).obj() for i in range(count))

    def running(change: Change) -> Callable[[], Iterator[KubeObject]]:
        return lambda: (change(_bad(i), i).on(f"node-{i:05d}").obj() for i in range(count))

    kinds = [Kind(f"{count} waiting pods, {title}", waiting)]
    if one is None:
        return [*kinds, Kind(f"{count} running pods, {title}", running(change))]
    against = f"{count} running pods, {one_title}"
    return [
        *kinds,
        Kind(against, running(one), is_honest=True),
        Kind(f"{count} running pods, {title} (against: {one_title})", running(change), running(one)),
    ]


def _terms(kind: str, number: int, selector: Callable[[int], Manifest], *, key: str = HOSTNAME, weight: int = 0):
    def change(made: PodBuilder, index: int) -> PodBuilder:
        terms: list[Manifest] = [
            {"topologyKey": key, "labelSelector": selector(index * number + j)} for j in range(number)
        ]
        if weight:
            terms = [{"weight": weight, "podAffinityTerm": term} for term in terms]
        return made.set(f"spec.affinity.{kind}", {_PREFERRED if weight else _REQUIRED: terms})

    return change


def _labels(j: int) -> Manifest:
    return {"matchLabels": {"app": f"v{j}"}}


def _not_these(j: int) -> Manifest:
    """Return a selector that demands no label pair and selects nobody: indexes by pair are of no use."""
    return {"matchExpressions": [not_in("no-such-label", f"v{j}"), exists("no-such-label")]}


def _nearly_all(j: int) -> Manifest:
    """Return a selector that selects nearly all pods."""
    return {"matchExpressions": [not_in("app", f"v{j}")]}


def _all_but_one(last: int) -> Callable[[int], Manifest]:
    """Return selectors that select all pods, and of each ``last`` one that selects none."""
    return lambda j: _labels(j) if j % last == last - 1 else _nearly_all(j)


def _constraints(number: int, selector: Callable[[int], Manifest], *, when: str = "DoNotSchedule"):
    def change(made: PodBuilder, index: int) -> PodBuilder:
        return made.set(
            "spec.topologySpreadConstraints",
            [
                {
                    "maxSkew": 2**31 - 1 if j else 1,
                    "minDomains": 2**31 - 1,
                    "topologyKey": f"no-such-label-{j}",
                    "whenUnsatisfiable": when,
                    "labelSelector": selector(index * number + j),
                }
                for j in range(number)
            ],
        )

    return change


def _set(path: str, value: Callable[[], object]) -> Callable[[PodBuilder, int], PodBuilder]:
    return lambda made, index: made.set(path, value())


def _node_terms() -> object:
    return {
        "nodeAffinity": {
            _REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [in_("rack", f"r{j}")]} for j in range(MANY)]}
        }
    }


def _tolerations() -> object:
    return [{"key": f"k{j}", "operator": "Exists"} for j in range(MANY)]


def _claims() -> object:
    return [{"name": f"v{j}", "persistentVolumeClaim": {"claimName": f"nothing-{j}"}} for j in range(MANY)]


def _disks() -> object:
    return [{"name": f"v{j}", "gcePersistentDisk": {"pdName": f"disk-{j}"}} for j in range(MANY)]


def _ports() -> object:
    ports = [{"containerPort": 1 + j, "hostPort": 1 + j, "protocol": "TCP"} for j in range(MANY)]
    return [{"name": "main", "image": "example.com/app", "ports": ports}]


def _containers() -> object:
    resources = {"requests": {"cpu": "64", "memory": "1Gi"}}
    return [{"name": f"c{j}", "image": f"example.com/app:{j}", "resources": resources} for j in range(MANY)]


def _broken_claims() -> Iterator[KubeObject]:
    """Claims and volumes that lost each other, or that name each other in a ring."""

    def claim(name: str, volume: str, phase: str) -> KubeObject:
        spec = {"volumeName": volume, "accessModes": ["ReadWriteOnce"], "storageClassName": "none"}
        metadata = {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
        }
        return obj(PersistentVolumeClaim, {"metadata": metadata, "spec": spec, "status": {"phase": phase}})

    for i in range(30):
        kind = ("lost", "ring", "gone")[i % 3]
        yield claim(
            f"claim-{i}", f"volume-{i}" if kind != "gone" else "no-such-volume", "Lost" if kind == "lost" else "Bound"
        )
        if kind == "ring":
            reference = {"name": f"claim-{(i + 3) % 30}", "namespace": "default", "uid": f"uid-claim-{(i + 3) % 30}"}
            spec = {"claimRef": reference, "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
            yield obj(PersistentVolume, {"metadata": {"name": f"volume-{i}", "uid": f"uid-volume-{i}"}, "spec": spec})
        yield _bad(i).claim(f"claim-{i}").obj()


def _namespaces() -> Iterator[KubeObject]:
    """A thousand namespaces, and pods whose every term asks for them by label."""
    for i in range(1_000):
        metadata = {"name": f"ns-{i}", "labels": {"team": f"team-{i % 7}"}}
        yield obj(Namespace, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    for i in range(10):
        made = _bad(i)
        terms = [
            {
                "topologyKey": ZONE,
                "labelSelector": _nearly_all(j),
                "namespaceSelector": {"matchExpressions": [exists("team"), not_in("team", f"x{i}-{j}")]},
            }
            for j in range(MAX_TERMS)
        ]
        yield made.set("spec.affinity.podAffinity", {_REQUIRED: terms}).obj()


def budgets_over_all() -> Iterator[KubeObject]:
    """Budgets over all pods, thousands of them, ten thousand pods each."""
    for i in range(MANY):
        manifest = {
            "metadata": {"name": f"budget-{i}", "namespace": "default"},
            "spec": {"selector": {"matchExpressions": [absent(f"no-such-label-{i}")]}},
            "status": {"disruptionsAllowed": 0, "currentHealthy": 10_000, "expectedPods": 10_000},
        }
        yield obj(PodDisruptionBudget, manifest)


def _kinds() -> Iterator[Kind]:
    bad_selector: Manifest = {"matchExpressions": [{"key": "app", "operator": "Nope", "values": []}]}
    affinity, anti = "podAffinity", "podAntiAffinity"
    yield from _pods("invalid affinity selector", 30, _terms(anti, 1, lambda j: bad_selector))
    yield from _pods("invalid spread selector", 30, _constraints(1, lambda j: bad_selector))
    yield from _pods("absurd maxSkew and minDomains", 30, _constraints(1, _labels))
    yield from _pods("2,000 anti-affinity terms by label", 3, _terms(anti, MANY, _labels))
    yield from _pods("2,000 anti-affinity terms without a pair", 3, _terms(anti, MANY, _not_these))
    yield from _pods(
        "2,000 preferences that select all",
        3,
        _terms(anti, MANY, _nearly_all, key=ZONE, weight=1),
        one=_terms(anti, 1, _nearly_all, key=ZONE, weight=1),
        one_title="one preference",
    )
    near = _terms(affinity, MAX_TERMS, _all_but_one(MAX_TERMS), key=ZONE)
    one = _terms(affinity, 1, _nearly_all, key=ZONE)
    yield from _pods(f"{MAX_TERMS} affinity terms, one for nobody", 30, near, one=one, one_title="one affinity term")
    yield from _pods("2,000 spread constraints by label", 3, _constraints(MANY, _labels))
    yield from _pods("2,000 spread constraints without a pair", 3, _constraints(MANY, _not_these))
    yield from _pods("2,000 node affinity terms", 3, _set("spec.affinity", _node_terms))
    yield from _pods("2,000 tolerations", 3, _set("spec.tolerations", _tolerations))
    yield from _pods("2,000 claims of nothing", 3, _set("spec.volumes", _claims))
    yield from _pods("2,000 in-tree disks", 3, _set("spec.volumes", _disks))
    yield from _pods("2,000 host ports", 3, _set("spec.containers", _ports))
    full: Change = lambda made, _index: made.requests(cpu="32")  # noqa: E731
    many = _set("spec.containers", _containers)
    yield from _pods("2,000 containers", 3, many, one=full, one_title="one container that fills the node")
    many_labels = _set("metadata.labels", lambda: {f"label-{j}": "v" for j in range(MANY)})
    yield from _pods("2,000 labels", 3, many_labels)
    yield Kind("30 waiting pods, claims lost, gone or bound in a ring", _broken_claims)
    yield Kind("10 waiting pods, 256 namespace selectors, 1,000 namespaces", _namespaces)
    yield Kind("2,000 budgets over all pods", budgets_over_all)


KINDS = tuple(_kinds())
