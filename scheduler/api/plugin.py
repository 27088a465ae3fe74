"""Plugins: one base class per extension point.

A plugin is an ordinary class that inherits from the points it takes part in and has a ``name``. The framework finds
out by ``isinstance`` which points those are. Everything is called on the scheduling thread, one pod at a time, except
the methods of the binding cycle (``pre_bind``, ``bind``, ``post_bind``): these run beside the scheduling of other pods,
on the loop if they are ``async def`` and in a small thread pool if not.

Filter and Score have two forms (see docs/design/0001-two-plugin-forms.md): per node, which is simple to write and which
single-node evaluation needs, and whole-cluster, which runs on columns. The base class derives the second from the
first, so writing ``filter`` or ``score`` alone is enough.

Answering ``None`` means success.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from scheduler.api.args import PluginArgs
from scheduler.api.cycle_state import CycleState
from scheduler.api.events import EventRegistration
from scheduler.api.handle import Handle
from scheduler.api.queued import QueuedPodInfo
from scheduler.api.status import Code, Status
from scheduler.api.views import IntColumn, NodesView, NodeView, ScoreColumn, Verdicts
from scheduler.model.pod import Pod

__all__ = [
    "API_VERSION",
    "MAX_NODE_SCORE",
    "BindPlugin",
    "FilterPlugin",
    "PermitPlugin",
    "Plugin",
    "PluginFactory",
    "PostBindPlugin",
    "PostFilterPlugin",
    "PostFilterResult",
    "PreBindPlugin",
    "PreEnqueuePlugin",
    "PreFilterPlugin",
    "PreFilterResult",
    "PreScorePlugin",
    "QueueSortPlugin",
    "ReservePlugin",
    "ScorePlugin",
    "default_normalize",
]

API_VERSION = 1
"""Version of the interface in this package; a change that breaks a plugin raises it."""

MAX_NODE_SCORE = 100


class Plugin(ABC):
    """Base of all plugins.

    Attributes:
        name: the Kubernetes-style name under which profiles enable the plugin.
        api_version: the ``API_VERSION`` that the plugin was written for; a plugin of another one is refused at start.
        Args: the type of the plugin's arguments. The entry in ``pluginConfig`` is decoded into it before the plugin is
            made, and what does not fit is refused with its path. None: the plugin gets the plain dict.
        reads_pods: whether the verdict and score that go with a ``node_signature`` depend on the pods on the node.
            Set it to False where the node object alone counts: what was worked out is kept while pods come and go.
    """

    name: ClassVar[str]
    api_version: ClassVar[int] = 1
    Args: ClassVar[type[PluginArgs] | None] = None
    reads_pods: ClassVar[bool] = True

    def events(self) -> Sequence[EventRegistration] | None:
        """Return the events after which pods rejected by this plugin are worth a retry.

        ``None`` (the default) means: after any event, always. An empty sequence: this plugin's rejections are never
        resolved by an event.
        """
        return None

    def node_signature(self, pod: Pod) -> Hashable | None:
        """Return all of the pod that this plugin's verdict and score of a node depend on, besides that node itself.

        Pods with equal signatures then share what was worked out for one of them; only nodes that have changed since
        are looked at again (docs/design/0006-class-cache.md). The plugin's PreFilter and PreScore must depend on the
        signature alone, too. ``None`` (the default) says that for this pod something else takes part (other nodes,
        other objects, the time), so nothing is shared unless the plugin Skips.
        """
        del pod
        return None

    def close(self) -> None:  # noqa: B027  optional by design
        """Release what the plugin holds; called once at shutdown or when its profile goes away."""


PluginFactory = Callable[[Any, Handle], Plugin]
"""``factory(args, handle)``; ``args`` is the ``pluginConfig`` entry: a ``Plugin.Args`` value, or a dict without one.

A plugin class is a factory. A function is one, too; its return annotation tells which class it makes.
"""


class QueueSortPlugin(Plugin):
    """Orders the active queue; a profile has exactly one, the same in all profiles."""

    @abstractmethod
    def less(self, a: QueuedPodInfo, b: QueuedPodInfo) -> bool:
        """Say whether ``a`` goes before ``b``."""

    def sort_key(self, info: QueuedPodInfo) -> Any:
        """Return a value that orders as ``less`` does; override it where a tuple can say the same, it is faster."""
        return _by_less(self)(info)


def _by_less(plugin: QueueSortPlugin) -> Callable[[QueuedPodInfo], Any]:
    def compare(a: QueuedPodInfo, b: QueuedPodInfo) -> int:
        return -1 if plugin.less(a, b) else int(plugin.less(b, a))

    return functools.cmp_to_key(compare)


class PreEnqueuePlugin(Plugin):
    """Decides whether a pod may enter the active queue at all."""

    @abstractmethod
    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Return None to let the pod in; any other status keeps it out (gated)."""


@dataclass(frozen=True, slots=True)
class PreFilterResult:
    """The nodes to which PreFilter narrows the search.

    Attributes:
        node_names: the only nodes worth looking at; None means all. An empty set means none.
    """

    node_names: frozenset[str] | None = None


class PreFilterPlugin(Plugin):
    """Prepares an attempt: computes state, may narrow the nodes, may reject the pod for the whole cluster."""

    @abstractmethod
    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodesView) -> tuple[PreFilterResult | None, Status | None]:
        """Look at the pod and all nodes once; Skip leaves this plugin's Filter out of the attempt."""

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeView) -> Status | None:
        """Update the state as if ``added`` ran on ``node``; ``node`` already has it. Override with ``remove_pod``."""
        del state, pod, added, node
        return None

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeView) -> Status | None:
        """Update the state as if ``removed`` had left ``node``; ``node`` no longer has it."""
        del state, pod, removed, node
        return None


class FilterPlugin(Plugin):
    """Says on which nodes the pod can run."""

    @abstractmethod
    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        """Say whether the pod can run on the node."""

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodesView) -> Verdicts:
        """Say for every row whether the pod can run there; must agree with ``filter``."""
        statuses = [self.filter(state, pod, node) for node in nodes.infos]
        ok = np.fromiter((s is None or s.code is Code.SUCCESS for s in statuses), np.bool_, len(statuses))
        return Verdicts(ok, functools.partial(_group_statuses, statuses))

    def spare(self, state: CycleState, pod: Pod, node: NodeView, others: Sequence[Pod]) -> list[bool] | Status | None:
        """Say which of the ``others`` on the node may stay if room is to be made for the pod; preemption asks.

        All of them are taken off, then put back one by one in this order, each staying if ``filter`` would still pass.

        Returns:
            for each whether it stays; the status of ``filter`` with all of them gone, if it does not pass even then;
            None (the default): ``filter`` has to be asked step by step.
        """
        del state, pod, node, others
        return None


def _group_statuses(
    statuses: Sequence[Status | None], rows: NDArray[np.intp]
) -> Iterable[tuple[Status, NDArray[np.intp]]]:
    groups: dict[Status, list[int]] = {}
    for row in rows.tolist():
        status = statuses[row]
        if status is not None:
            groups.setdefault(status, []).append(row)
    return [(status, np.array(members, np.intp)) for status, members in groups.items()]


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """What PostFilter achieved.

    Attributes:
        nominated_node: node the pod shall run on once room is made; "" clears a nomination; None leaves it as it is.
    """

    nominated_node: str | None = None


class PostFilterPlugin(Plugin):
    """Runs when no node was found, to make room or to say more."""

    @abstractmethod
    def post_filter(
        self, state: CycleState, pod: Pod, statuses: Mapping[str, Status]
    ) -> tuple[PostFilterResult | None, Status | None]:
        """Try to make the pod schedulable later; ``statuses`` tells for every node why it was rejected."""


class PreScorePlugin(Plugin):
    """Prepares scoring once the feasible nodes are known."""

    @abstractmethod
    def pre_score(self, state: CycleState, pod: Pod, nodes: NodesView) -> Status | None:
        """Look at the feasible nodes once; Skip leaves this plugin's Score out of the attempt."""


class ScorePlugin(Plugin):
    """Ranks the feasible nodes."""

    @abstractmethod
    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        """Return how good the node is; any int if ``normalize`` brings it to 0..100, else 0..100."""

    def score_all(self, state: CycleState, pod: Pod, nodes: NodesView) -> ScoreColumn:
        """Return the score of every row; must agree with ``score``. ``normalize`` gets it as int64."""
        return np.fromiter((self.score(state, pod, node) for node in nodes.infos), np.int64, len(nodes))

    def normalize(self, state: CycleState, pod: Pod, nodes: NodesView, scores: IntColumn) -> IntColumn:
        """Bring the feasible nodes' scores to 0..100; the default leaves them as they are."""
        del state, pod, nodes
        return scores


class ReservePlugin(Plugin):
    """Is told when a pod takes its place in memory, before it is bound, and when it gives the place back."""

    @abstractmethod
    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Take what the pod needs; a rejection sends the pod back to the queue."""

    @abstractmethod
    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Give back, in reverse order of ``reserve``; must work twice, and even if ``reserve`` was not reached."""


class PermitPlugin(Plugin):
    """May hold a pod that has its node back until something else has happened."""

    @abstractmethod
    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status | None, float]:
        """Return None to let the pod go on, a rejection, or ``Status.wait()`` with the longest wait in seconds."""


class PreBindPlugin(Plugin):
    """Does what must be done before the binding is written."""

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Say quickly whether ``pre_bind`` has work to do: Skip if not. Must not do the work."""
        del state, pod, node_name
        return None

    @abstractmethod
    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | Awaitable[Status | None] | None:
        """Do the work; may be ``async def``."""


class BindPlugin(Plugin):
    """Writes the decision down."""

    @abstractmethod
    def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | Awaitable[Status | None] | None:
        """Bind the pod, or answer Skip to leave it to the next plugin; may be ``async def``."""


class PostBindPlugin(Plugin):
    """Is told that a pod was bound."""

    @abstractmethod
    def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> Awaitable[None] | None:
        """Tidy up; may be ``async def``."""


def default_normalize(scores: IntColumn, *, reverse: bool = False) -> IntColumn:
    """Scale so that the highest score becomes 100; with ``reverse`` the highest becomes 0.

    Source: ``helper.DefaultNormalizeScore``; integer division, operands non-negative.
    """
    highest = int(scores.max()) if len(scores) else 0
    if highest <= 0:
        return np.full_like(scores, MAX_NODE_SCORE) if reverse else scores
    scaled = scores * MAX_NODE_SCORE // highest
    return MAX_NODE_SCORE - scaled if reverse else scaled
