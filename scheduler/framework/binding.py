"""PreBind (with pre-flight), Bind and PostBind: the plugins of the binding cycle.

They run beside the scheduling of other pods: ``async def`` methods on the loop, plain ones through ``run_blocking``
(a small pool in the daemon, inline in tests and simulations). Nothing here touches cache or queue.
Source: ``RunPreBindPreFlights``, ``RunPreBindPlugins``, ``RunBindPlugins``, ``RunPostBindPlugins``.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, cast

from scheduler.api import BindPlugin, Code, CycleState, Pod, PostBindPlugin, PreBindPlugin, Status
from scheduler.framework.calls import Calls, failed
from scheduler.framework.guard import PluginFault, code_name
from scheduler.framework.points import BIND, POST_BIND, PRE_BIND, PRE_BIND_PRE_FLIGHT

__all__ = ["BindingPoints", "RunBlocking", "is_async", "run_inline"]

_PRE_FLIGHT_WORDING = 'running PreBindPreFlight "%s"'
_WORDINGS = {PRE_BIND: 'running PreBind plugin "%s"', BIND: 'running Bind plugin "%s"'}


class RunBlocking(Protocol):
    """Runs a plain function where it may block, e.g. in a thread pool."""

    def __call__(self, function: Callable[[], Any], /) -> Awaitable[Any]: ...


async def run_inline(function: Callable[[], Any], /) -> Any:
    """Run the function at once, on the caller's thread."""
    return function()


_ASYNC: dict[object, bool] = {}
"""Which functions are asynchronous; there are as many as plugin classes."""

_Method = Callable[[CycleState, Pod, str], object]


class BindingPoints:
    """The PreBind, Bind and PostBind plugins of one profile, in order."""

    __slots__ = ("_calls", "_run_blocking", "bind", "post_bind", "pre_bind")

    def __init__(
        self,
        pre_bind: Sequence[PreBindPlugin],
        bind: Sequence[BindPlugin],
        post_bind: Sequence[PostBindPlugin],
        calls: Calls,
        run_blocking: RunBlocking = run_inline,
    ) -> None:
        self.pre_bind = tuple(pre_bind)
        self.bind = tuple(bind)
        self.post_bind = tuple(post_bind)
        self._calls = calls
        self._run_blocking = run_blocking

    def run_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Ask each PreBind plugin whether it has work to do; fills ``state.skip_pre_bind_plugins``.

        Returns:
            None if at least one has, Skip if none has, else an Error. A rejection is not allowed here.
        """
        started_s = self._calls.perf_counter()
        try:
            status = self._pre_flight(state, pod, node_name)
        except PluginFault as fault:
            status = fault.status(_PRE_FLIGHT_WORDING)
        self._calls.observe(PRE_BIND_PRE_FLIGHT, status, started_s)
        return status

    def _pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        guard, point = self._calls.guard, PRE_BIND_PRE_FLIGHT
        skipped: set[str] = set()
        for plugin in self.pre_bind:
            name = plugin.name
            answer = guard.call(name, point, plugin.pre_bind_pre_flight, state, pod, node_name)
            status = guard.status(name, point, answer)
            if state.record_plugin_metrics:
                self._calls.metrics.plugin_duration(point, name, code_name(status), guard.last_s)
            if status is None:
                continue
            if status.code is Code.ERROR:
                return failed(_PRE_FLIGHT_WORDING % name, name, status)
            if status.code is not Code.SKIP:
                text = (
                    f'PreBindPreFlight {name} returned "{status.code}", which is unsupported. '
                    "It is supposed to return Success, Skip, or Error status"
                )
                return Status.error(text).by(name)
            skipped.add(name)
        state.skip_pre_bind_plugins = skipped
        return Status.skip() if len(skipped) == len(self.pre_bind) else None

    async def run_pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Run the PreBind plugins that have work to do, up to the first that objects."""
        started_s = self._calls.perf_counter()
        status: Status | None = None
        for plugin in self.pre_bind:
            if plugin.name in state.skip_pre_bind_plugins:
                continue
            status = await self._ask(plugin.name, PRE_BIND, plugin.pre_bind, state, pod, node_name)
            if status is not None:
                break
        self._calls.observe(PRE_BIND, status, started_s)
        return status

    def skip_pre_bind(self) -> None:
        """Pass PreBind because nobody has work to do; parity: it is timed all the same."""
        self._calls.observe(PRE_BIND, None, self._calls.perf_counter())

    async def run_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Ask the Bind plugins in order until one does not answer Skip; Skip if all do."""
        started_s = self._calls.perf_counter()
        status: Status | None = Status.skip()
        for plugin in self.bind:
            status = await self._ask(plugin.name, BIND, plugin.bind, state, pod, node_name)
            if status is None or status.code is not Code.SKIP:
                break
        self._calls.observe(BIND, status, started_s)
        return status

    async def run_post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Tell all PostBind plugins; one that raises does not keep the others from being told."""
        started_s = self._calls.perf_counter()
        for plugin in self.post_bind:
            await self._tell(plugin.name, plugin.post_bind, state, pod, node_name)
        self._calls.observe(POST_BIND, None, started_s)

    async def _ask(self, name: str, point: str, method: _Method, state: CycleState, *where: Any) -> Status | None:
        """Call one plugin; returns None, a rejection, an Error with the point's wording, or (from Bind) Skip."""
        started_s = self._calls.perf_counter()
        wording = _WORDINGS[point]
        guard = self._calls.guard
        try:
            answer = await guard.call_async(name, point, lambda: self._call(method, state, *where))
            status = guard.status(name, point, answer)
        except PluginFault as fault:
            return fault.status(wording)
        if state.record_plugin_metrics:
            duration_s = self._calls.perf_counter() - started_s
            self._calls.metrics.plugin_duration(point, name, code_name(status), duration_s)
        if status is None or (status.code is Code.SKIP and point == BIND):
            return status
        return status.by(name) if status.is_rejected else failed(wording % name, name, status)

    async def _tell(self, name: str, method: _Method, state: CycleState, pod: Pod, node_name: str) -> None:
        started_s = self._calls.perf_counter()
        try:
            await self._calls.guard.call_async(name, POST_BIND, lambda: self._call(method, state, pod, node_name))
        except PluginFault:
            return  # counted and logged by the guard; the pod is bound all the same
        if state.record_plugin_metrics:
            self._calls.metrics.plugin_duration(POST_BIND, name, "Success", self._calls.perf_counter() - started_s)

    async def _call(self, method: _Method, *args: Any) -> object:
        if is_async(method):
            return await cast("Awaitable[object]", method(*args))
        answer = await self._run_blocking(lambda: method(*args))
        # A plain function may hand back an awaitable, such as the result of Handle.bind.
        return await answer if inspect.isawaitable(answer) else answer


def is_async(method: _Method) -> bool:
    """Say whether the method may be called on the loop.

    So are ``async def`` methods, and plain ones that are declared to return an Awaitable.
    """
    function = getattr(method, "__func__", method)
    known = _ASYNC.get(function)
    if known is None:
        declared = str(getattr(function, "__annotations__", {}).get("return", ""))
        declared = declared.removeprefix("typing.").removeprefix("collections.abc.")
        known = inspect.iscoroutinefunction(function) or declared.startswith(("Awaitable[", "Coroutine["))
        _ASYNC[function] = known
    return known
