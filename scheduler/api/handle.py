"""Handle: what a plugin may ask the engine for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from scheduler.api.cycle_state import CycleState
from scheduler.api.measures import PluginMetrics
from scheduler.api.preemption import Eviction, PreemptionExtender
from scheduler.api.status import Status
from scheduler.api.views import NodesView, NodeView
from scheduler.model.meta import KubeObject, PodUid
from scheduler.model.pod import Pod

__all__ = ["Clock", "Handle", "Lister", "Random", "Spare", "WaitingPod"]

K = TypeVar("K", bound=KubeObject)
K_co = TypeVar("K_co", bound=KubeObject, covariant=True)

Spare = Callable[[NodeView, Sequence[Pod]], list[bool] | Status | None]
"""See ``Handle.sparing``."""


class Clock(Protocol):
    """Time as the engine sees it: real in the daemon, virtual in tests and simulations."""

    def now(self) -> float:
        """Return seconds since the Unix epoch; never goes backwards."""


class Random(Protocol):
    """The part of ``random.Random`` that the engine uses."""

    def random(self) -> float:
        """Return a float in [0, 1)."""

    def randrange(self, stop: int, /) -> int:
        """Return an int in [0, stop)."""


class Lister(Protocol[K_co]):
    """Read access to the watched objects of one kind."""

    def get(self, key: str) -> K_co | None:
        """Return the object under ``namespace/name`` (or the bare name of a cluster-scoped kind)."""

    def list(self) -> Iterable[K_co]:
        """Return all objects."""

    @property
    def version(self) -> int:
        """Return a number that grows with every change, for those who keep what they worked out of the objects."""


class WaitingPod(Protocol):
    """A pod that Permit put on hold."""

    @property
    def pod(self) -> Pod:
        """Return the pod."""

    @property
    def pending_plugins(self) -> Sequence[str]:
        """Return the plugins it still waits for."""

    def allow(self, plugin: str) -> None:
        """Let the pod go on as far as ``plugin`` is concerned."""

    def reject(self, plugin: str, message: str) -> None:
        """Send the pod back to the queue."""

    def preempt(self, plugin: str, message: str) -> None:
        """Send the pod back to the queue to be retried after a back-off; it is not called unschedulable."""


class Handle(Protocol):
    """The engine, as a plugin may use it. All methods are for the scheduling thread unless they say otherwise."""

    @property
    def profile_name(self) -> str:
        """Return the schedulerName of the profile the plugin belongs to."""

    @property
    def clock(self) -> Clock:
        """Return the engine's clock."""

    @property
    def random(self) -> Random:
        """Return the engine's source of chance."""

    @property
    def metrics(self) -> PluginMetrics:
        """Return what makes metrics of the plugin's own."""

    def is_enabled(self, feature: str) -> bool:
        """Say whether a feature gate of Kubernetes is on.

        Raises:
            KeyError: no such gate.
        """

    def nodes(self) -> NodesView:
        """Return the snapshot of the running cycle."""

    def lister(self, kind: type[K]) -> Lister[K]:
        """Return the store of a watched kind.

        Raises:
            LookupError: no enabled plugin asked for the kind, or the API server does not serve it.
        """

    def is_placed(self, uid: PodUid) -> bool:
        """Say whether the pod takes room on a node at this moment: bound, or on its way there."""

    def nominated_pods(self, node_name: str) -> Sequence[Pod]:
        """Return the pods nominated to run on the node once others have left it."""

    def clear_nomination(self, pod: Pod) -> None:
        """End the pod's nomination: its status is written, which wakes the pod."""

    def run_filters(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        """Say whether the pod could run on the node, both with and without the pods nominated to it.

        ``node`` may be a changed copy, if ``state`` was cloned and kept in step by ``add_pod`` and ``remove_pod``.
        """

    def sparing(self, state: CycleState, pod: Pod) -> Spare | None:
        """Return the short cut of a dry run, if there is one for this pod.

        ``spare(node, others)`` says which of the ``others`` on the node may stay if room is to be made for the pod, as
        ``FilterPlugin.spare`` does, all plugins considered. None, here or there: the steps have to be gone through.
        """

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeView) -> Status | None:
        """Tell all PreFilter plugins that ``added`` counts as running on ``node``, a copy that has it already."""

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeView) -> Status | None:
        """Tell all PreFilter plugins that ``removed`` counts as gone from ``node``, a copy that lacks it already."""

    def extenders(self) -> Sequence[PreemptionExtender]:
        """Return the configured extenders in calling order."""

    def note_preemption(self) -> None:
        """Count an attempt to make room by preemption."""

    def evict(self, eviction: Eviction) -> None:
        """Have pods removed in the background; returns at once."""

    def waiting_pod(self, uid: PodUid) -> WaitingPod | None:
        """Return a pod on hold in Permit."""

    def waiting_pods(self) -> Iterable[WaitingPod]:
        """Return all pods on hold in Permit."""

    def activate(self, pods: Mapping[str, Pod]) -> None:
        """Move these pods (by ``namespace/name``) from wherever they wait to the active queue."""

    def bind(self, pod: Pod, node_name: str) -> Awaitable[Status | None]:
        """Post the binding to the API server and settle its outcome."""

    def patch(self, obj: K, changes: Mapping[str, Any]) -> Awaitable[K | Status]:
        """Change an object in the API server; returns it as it is then, or an Error in the server's words.

        Only for the binding cycle.

        Args:
            obj: the object to change.
            changes: a JSON merge patch (RFC 7396). With ``metadata.resourceVersion`` in it, the server refuses if the
                object has changed since that version.
        """

    def sleep(self, seconds: float) -> Awaitable[None]:
        """Wait; only for the binding cycle, where others go on meanwhile."""

    def run_in_background(self, function: Callable[[], None], *, every_s: float) -> None:
        """Call ``function`` beside the scheduling of pods, once the plugin was made and every ``every_s`` seconds.

        It runs on a thread of its own, so it may wait for a file or a server (with a time limit). It must not use the
        handle but for ``call_soon_threadsafe`` and metrics; it hands over what it found by setting an attribute of the
        plugin to a new object, which cycles then read. What it raises is logged and counted as a fault. It ends when
        the plugin is closed; a call that is under way then may still come to its end.

        Raises:
            ValueError: the period is shorter than 0.1 s.
        """

    def emit_event(self, regarding: Pod, *, kind: str, reason: str, action: str, note: str) -> None:
        """Record a Kubernetes event about the pod; ``kind`` is Normal or Warning."""

    def call_soon_threadsafe(self, callback: Callable[[], None]) -> None:
        """Run ``callback`` on the scheduling thread; the only method that any thread may call.

        What it raises is logged and counted as a fault.
        """
