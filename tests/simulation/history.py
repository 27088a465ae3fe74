"""One history: a plan comes true, in virtual time, and the promises are checked.

deeds and faults ──60 s──▶ faults end ──settle──▶ what must hold in the end
"""

from __future__ import annotations

import asyncio
import functools
import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from scheduler.kube.transport import Transport
from tests.simulation.cluster import Cluster
from tests.simulation.controllers import Controllers
from tests.simulation.deeds import Deeds
from tests.simulation.extender import Extender
from tests.simulation.model_api import ModelApi
from tests.simulation.network import Link, Traffic, Weather, WeatherOf
from tests.simulation.plan import LOST_LINE, Plan
from tests.simulation.promises import Promises, Violation
from tests.simulation.quiet import bugs_heard
from tests.simulation.replica import COMPARE_S, RIVAL, SCHEDULER_NAME, Replica
from tests.simulation.virtual_loop import StalledError, VirtualLoop

__all__ = ["Outcome", "run_history"]

_SETTLE_S = 45.0
"""A lease runs out after 15 s, a late line comes after 20, the longest back-off is 10 s."""
_FIND_DEAD_STREAM_S = 110.0
"""A watch that says nothing is given up after 90 s."""
_AFTER_VICTIMS_S, _MOST_ROUNDS = 15.0, 40
_KNOWN_SOON_S, _KNOWN_LATE_S = 10.0, 150.0
"""From what others do to a node until a scheduler must have heard it: with a sound network, and with a bad one."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a history went.

    Attributes:
        violations: of promises, in order.
        bound: pods that were on a node in the end; ``pending``: that were not.
        requests: how many the schedulers sent; ``writes``: those that would change something.
        lines: of watches that reached them.
        virtual_s: length of the history.
        fingerprint: of all requests and their moments: the same history has the same one.
    """

    violations: tuple[Violation, ...]
    bound: int
    pending: int
    requests: int
    writes: int
    lines: int
    virtual_s: float
    fingerprint: int


def run_history(plan: Plan) -> Outcome:
    """Let a plan come true."""
    loop = VirtualLoop()
    history = _History(plan, loop)
    with bugs_heard() as bugs:
        try:
            outcome = loop.run_until_complete(history.run())
            loop.run_until_complete(loop.shutdown_asyncgens())
        except StalledError as error:
            outcome = history.outcome(Violation("G8", loop.time(), str(error)))
        finally:
            loop.close()
    logged = tuple(Violation("C", outcome.virtual_s, f"a bug was logged: {bug}") for bug in bugs)
    return replace(outcome, violations=outcome.violations + logged)


class _History:
    def __init__(self, plan: Plan, loop: VirtualLoop) -> None:
        self._plan = plan
        self._loop = loop
        self._start_s = loop.time()
        self._traffic = Traffic()
        self._weather = Weather(plan.faults, loop, random.Random(plan.seed))
        self._cluster = Cluster(ModelApi(self._elapsed_s))
        self._controllers = Controllers(self._cluster, loop.call_later, random.Random(plan.seed + 1))
        self._promises = Promises(self._cluster, self._elapsed_s, _excused_s(plan))

    def _elapsed_s(self) -> float:
        return self._loop.time() - self._start_s

    async def run(self) -> Outcome:
        replicas = {str(number): self._replica(number, SCHEDULER_NAME) for number in range(self._plan.replicas)}
        if any(deed.kind == "create_rival_pod" for deed in self._plan.deeds):
            replicas["rival"] = self._replica(self._plan.replicas, RIVAL)
        self._promises.replicas = list(replicas.values())
        for replica in replicas.values():
            replica.start()
        try:
            await self._do_everything(Deeds(self._cluster, replicas))
            await self._settle()
            self._promises.settled()
        finally:
            for replica in replicas.values():
                await replica.end()
        return self.outcome()

    def outcome(self, *more: Violation) -> Outcome:
        """Return what there is to say."""
        pods = self._cluster.pods()
        bound = sum(1 for pod in pods if pod["spec"].get("nodeName"))
        return Outcome(
            (*self._promises.violations, *more),
            bound=bound,
            pending=len(pods) - bound,
            requests=self._traffic.requests,
            writes=self._traffic.writes,
            lines=self._traffic.lines,
            virtual_s=self._elapsed_s(),
            fingerprint=self._traffic.fingerprint,
        )

    async def _do_everything(self, deeds: Deeds) -> None:
        for deed in self._plan.deeds:
            await asyncio.sleep(max(deed.at_s - self._elapsed_s(), 0.0))
            await deeds.do(deed)

    async def _settle(self) -> None:
        thaws_s = [deed.at_s + deed.number for deed in self._plan.deeds if deed.kind == "freeze"]
        ends_s = max([*thaws_s, *(fault.end_s for fault in self._plan.faults)], default=0.0)
        has_dead_streams = any(fault.kind == "blackhole" for fault in self._plan.faults)
        has_lost_lines = any(fault.kind == LOST_LINE for fault in self._plan.faults)
        more_s = has_dead_streams * _FIND_DEAD_STREAM_S + has_lost_lines * COMPARE_S
        await asyncio.sleep(max(ends_s - self._elapsed_s(), 0.0) + _SETTLE_S + more_s)
        for _ in range(
            _MOST_ROUNDS
        ):  # who waits for a victim's room holds it meanwhile, and needs a moment when it is free
            before = self._places()
            await asyncio.sleep(_AFTER_VICTIMS_S)
            if before == self._places() and not any(is_leaving for _, _, is_leaving in before):
                return

    def _places(self) -> list[tuple[str, str, bool]]:
        """Return each pod's UID, its node, and whether it is being deleted."""
        return [
            (
                pod["metadata"]["uid"],
                pod["spec"].get("nodeName", ""),
                bool(pod["metadata"].get("deletionTimestamp")),
            )
            for pod in self._cluster.pods()
        ]

    def _replica(self, number: int, scheduler_name: str) -> Replica:
        chance = random.Random(self._plan.seed * 31 + number)

        def outside(identity: str) -> tuple[Callable[[], Transport], Extender]:
            connect = functools.partial(
                Link,
                self._cluster.api,
                identity,
                WeatherOf(self._weather, number),
                chance,
                on_write=self._promises.sent,
                traffic=self._traffic,
            )
            fails = functools.partial(self._weather.hits, "extender", number)
            return connect, Extender(self._cluster, identity, chance, fails, self._promises.sent)

        has_extender = any(deed.kind == "create_extended_pod" for deed in self._plan.deeds)
        return Replica(number, scheduler_name, outside, chance, has_extender=has_extender)


def _excused_s(plan: Plan) -> float:
    """Return for how long a scheduler may not know what others have done to a node."""
    is_undisturbed = not plan.faults and not any(deed.kind == "freeze" for deed in plan.deeds)
    return _KNOWN_SOON_S if is_undisturbed else _KNOWN_LATE_S
