"""One history: a plan comes true, in virtual time, and the promises are checked.

deeds and faults ──60 s──▶ faults end ──settle──▶ what must hold in the end
"""

from __future__ import annotations

import asyncio
import functools
import random
from dataclasses import dataclass

from tests.simulation.model_api import URGENT, Json, ModelApi
from tests.simulation.network import Link, Traffic, Weather
from tests.simulation.plan import Deed, Plan
from tests.simulation.promises import Promises, Violation
from tests.simulation.replica import SCHEDULER_NAME, Replica
from tests.simulation.virtual_loop import VirtualLoop

__all__ = ["Outcome", "run_history"]

_SETTLE_S = 45.0
"""A lease runs out after 15 s, a late line comes after 20, the longest back-off is 10 s."""
_FIND_DEAD_STREAM_S = 110.0
"""A watch that says nothing is given up after 90 s."""
_AFTER_VICTIMS_S = 15.0


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
    try:
        outcome = loop.run_until_complete(_History(plan, loop).run())
        loop.run_until_complete(loop.shutdown_asyncgens())
        return outcome
    finally:
        loop.close()


class _History:
    def __init__(self, plan: Plan, loop: VirtualLoop) -> None:
        self._plan = plan
        self._loop = loop
        self._chance = random.Random(plan.seed)
        self._start_s = loop.time()
        self.api = ModelApi(self._elapsed_s, loop.call_later)
        self.promises = Promises(self.api, self._elapsed_s)
        self._traffic = Traffic()

    def _elapsed_s(self) -> float:
        return self._loop.time() - self._start_s

    async def run(self) -> Outcome:
        weather = Weather(self._plan.faults, self._elapsed_s, self._chance)
        self.replicas = [self._replica(number, weather) for number in range(self._plan.replicas)]
        self.promises.replicas = self.replicas
        for replica in self.replicas:
            replica.start()
        try:
            await self._do_everything()
            await self._settle()
            self.promises.settled()
        finally:
            for replica in self.replicas:
                await replica.end()
        pods = self.api.pods()
        bound = sum(1 for pod in pods if pod["spec"].get("nodeName"))
        return Outcome(
            tuple(self.promises.violations),
            bound=bound,
            pending=len(pods) - bound,
            requests=self._traffic.requests,
            writes=self._traffic.writes,
            lines=self._traffic.lines,
            virtual_s=self._elapsed_s(),
            fingerprint=self._traffic.fingerprint,
        )

    async def _settle(self) -> None:
        thaws_s = [deed.at_s + deed.number for deed in self._plan.deeds if deed.kind == "freeze"]
        ends_s = max([*thaws_s, *(fault.end_s for fault in self._plan.faults)], default=0.0)
        has_dead_streams = any(fault.kind == "blackhole" for fault in self._plan.faults)
        await asyncio.sleep(max(ends_s - self._elapsed_s(), 0.0) + _SETTLE_S + has_dead_streams * _FIND_DEAD_STREAM_S)
        while any(pod["metadata"].get("deletionTimestamp") for pod in self.api.pods()):  # noqa: ASYNC110  plain objects
            await asyncio.sleep(_AFTER_VICTIMS_S)  # who waits for their room holds it meanwhile

    def _replica(self, number: int, weather: Weather) -> Replica:
        chance = random.Random(self._plan.seed * 31 + number)
        connect = functools.partial(
            Link, self.api, number, weather, chance, on_write=self.promises.sent, traffic=self._traffic
        )
        return Replica(number, connect, chance)

    async def _do_everything(self) -> None:
        for deed in self._plan.deeds:
            await asyncio.sleep(max(deed.at_s - self._elapsed_s(), 0.0))
            await getattr(self, f"_{deed.kind}")(deed)

    # --- deeds -------------------------------------------------------------------------------------------------------

    async def _create_node(self, deed: Deed) -> None:
        if deed.name in {node["metadata"]["name"] for node in self.api.nodes()}:
            return
        status = {"capacity": _resources(deed.number), "allocatable": _resources(deed.number)}
        metadata = {"name": deed.name, "labels": {"pool": deed.where}}
        self.api.create({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status})

    async def _create_pod(self, deed: Deed, **spec: object) -> None:
        if self.api.pod(deed.name) is None:
            self.api.create(_pod(deed.name, deed.number, spec))

    async def _create_urgent_pod(self, deed: Deed) -> None:
        await self._create_pod(deed, priorityClassName=URGENT)

    async def _create_picky_pod(self, deed: Deed) -> None:
        await self._create_pod(deed, nodeSelector={"pool": deed.where})

    async def _delete_pod(self, deed: Deed) -> None:
        self.api.delete_pod(deed.name, grace_s=deed.number)

    async def _replace_pod(self, deed: Deed) -> None:
        self.api.delete_pod(deed.name, grace_s=0)
        await self._create_pod(deed)

    async def _steal_pod(self, deed: Deed) -> None:
        """Another scheduler binds the pod to a node of its own."""
        self.api.bind_pod(deed.name, "foreign")

    async def _delete_node(self, deed: Deed) -> None:
        self.api.delete_node(deed.name)

    async def _cordon(self, deed: Deed) -> None:
        self.api.change_node(deed.name, {"unschedulable": True})

    async def _uncordon(self, deed: Deed) -> None:
        self.api.change_node(deed.name, {"unschedulable": None})

    async def _compact(self, deed: Deed) -> None:
        del deed
        self.api.store.compact()

    async def _crash(self, deed: Deed) -> None:
        await self.replicas[int(deed.name)].crash()

    async def _freeze(self, deed: Deed) -> None:
        self.replicas[int(deed.name)].freeze(deed.number)

    async def _stop(self, deed: Deed) -> None:
        await self.replicas[int(deed.name)].stop()


def _resources(cpus: int) -> Json:
    return {"cpu": str(cpus), "memory": "64Gi", "pods": "110"}


def _pod(name: str, cpus: int, spec: Json) -> Json:
    container = {"name": "main", "image": "main", "resources": {"requests": {"cpu": str(cpus)}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulerName": SCHEDULER_NAME, "containers": [container], **spec},
    }
