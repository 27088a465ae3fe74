"""Shield: what stands between the framework and a third party's plugin, so that its faults are its own.

Every call goes through ``ask``. An exception or a bad answer is counted, logged and booked in the plugin's quarantine;
then, as the profile's policy has it, the attempt fails with a status that names the plugin (FailPod), or goes on as if
the plugin had no say (SkipPlugin). A plugin that was skipped once is skipped for the rest of the attempt, as its state
may be half made. While it is in quarantine it is not called.

In-tree plugins have no shield and pay nothing for this.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

from scheduler.api import CycleState, Handle, Plugin, Pod, StateKey
from scheduler.config.options import SKIP_PLUGIN, PluginFaults
from scheduler.framework.guard import Guard, PluginFault
from scheduler.framework.quarantine import Quarantine

__all__ = ["Question", "Shield"]

_SKIPPED: Final[StateKey[set[str]]] = StateKey("PluginsSkippedForTheirFaults")


class Question(NamedTuple):
    """What is asked of a plugin.

    Attributes:
        point: the extension point.
        neutral: returns the answer of a plugin that has no say, from the arguments of the call.
        wanted: returns what should stand in place of an answer, or None if it is good; from answer and arguments.
    """

    point: str
    neutral: Callable[..., Any]
    wanted: Callable[..., str | None]


class Shield:
    """The shield of one plugin of one profile.

    Attributes:
        skips: whether the policy is to go on without the plugin.
        quarantine: the plugin's record.
    """

    __slots__ = ("_guard", "_handle", "_plugin", "_pod", "quarantine", "skips")

    def __init__(self, plugin: Plugin, settings: PluginFaults, guard: Guard, handle: Handle) -> None:
        self._plugin = plugin.name
        self._guard = guard
        self._handle = handle
        self._pod: Pod | None = None
        self.skips = settings.policy == SKIP_PLUGIN
        self.quarantine = Quarantine(settings, handle.clock)
        guard.watch(self._plugin, None if settings.budget_ms is None else settings.budget_ms / 1000, self._overran)

    def ask(self, question: Question, function: Callable[..., Any], state: CycleState, pod: Pod, *args: Any) -> Any:
        """Return ``function(state, pod, *args)``, or the neutral answer if the plugin is skipped.

        Raises:
            PluginFault: it failed or is in quarantine, and the policy is to fail the pod.
        """
        if self._is_left_alone(question.point, state):
            return question.neutral(state, pod, *args)
        self._pod = pod
        try:
            answer = function(state, pod, *args)
            wanted = question.wanted(answer, state, pod, *args)
        except Exception as error:  # noqa: BLE001  the plugin's own business
            self._book(question.point, pod, self._raised(question.point, error), state)
            return question.neutral(state, pod, *args)
        if wanted is not None:
            self._book(question.point, pod, self._guard.bad_answer(self._plugin, question.point, answer, wanted), state)
            return question.neutral(state, pod, *args)
        return answer

    def ask_about(self, question: Question, function: Callable[[Pod], Any], pod: Pod) -> Any:
        """Return ``function(pod)`` outside a scheduling cycle, or the neutral answer if the plugin is skipped.

        Raises:
            PluginFault: it failed or is in quarantine, and the policy is to fail the pod.
        """
        return self.ask(question, lambda _, pod: function(pod), CycleState(), pod)

    async def ask_async(
        self, question: Question, function: Callable[..., Awaitable[Any]], state: CycleState, pod: Pod, *args: Any
    ) -> Any:
        """Return ``await function(state, pod, *args)``, or the neutral answer if the plugin is skipped.

        Raises:
            PluginFault: it failed or is in quarantine, and the policy is to fail the pod.
        """
        if self._is_left_alone(question.point, state):
            return question.neutral(state, pod, *args)
        try:
            answer = await function(state, pod, *args)
            wanted = question.wanted(answer, state, pod, *args)
        except Exception as error:  # noqa: BLE001  the plugin's own business
            self._book(question.point, pod, self._raised(question.point, error), state)
            return question.neutral(state, pod, *args)
        if wanted is not None:
            self._book(question.point, pod, self._guard.bad_answer(self._plugin, question.point, answer, wanted), state)
            return question.neutral(state, pod, *args)
        return answer

    def was_skipped(self, state: CycleState) -> bool:
        """Say whether the plugin has been skipped in this attempt."""
        skipped = state.get(_SKIPPED)
        return skipped is not None and self._plugin in skipped

    # --- inside ------------------------------------------------------------------------------------------------------

    def _is_left_alone(self, point: str, state: CycleState) -> bool:
        if self.skips and self.was_skipped(state):
            return True
        if not self.quarantine.is_out:
            return False
        if not self.skips:
            raise PluginFault(self._plugin, point, self.quarantine.reason)
        self._skip(state)
        return True

    def _skip(self, state: CycleState) -> None:
        skipped = state.get(_SKIPPED)
        if skipped is None:
            skipped = set()
            state.write(_SKIPPED, skipped)
        skipped.add(self._plugin)
        # What it has said of some nodes so far does not count either (see FilterPoint and ScorePoint).
        state.skip_filter_plugins.add(self._plugin)
        state.skip_score_plugins.add(self._plugin)

    def _raised(self, point: str, error: Exception) -> PluginFault:
        fault = self._guard.raised(self._plugin, point, error)
        fault.__cause__ = error
        return fault

    def _book(self, point: str, pod: Pod, fault: PluginFault, state: CycleState) -> None:
        # Plain functions of the binding cycle run on threads of their own.
        self._handle.call_soon_threadsafe(lambda: self._note(pod, f"{fault} at {point}", is_skipped=self.skips))
        if not self.skips:
            raise fault
        self._skip(state)

    def _note(self, pod: Pod, what: str, *, is_skipped: bool) -> None:
        if is_skipped:
            self._tell(pod, "PluginSkipped", f'went on without plugin "{self._plugin}": {what}')
        if self.quarantine.note(pod.uid, what):
            self._tell(pod, "PluginQuarantined", f'plugin "{self._plugin}" is {self.quarantine.reason}')

    def _overran(self, point: str, elapsed_s: float, is_told: bool) -> None:
        pod = self._pod
        if pod is None:
            return
        what = f"took {elapsed_s:.3f} s at {point}"
        if is_told:
            self._tell(pod, "PluginOverran", f'plugin "{self._plugin}" {what}, which is over its budget')
        self._note(pod, what, is_skipped=False)

    def _tell(self, pod: Pod, reason: str, note: str) -> None:
        self._handle.emit_event(pod, kind="Warning", reason=reason, action="Scheduling", note=note)
