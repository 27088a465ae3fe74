"""Shielded plugins: a third party's plugin as the framework meets it.

``around`` makes a class with the plugin's extension points and those optional methods that the plugin has overridden,
because the framework asks classes what they can do. Its methods are the plugin's, asked through the shield. QueueSort,
Unreserve, PostBind and Close go straight through: pods must have an order, and what was taken must be given back.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from numpy.typing import NDArray

from scheduler.api import CycleState, Handle, NodesView, Plugin, Pod, ScorePlugin, Status, Verdicts
from scheduler.config.options import PluginFaults
from scheduler.framework.answers import EXPLANATION, QUESTIONS, SIGNATURE, scoring
from scheduler.framework.binding import is_async
from scheduler.framework.guard import Guard
from scheduler.framework.metrics import FrameworkMetrics
from scheduler.framework.points import POINTS
from scheduler.framework.shield import Question, Shield

__all__ = ["Shields", "around"]

_STRAIGHT = ("less", "sort_key", "unreserve", "post_bind", "events", "close")
_OPTIONAL = frozenset({"add_pod", "remove_pod", "filter_all", "score_all", "normalize"})
_MAY_WAIT = frozenset({"pre_bind", "bind"})


class Shields:
    """Puts the shields of one profile around the plugins of third parties."""

    def __init__(
        self, profile: str, handles: Mapping[str, Handle], settings: PluginFaults, metrics: FrameworkMetrics
    ) -> None:
        """Make them.

        Args:
            profile: schedulerName.
            handles: of the plugins that get a shield, by name.
            settings: of the profile.
            metrics: shows who is in quarantine.
        """
        self._profile = profile
        self._handles = handles
        self._settings = settings
        self._metrics = metrics

    def __call__(self, plugins: Mapping[str, Plugin], guard: Guard) -> dict[str, Plugin]:
        """Return the plugins, those of third parties behind shields."""
        return {name: self._shielded(plugin, guard) for name, plugin in plugins.items()}

    def _shielded(self, plugin: Plugin, guard: Guard) -> Plugin:
        handle = self._handles.get(plugin.name)
        if handle is None:
            return plugin
        shield = Shield(plugin, self._settings, guard, handle)
        self._metrics.plugin_quarantine(self._profile, plugin.name, shield.quarantine.shows_out)
        return around(plugin, shield)


def around(plugin: Plugin, shield: Shield) -> Plugin:
    """Return the plugin behind its shield."""
    bases = tuple(point.base for point in POINTS.values() if isinstance(plugin, point.base))
    body: dict[str, Any] = {name: staticmethod(getattr(plugin, name)) for name in _STRAIGHT if hasattr(plugin, name)}
    for base in bases:
        for method, question in QUESTIONS.get(base, {}).items():
            if method not in _OPTIONAL or _overrides(plugin, base, method):
                body[method] = _method(plugin, method, question)
    # Where it may be skipped, no other pod may share what was worked out with or without it.
    if not shield.skips and _overrides(plugin, Plugin, "node_signature"):
        body |= {"node_signature": _node_signature, "reads_pods": plugin.reads_pods}
    body |= {"name": plugin.name, "api_version": plugin.api_version, "Args": plugin.Args}
    made = type(f"Shielded{type(plugin).__name__}", (_Shielded, *bases), body)
    return cast("Plugin", made(plugin, shield))


class _Shielded(Plugin):
    """What the classes made by ``around`` have in common."""

    def __init__(self, inner: Any, shield: Shield) -> None:
        self.inner = inner
        self.shield = shield

    def __getattr__(self, name: str) -> Any:
        """Show the plugin's own attributes."""
        return getattr(self.inner, name)


def _overrides(plugin: Plugin, base: type[Plugin], method: str) -> bool:
    return getattr(type(plugin), method) is not getattr(base, method)


def _method(plugin: Plugin, name: str, question: Question) -> Callable[..., Any]:
    """Return the method that asks the plugin's method of this name through the shield."""
    if name == "pre_enqueue":
        return lambda self, pod: self.shield.ask_about(question, self.inner.pre_enqueue, pod)
    if name == "filter_all":
        return functools.partialmethod(_filter_all, question)  # type: ignore[return-value]
    if name in _MAY_WAIT:
        return _waiting_method(plugin, name, question)
    if isinstance(plugin, ScorePlugin):
        question = scoring(name, question, normalizes=_overrides(plugin, ScorePlugin, "normalize"))

    def ask(self: _Shielded, state: CycleState, pod: Pod, *args: Any) -> Any:
        return self.shield.ask(question, getattr(self.inner, name), state, pod, *args)

    return ask


def _waiting_method(plugin: Plugin, name: str, question: Question) -> Callable[..., Any]:
    async def ask_async(self: _Shielded, state: CycleState, pod: Pod, node_name: str) -> Any:
        return await self.shield.ask_async(question, getattr(self.inner, name), state, pod, node_name)

    def ask(self: _Shielded, state: CycleState, pod: Pod, node_name: str) -> Any:
        unchecked = question._replace(wanted=lambda *_: None)
        answer = self.shield.ask(unchecked, getattr(self.inner, name), state, pod, node_name)

        async def settled(*_: Any) -> Any:
            return await answer if inspect.isawaitable(answer) else answer

        return self.shield.ask_async(question, settled, state, pod, node_name)

    return ask_async if is_async(getattr(plugin, name)) else ask


def _filter_all(self: _Shielded, question: Question, state: CycleState, pod: Pod, nodes: NodesView) -> Verdicts:
    verdicts: Verdicts = self.shield.ask(question, self.inner.filter_all, state, pod, nodes)
    if not self.shield.skips or bool(verdicts.ok.all()):
        return verdicts
    return Verdicts(verdicts.ok, functools.partial(_explain, self, pod, verdicts), errors=verdicts.errors)


def _explain(
    self: _Shielded, pod: Pod, verdicts: Verdicts, rows: NDArray[Any]
) -> Iterable[tuple[Status, NDArray[Any]]]:
    """Return the plugin's reasons, or one of our own if it has none: the nodes have been left out already."""
    reasons = self.shield.ask_about(EXPLANATION, lambda _: list(verdicts.explain(rows)), pod)
    if reasons is None:
        return [(Status.unschedulable(f'node(s) were rejected by plugin "{self.name}"'), rows)]
    return cast("Iterable[tuple[Status, NDArray[Any]]]", reasons)


def _node_signature(self: _Shielded, pod: Pod) -> Any:
    return self.shield.ask_about(SIGNATURE, self.inner.node_signature, pod)
