"""What the mutations put in the place of the product's functions, and where."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from scheduler.app.comparing import Comparing
from scheduler.app.confirming import Confirming
from scheduler.app.taking_over import TakingOver
from scheduler.binding import bind_call, evict_call
from scheduler.binding.bind_call import BindCall
from scheduler.binding.extender_bind import ExtenderBinding
from scheduler.binding.outcome import BindAttempt, Settled
from scheduler.binding.status_writer import StatusWriter
from scheduler.intake.nodes import NodeIntake
from scheduler.intake.pods import PodIntake
from scheduler.kube.election import Election
from scheduler.kube.framing import LineSplitter
from scheduler.kube.known import Known
from scheduler.kube.lease import LeaderElector
from scheduler.kube.paths import pod_path
from scheduler.kube.reflector import Reflector
from scheduler.kube.transport import raise_for_status
from scheduler.kube.writes import WRITE_TIMEOUT_S, WriteResult
from scheduler.model.delta import Added
from scheduler.plugins.volume_binding.prebind import PreBind
from scheduler.state.cache.cache import Cache
from scheduler.state.outcome import BindOutcome
from scheduler.state.queue.queue import SchedulingQueue
from tests.simulation.plan import LOST_LINE

__all__ = ["MUTATIONS", "Mutation"]


@dataclass(frozen=True, slots=True)
class Mutation:
    """One way to break the product.

    Attributes:
        name: in words: what is wrong.
        owner: class or module; ``attribute``: its function; ``broken``: what to put there instead.
        needs: kind of a deed or fault without which it cannot show.
        unrepaired: binds that the server does not list are not decided anew either, which would repair it.
    """

    name: str
    owner: Any
    attribute: str
    broken: Any
    needs: str = ""
    unrepaired: bool = False

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Break it for a while."""
        with ExitStack() as undone:
            undone.enter_context(_replaced(self.owner, self.attribute, self.broken))
            if self.unrepaired:
                undone.enter_context(_replaced(Confirming, "_decide_anew_if_unbound", _nothing))
            yield

    @property
    def where(self) -> str:
        """Name of what is broken."""
        return f"{self.owner.__name__.rpartition('.')[2]}.{self.attribute}"


@contextmanager
def _replaced(owner: Any, attribute: str, broken: Any) -> Iterator[None]:
    sound = owner.__dict__[attribute]
    setattr(owner, attribute, broken)
    try:
        yield
    finally:
        setattr(owner, attribute, sound)


def _nothing(*_args: Any, **_named: Any) -> None:
    """Do nothing."""


async def _nothing_later(*_args: Any, **_named: Any) -> None:
    """Do nothing."""


def _at_once(self, info, label, *, is_own_update):
    return self._to_active(info, label)


def _yes(*_args: Any, **_named: Any) -> bool:
    return True


# --- the fate of a binding -------------------------------------------------------------------------------------------


def _taken_for_failure(self: BindAttempt, now_s: float) -> Settled:
    return self._settle(BindOutcome.UNREACHABLE, "taken for a failure")


def _taken_for_success(self: BindAttempt, now_s: float) -> Settled:
    return self._settle(BindOutcome.BOUND)


async def _bind_by_name(transport: Any, pod: Any, node_name: str, *, timeout_s: float = WRITE_TIMEOUT_S) -> None:
    body = b'{"metadata":{"name":"%s"},"target":{"kind":"Node","name":"%s"}}' % (pod.name.encode(), node_name.encode())
    path = pod_path(pod.namespace, pod.name, "/binding")
    raise_for_status(await transport.request("POST", path, body=body, timeout_s=timeout_s))


async def _delete_by_name(transport: Any, pod: Any, *, timeout_s: float = WRITE_TIMEOUT_S) -> WriteResult:
    response = await transport.request("DELETE", pod_path(pod.namespace, pod.name), timeout_s=timeout_s)
    return WriteResult.GONE if response.status == 404 else WriteResult.DONE


def _expires(self: Cache, pod: Any, now_s: float = 0.0) -> None:
    """Give the place back as soon as the server has answered, whatever the watch has shown."""
    known = self._pods.get(pod.uid)
    if known is not None and self.is_assumed(pod.uid):
        self._take_out(pod.uid, known)


async def _believe_extender(self: Any, extender: Any, pod: Any, node_name: str, error: Any) -> None:
    """Take whatever an extender says, and whatever it does not say, for a success."""


async def _send_at_once(self: Any, uid: str) -> None:
    self.withdraw(uid)


# --- what the watches say --------------------------------------------------------------------------------------------


def _nothing_is_gone(self: Known) -> int:
    self._listed = None
    return 0


def _same_name_same_object(self: Known, key: str, old: Any, obj: Any) -> bool:
    self._objects[key] = obj
    return False


def _only_the_newest(self: PodIntake, old: Any, new: Any) -> None:
    """Miss that a pod has got its node."""
    if bool(old.node_name) == bool(new.node_name):
        _POD_CHANGED(self, old, new)


def _terminating_takes_no_room(self: PodIntake, old: Any, new: Any) -> None:
    _POD_CHANGED(self, old, new)
    if new.node_name and new.is_terminating and not old.is_terminating:
        self._cache.remove_pod(new)


def _pods_go_with_their_node(self: Cache, name: str) -> None:
    for pod in list(self._nodes[name].pods):
        self.remove_pod(pod)
    _REMOVE_NODE(self, name)


def _whole_chunks(self: LineSplitter, chunk: bytes) -> list[bytes]:
    return [line for line in chunk.split(b"\n")[:-1] if line]


def _wait_for_ever(self: Reflector, silence: Any) -> None:
    silence.reschedule(None)


def _added_again(self: Known, obj: Any) -> bool:
    self._objects[obj.key] = obj
    self._emit(Added(obj))
    return True


# --- leading ---------------------------------------------------------------------------------------------------------


def _last_forever(self: Election, now_s: float) -> bool:
    return bool(self.observed.holder) and not self.is_leader


def _no(*_args: Any, **_named: Any) -> bool:
    return False


async def _compares_and_breaks(self: Comparing, *args: Any) -> None:
    await _COMPARE(self, *args)
    raise ValueError("a bug after all is done")


_POD_CHANGED = PodIntake.changed
_REMOVE_NODE = Cache.remove_node
_COMPARE = Comparing.compare_with_server

MUTATIONS = (
    Mutation("a pod whose binding failed is not forgotten", Cache, "forget_pod", _nothing),
    Mutation("a decision takes no room until it is seen", Cache, "assume_pod", _nothing),
    Mutation("an assumed pod expires", Cache, "finish_binding", _expires, "late"),
    Mutation(
        "an unknown outcome is taken for a failure", BindAttempt, "_become_unknown", _taken_for_failure, "lost_answer"
    ),
    Mutation(
        "an unknown outcome is taken for a success", BindAttempt, "_become_unknown", _taken_for_success, unrepaired=True
    ),
    Mutation("a conflict is taken for a success", BindAttempt, "_read_unbound", _taken_for_success, unrepaired=True),
    Mutation("a bind is sent once and never read back", BindCall, "_read", _nothing_later),
    Mutation("a binding does not name the pod's UID", bind_call, "bind", _bind_by_name, "replace_pod"),
    Mutation("a victim is deleted by its name alone", evict_call, "delete_pod", _delete_by_name, "create_urgent_pod"),
    Mutation(
        "what an extender says of a binding is believed",
        ExtenderBinding,
        "_settle",
        _believe_extender,
        "extender",
        unrepaired=True,
    ),
    Mutation("a condition of the past overtakes the binding", StatusWriter, "fall_silent", _send_at_once),
    Mutation("nobody is told why a pod waits", StatusWriter, "put", _nothing),
    Mutation("the lease is not looked at before a write", LeaderElector, "may_write", _yes),
    Mutation("another's lease never runs out", Election, "_is_reserved", _last_forever),
    Mutation("another's lease is taken at once", Election, "_is_reserved", _no),
    Mutation("a new leader does not list anew", TakingOver, "see_all", _nothing_later, "stop_leader"),
    Mutation("deletions missed by a watch are not made up", Known, "finish_list", _nothing_is_gone),
    Mutation("a successor under the same name is not noticed", Known, "_replace", _same_name_same_object, "merged"),
    Mutation("an event is applied twice", Known, "put", _added_again),
    Mutation("an expired version is not listed anew", Reflector, "_need_list", _nothing),
    Mutation("a silent watch is waited for for ever", Reflector, "_expect_more", _wait_for_ever, "blackhole"),
    Mutation("what a watch has lost is not looked for", Comparing, "compare_with_server", _nothing_later, LOST_LINE),
    Mutation("a line in two pieces is lost", LineSplitter, "feed", _whole_chunks, "pieces"),
    Mutation("a deleted pod stays in the cache", Cache, "remove_pod", _nothing),
    Mutation(
        "a pod that is being deleted takes no room",
        PodIntake,
        "changed",
        _terminating_takes_no_room,
        "create_urgent_pod",
    ),
    Mutation("a pod that others bound is not noticed", PodIntake, "changed", _only_the_newest),
    Mutation("a node's change is not noticed", NodeIntake, "changed", _nothing),
    Mutation(
        "a bug does no harm that can be seen, and is only logged",
        Comparing,
        "compare_with_server",
        _compares_and_breaks,
    ),
    Mutation("a node that goes away is not noticed", NodeIntake, "removed", _nothing, "delete_node"),
    Mutation(
        "a node that goes away takes its pods along", Cache, "remove_node", _pods_go_with_their_node, "delete_node"
    ),
    Mutation("a failed pod does not come back", SchedulingQueue, "add_unschedulable_if_not_present", _yes),
    Mutation("events move no pod", SchedulingQueue, "move_all_to_active_or_backoff_queue", _nothing),
    Mutation("back-off never ends", SchedulingQueue, "_flush_backoff", _nothing),
    Mutation("there is no back-off", SchedulingQueue, "_to_backoff", _at_once),
    Mutation("a pod that is deleted while it waits stays in the queue", SchedulingQueue, "delete", _nothing),
    Mutation("a pod does not wait for its volumes", PreBind, "_wait", _nothing_later, "create_volume_pod"),
)
"""Each is one function of the product that is replaced."""
