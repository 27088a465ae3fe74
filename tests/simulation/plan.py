"""Plans: what will happen in a history. A plan is made from a seed and is plain data, so that it can be shrunk."""

from __future__ import annotations

import random
from dataclasses import dataclass

__all__ = ["FAULTS", "LOST_LINE", "Deed", "Fault", "Plan", "make_plan"]

FAULTS = {
    "down": "connections are refused",
    "blackhole": "nothing gets through, nothing is said",
    "lost_request": "some writes never arrive",
    "lost_answer": "some writes are carried out and their answers lost",
    "refused": "some writes are answered 500, 503 or 429",
    "false_conflict": "some binds are carried out and answered 409",
    "slow": "requests take seconds",
    "cut": "watches are cut in the middle of a line, every second",
    "repeated": "watch lines come twice",
    "late": "watch lines come up to 20 seconds late",
    "pieces": "watch lines come in pieces",
    "swapped": "watch lines of different objects come in the wrong order",
    "merged": "an object's end and its successor come as one change of it",
    "expired": "watches are told that their version is too old",
    "extender": "an extender fails, talks nonsense, or binds and does not answer",
}
"""Kinds of faults of the network, with what they mean."""

LOST_LINE = "lost_line"
"""Watch lines of pods and nodes that never come: one more kind of fault, which only a comparison with the server heals."""

_DURATION_S = 30.0
_PODS = 14
_RATE = 0.4
_WORST = 0.25
_COMES_BACK = 0.6
_ALL_AT_ONCE = 0.2
_VICTIMS = 0.5


@dataclass(frozen=True, slots=True)
class Fault:
    """Something is wrong with the network for a while.

    Attributes:
        kind: one of ``FAULTS``, "extender" or ``LOST_LINE``.
        start_s: when it begins, in seconds of the history; ``end_s``: when it is over.
        replica: whose network; -1: everybody's.
        share: of the requests it hits.
    """

    kind: str
    start_s: float
    end_s: float
    replica: int = -1
    share: float = _RATE


@dataclass(frozen=True, slots=True)
class Deed:
    """Something that a user, a kubelet, another scheduler or a crash does at a moment.

    Attributes:
        at_s: when, in seconds of the history.
        kind: name of a method of ``deeds.Deeds``.
        name: of the object, or of the scheduler: its replica's number, or "rival".
        number: size, priority or grace period, by kind.
        where: a node's name, a pool's, or a storage class.
    """

    at_s: float
    kind: str
    name: str = ""
    number: int = 0
    where: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """One history.

    Attributes:
        seed: of latencies, jitter and ties.
        replicas: how many schedulers run, with one lease.
        deeds: in order of time.
        faults: in no order.
    """

    seed: int
    replicas: int
    deeds: tuple[Deed, ...]
    faults: tuple[Fault, ...]


_Parts = tuple[list[Deed], list[Fault]]


def make_plan(seed: int) -> Plan:
    """Return the plan of a seed."""
    chance = random.Random(seed)
    replicas = chance.choice((1, 2, 2))
    deeds = [*_cluster(chance), *_pods(chance), *_troubles(chance, replicas)]
    faults = _faults(chance, replicas)
    if replicas > 1 and chance.random() < _WORST:
        ill_informed = _ill_informed_leader(chance)
        deeds, faults = [*deeds, *ill_informed[0]], (*faults, *ill_informed[1])
    for likelihood, make in _EXTRAS:
        if chance.random() < likelihood:
            more = make(chance)
            deeds, faults = [*deeds, *more[0]], (*faults, *more[1])
    return Plan(seed, replicas, tuple(sorted(deeds, key=lambda deed: deed.at_s)), faults)


def _ill_informed_leader(chance: random.Random) -> _Parts:
    """A standby that has heard little for a while has to lead all of a sudden."""
    at_s = chance.uniform(5, _DURATION_S)
    faults = [Fault("late", at_s - 5, at_s + 5, share=1.0)]
    if chance.random() < _ALL_AT_ONCE:
        return [Deed(at_s, "stop", "0"), Deed(at_s, "stop", "1")], faults
    node = f"n{chance.randrange(3)}"
    deeds = [Deed(at_s, chance.choice(("stop_leader", "stop_leader", "crash_leader")))]
    deeds.append(Deed(at_s - chance.uniform(0.5, 4), chance.choice(("cordon", "delete_node")), node))
    deeds += [Deed(at_s - chance.uniform(0, 3), "create_pod", f"h{i}", 1) for i in range(chance.randint(1, 4))]
    return deeds, faults


def _volumes(chance: random.Random) -> _Parts:
    """Pods that wait for volumes: made where they go, there already and taken, or nobody's."""
    deeds = []
    for i in range(chance.randint(1, 5)):
        where = chance.choice(("made", "n0", "n1", "n2", "nowhere"))
        deeds.append(
            Deed(chance.uniform(0, _DURATION_S), "create_volume_pod", f"v{i}", chance.choice((1, 1, 2)), where)
        )
    if chance.random() < _WORST:
        deeds.append(Deed(chance.uniform(1, _DURATION_S), "delete_pod", f"v{chance.randrange(5)}"))
    return deeds, []


def _extender(chance: random.Random) -> _Parts:
    """Pods that an extender has a say in, and binds."""
    numbers = range(chance.randint(1, 4))
    deeds = [Deed(chance.uniform(0, _DURATION_S), "create_extended_pod", f"e{i}", 1) for i in numbers]
    start_s = chance.uniform(0, _DURATION_S)
    return deeds, [Fault("extender", start_s, start_s + chance.uniform(1, 15), -1, chance.choice((0.3, 0.7)))]


def _rival(chance: random.Random) -> _Parts:
    """Another scheduler that takes room on the same nodes; now and then it has trouble of its own."""
    deeds = []
    for i in range(chance.randint(1, 6)):
        deeds.append(Deed(chance.uniform(0, _DURATION_S), "create_rival_pod", f"r{i}", chance.choice((1, 1, 2))))
    if chance.random() < _WORST:
        deeds.append(Deed(chance.uniform(1, _DURATION_S), chance.choice(("crash", "stop")), "rival"))
    return deeds, []


def _replaced(chance: random.Random) -> _Parts:
    """Pods that give way to others of their names while something slow is on its way to them."""
    at_s = chance.uniform(1, _DURATION_S)
    if chance.random() < _VICTIMS:
        deeds = [Deed(at_s, "create_urgent_pod", f"x{i}", 2) for i in range(2)]
        names = [f"p{i}" for i in range(_PODS) for _ in range(3) if chance.random() < _RATE]
        deeds += [Deed(at_s + chance.uniform(0.3, 6), "replace_pod", name, 1) for name in names]
        return deeds, [Fault("slow", at_s, at_s + 12, share=_RATE)]
    deeds = [Deed(at_s, "create_pod", f"x{i}", 2) for i in range(2)]
    return [*deeds, *(Deed(at_s + chance.uniform(0.05, 6), "replace_pod", name, 1) for name in ("x0", "x1"))], [
        Fault("slow", at_s, at_s + 8, share=0.8)
    ]


def _lost_lines(chance: random.Random) -> _Parts:
    start_s = chance.uniform(0, _DURATION_S)
    end_s = start_s + chance.uniform(1, 20)
    return [], [Fault(LOST_LINE, start_s, end_s, chance.choice((-1, 0)), chance.choice((0.1, 0.3, 1.0)))]


def _resized(chance: random.Random) -> _Parts:
    """Nodes whose size changes, and pods that somebody puts on them without asking anybody."""
    deeds = []
    for _ in range(chance.randint(1, 3)):
        node, at_s = f"n{chance.randrange(3)}", chance.uniform(1, _DURATION_S)
        deeds.append(Deed(at_s, "resize_node", node, chance.choice((1, 2, 4, 6))))
        deeds.append(Deed(at_s + chance.uniform(-1, 1), "steal_pod", f"p{chance.randrange(_PODS)}", where=node))
    return deeds, []


def _cluster(chance: random.Random) -> list[Deed]:
    numbers = range(chance.randint(1, 3))
    return [Deed(0.0, "create_node", f"n{i}", chance.choice((2, 4)), f"pool-{i % 2}") for i in numbers]


def _pods(chance: random.Random) -> list[Deed]:
    """Return about as many pods as there is room for: what is booked twice, or not given back, then shows."""
    deeds = []
    for i in range(chance.randint(4, _PODS)):
        kind = chance.choices(("create_pod", "create_urgent_pod", "create_picky_pod"), (8, 1, 2))[0]
        at_s = chance.uniform(0, _DURATION_S)
        deeds.append(Deed(at_s, kind, f"p{i}", chance.choice((1, 1, 2)), f"pool-{i % 2}"))
    return deeds


def _troubles(chance: random.Random, replicas: int) -> list[Deed]:
    deeds = []
    for _ in range(chance.choice((0, 2, 4, 6))):
        at_s = chance.uniform(1, _DURATION_S)
        pod, node, replica = f"p{chance.randrange(_PODS)}", f"n{chance.randrange(3)}", str(chance.randrange(replicas))
        match chance.choice(
            ("delete", "delete", "replace", "steal", "node", "cordon", "crash", "stop", "freeze", "compact")
        ):
            case "delete":
                deeds.append(Deed(at_s, "delete_pod", pod, chance.choice((0, 5))))
            case "replace":
                deeds.append(Deed(at_s, "replace_pod", pod, 1))
            case "steal":
                deeds.append(Deed(at_s, "steal_pod", pod, where="foreign"))
            case "node":
                deeds.append(Deed(at_s, "delete_node", node))
                if chance.random() < _COMES_BACK:
                    deeds.append(Deed(at_s + chance.uniform(0, 10), "create_node", node, 4, "pool-0"))
            case "cordon":
                deeds.append(Deed(at_s, "cordon", node))
                deeds.append(Deed(at_s + chance.uniform(0, 20), "uncordon", node))
            case "freeze":
                deeds.append(Deed(at_s, "freeze", replica, chance.randint(1, 40)))
            case "compact":
                deeds.append(Deed(at_s, "compact"))
            case kind:
                deeds.append(Deed(at_s, kind, replica))
    return deeds


def _faults(chance: random.Random, replicas: int) -> tuple[Fault, ...]:
    faults = [_fault(chance, replicas, chance.choice(tuple(FAULTS))) for _ in range(chance.choice((0, 1, 2, 3)))]
    if chance.random() < _WORST:
        # The two that together let room be given away twice: an answer is lost, and the watch tells late.
        start_s, end_s = sorted(chance.uniform(0, _DURATION_S) for _ in range(2))
        faults += [Fault(kind, start_s, end_s, share=0.7) for kind in ("lost_answer", "late")]
    return tuple(faults)


def _fault(chance: random.Random, replicas: int, kind: str) -> Fault:
    start_s = chance.uniform(0, _DURATION_S)
    length_s = chance.uniform(1, 40 if kind in {"down", "blackhole"} else 20)
    return Fault(kind, start_s, start_s + length_s, chance.randrange(-1, replicas), chance.choice((0.2, 0.5, 1.0)))


_EXTRAS = ((0.15, _volumes), (0.12, _extender), (0.1, _rival), (0.15, _resized), (0.12, _replaced), (0.1, _lost_lines))
"""How likely it is -> what comes in addition."""
