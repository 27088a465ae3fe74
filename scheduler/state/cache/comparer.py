"""The cache's comparer: does the cache hold what the watches delivered? (What they did not: ``kube.comparer``.)

Asked now and then, and in the hour of doubt (SIGUSR2, tests): it looks at names and UIDs only, changes nothing, and
reports what is missing here and what is here in excess. Differences are normal for the moment that an event is under
way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from scheduler.model.node import Node
from scheduler.model.pod import Pod
from scheduler.state.cache.cache import Cache
from scheduler.telemetry.logging import Logger

__all__ = ["Comparison", "Mismatch", "compare", "compare_nodes", "compare_pods", "report"]


@dataclass(frozen=True, slots=True)
class Mismatch:
    """How two collections of names differ; both sides sorted, repeated names repeated.

    Attributes:
        missed: listed, but not here.
        redundant: here, but not listed.
    """

    missed: tuple[str, ...] = ()
    redundant: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.missed or self.redundant)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result: node names and pod UIDs that differ."""

    nodes: Mismatch
    pods: Mismatch

    @property
    def is_clean(self) -> bool:
        """Say whether nothing differs."""
        return not self.nodes and not self.pods


def compare(cache: Cache, *, nodes: Iterable[Node], pods: Iterable[Pod], pending: Iterable[Pod]) -> Comparison:
    """Compare everything.

    Args:
        cache: what the scheduler believes.
        nodes: all nodes as listed.
        pods: all pods as listed, pending ones included.
        pending: the pods in the scheduling queue.
    """
    return Comparison(compare_nodes(cache, nodes), compare_pods(cache, pods, pending))


def compare_nodes(cache: Cache, nodes: Iterable[Node]) -> Mismatch:
    """Compare node names; placeholders count as here (parity), which shows pods whose node is gone."""
    return _difference((node.name for node in nodes), list(cache.dump().nodes))


def compare_pods(cache: Cache, pods: Iterable[Pod], pending: Iterable[Pod]) -> Mismatch:
    """Compare pod UIDs with those on the cache's nodes and in the queue together."""
    here = [pod.uid for info in cache.dump().nodes.values() for pod in info.pods]
    here.extend(pod.uid for pod in pending)
    return _difference((pod.uid for pod in pods), here)


def report(comparison: Comparison, log: Logger) -> None:
    """Write what differs to the log; silent if nothing does."""
    for kind, mismatch in (("nodes", comparison.nodes), ("pods", comparison.pods)):
        if mismatch:
            log.info("cache mismatched", kind=kind, missed=mismatch.missed, redundant=mismatch.redundant)


def _difference(actual: Iterable[str], cached: Iterable[str]) -> Mismatch:
    wanted, here = Counter(actual), Counter(cached)
    return Mismatch(tuple(sorted((wanted - here).elements())), tuple(sorted((here - wanted).elements())))
