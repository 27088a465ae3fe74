"""Extender: the decision side of the HTTP extender protocol.

An extender is a web service beside the plugins that filters, ranks, binds, or has a say in preemption. This module
decides whom to ask, shapes the questions and reads the answers; the HTTP call itself is handed in (``ExtenderCall``),
with its deadline and TLS; how answers are read: ``extender_wire``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import msgspec

from scheduler.api import ExtenderError, NodesView, NodeView, Pod, Victims
from scheduler.config.types import Extender as ExtenderConfiguration
from scheduler.framework.extender_wire import (
    BindAnswer,
    FilterAnswer,
    MetaVictims,
    PreemptAnswer,
    Priority,
    read_answer,
)
from scheduler.model.kinds import KINDS
from scheduler.model.meta import KubeObject

__all__ = [
    "MAX_EXTENDER_PRIORITY",
    "Extender",
    "ExtenderCall",
    "ExtenderError",
    "ExtenderVerdict",
    "Victims",
    "in_calling_order",
]

MAX_EXTENDER_PRIORITY = 10
"""Highest score that an extender gives; scaled to the scheduler's 100."""

T = TypeVar("T")


class ExtenderCall(Protocol):
    """POSTs ``body`` to ``url`` and returns the body of a 200 answer."""

    def __call__(self, url: str, verb: str, body: bytes, /) -> bytes | bytearray:
        """Make the call.

        Raises:
            ExtenderError: no answer in time, or not 200 ("failed VERB with extender at URL U, code N").
        """


@dataclass(frozen=True, slots=True)
class ExtenderVerdict:
    """The answer to a filter question.

    Attributes:
        kept: names of the nodes that passed, in the extender's order.
        failed: node -> why not.
        unresolvable: node -> why not, and evicting pods would not help.
    """

    kept: tuple[str, ...]
    failed: Mapping[str, str]
    unresolvable: Mapping[str, str]


class Extender:
    """One configured extender.

    Attributes:
        name: its URL prefix, which identifies it in messages.
        is_ignorable: its errors do not fail an attempt.
        is_filter, is_prioritizer, is_binder, supports_preemption: which verbs it has.
    """

    def __init__(self, configuration: ExtenderConfiguration, call: ExtenderCall) -> None:
        self._configuration = configuration
        self._call = call
        self._managed = frozenset(resource.name for resource in configuration.managed_resources)
        self.name = configuration.url_prefix
        self.is_ignorable = configuration.ignorable
        self.is_filter = bool(configuration.filter_verb)
        self.is_prioritizer = bool(configuration.prioritize_verb)
        self.is_binder = bool(configuration.bind_verb)
        self.supports_preemption = bool(configuration.preempt_verb)

    def is_interested(self, pod: Pod) -> bool:
        """Say whether the pod is this extender's business: it names a managed resource, or there are none."""
        if not self._managed:
            return True
        return any(
            not self._managed.isdisjoint(container.resources.requests)
            or not self._managed.isdisjoint(container.resources.limits)
            for container in (*pod.spec.containers, *pod.spec.init_containers)
        )

    def filter(self, pod: Pod, nodes: NodesView) -> ExtenderVerdict:
        """Ask which of the nodes can run the pod; an extender without the verb keeps all.

        Raises:
            ExtenderError: the call failed, the extender reports an error, or it names nodes it was not asked about.
        """
        if not self.is_filter:
            return ExtenderVerdict(tuple(nodes.names), {}, {})
        answer = self._post(self._configuration.filter_verb, self._question(pod, nodes), FilterAnswer)
        if answer.error:
            raise ExtenderError(answer.error)
        kept = self._kept(answer)
        for name in kept:
            if nodes.row(name) is None:
                # differs: upstream takes whole node objects as they come; a node that nobody knows cannot be bound to.
                raise ExtenderError(
                    f'extender "{self.name}" claims a filtered node "{name}" which is not found in the input node list'
                )
        return ExtenderVerdict(kept, answer.failed_nodes or {}, answer.failed_and_unresolvable_nodes or {})

    def _kept(self, answer: FilterAnswer) -> tuple[str, ...]:
        """Return the names of the nodes that are left, each once (a node counts once however often it is named)."""
        if self._configuration.node_cache_capable and answer.node_names is not None:
            return tuple(dict.fromkeys(answer.node_names))
        items = (answer.nodes.items or []) if answer.nodes is not None else []
        return tuple(dict.fromkeys(item.metadata.name for item in items))

    def prioritize(self, pod: Pod, nodes: NodesView) -> tuple[dict[str, int], int]:
        """Ask for scores; returns node -> 0..10 and the weight (0 for an extender without the verb).

        Raises:
            ExtenderError: the call failed.
        """
        if not self.is_prioritizer:
            return dict.fromkeys(nodes.names, 0), 0
        entries = self._post(self._configuration.prioritize_verb, self._question(pod, nodes), list[Priority])
        return {entry.host: entry.score for entry in entries}, self._configuration.weight

    def bind(self, pod: Pod, node_name: str) -> None:
        """Have the extender bind the pod.

        Raises:
            ExtenderError: the call failed, or the extender did not bind the pod.
        """
        meta = pod.metadata
        question = {"PodName": meta.name, "PodNamespace": meta.namespace, "PodUID": meta.uid, "Node": node_name}
        answer = self._post(self._configuration.bind_verb, question, BindAnswer)
        if answer.error:
            raise ExtenderError(answer.error)

    def preempt(self, pod: Pod, victims: Mapping[str, Victims], nodes: NodesView) -> dict[str, Victims]:
        """Ask which of the candidate nodes (and victims there) the extender agrees to.

        Raises:
            ExtenderError: no verb, the call failed, or it names a node or pod that is not there.
        """
        if not self.supports_preemption:
            raise ExtenderError(f"preempt verb is not defined for extender {self.name} but run into ProcessPreemption")
        body: dict[str, Any] = {"Pod": _shown(pod), "NodeNameToVictims": None, "NodeNameToMetaVictims": None}
        if self._configuration.node_cache_capable:
            body["NodeNameToMetaVictims"] = {name: _meta(on_node) for name, on_node in victims.items()}
        else:
            body["NodeNameToVictims"] = {
                name: {"Pods": [_shown(p) for p in on_node.pods], "NumPDBViolations": on_node.num_pdb_violations}
                for name, on_node in victims.items()
            }
        answer = self._post(self._configuration.preempt_verb, body, PreemptAnswer)
        agreed = answer.node_name_to_meta_victims or {}
        return {name: self._victims(name, meta, nodes) for name, meta in agreed.items()}

    def _victims(self, node_name: str, meta: MetaVictims, nodes: NodesView) -> Victims:
        row = nodes.row(node_name)
        if row is None:
            raise ExtenderError(f'nodeinfo not found for node name "{node_name}"')
        node = nodes.infos[row]
        pods = tuple(self._pod_on(node, victim.uid) for victim in meta.pods or ())
        return Victims(pods, meta.num_pdb_violations)

    def _pod_on(self, node: NodeView, uid: str) -> Pod:
        for pod in node.pods:
            if pod.metadata.uid == uid:
                return pod
        raise ExtenderError(
            f"extender: {self.name} claims to preempt pod (UID: {uid}) on node: {node.name}, "
            "but the pod is not found on that node"
        )

    def _question(self, pod: Pod, nodes: NodesView) -> dict[str, Any]:
        if self._configuration.node_cache_capable:
            return {"Pod": _shown(pod), "Nodes": None, "NodeNames": list(nodes.names)}
        return {"Pod": _shown(pod), "Nodes": {"items": [_shown(info.node) for info in nodes.infos]}, "NodeNames": None}

    def _url(self, verb: str) -> str:
        return f"{self.name.rstrip('/')}/{verb}"

    def _post(self, verb: str, question: dict[str, Any], wanted: type[T]) -> T:
        body = self._call(self._url(verb), verb, msgspec.json.encode(question))
        try:
            return read_answer(body, wanted)
        except msgspec.ValidationError as error:
            raise ExtenderError(f'extender "{self.name}" answered nonsense: {error}') from error
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise ExtenderError(f'extender "{self.name}" answered no JSON: {error}') from error


def in_calling_order(extenders: Iterable[Extender]) -> list[Extender]:
    """Return the extenders as they are asked: ignorable ones last, else in the order of the configuration."""
    return sorted(extenders, key=lambda extender: extender.is_ignorable)


def _meta(victims: Victims) -> dict[str, Any]:
    pods: Sequence[dict[str, str]] = [{"UID": pod.metadata.uid} for pod in victims.pods]
    return {"Pods": pods, "NumPDBViolations": victims.num_pdb_violations}


def _shown(obj: KubeObject) -> Any:
    """Return an object as extenders get it: as the API server sent it if that was kept, else what we know of it."""
    if obj.original is not None:
        return msgspec.Raw(obj.original)
    info = KINDS[type(obj)]
    return {"apiVersion": info.api_version, "kind": info.kind, **msgspec.to_builtins(obj)}
