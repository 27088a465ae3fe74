"""``pod("web")``: pods for tests, in the words of the manifest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from scheduler.model.pod import Pod
from scheduler.testing.manifests import Builder, resource_list
from scheduler.testing.terms import Manifest, SelectorLike, all_of, selector

__all__ = ["PodBuilder", "pod"]

Quantity = str | int | float
Quantities = Mapping[str, Quantity]


def pod(name: str = "pod") -> PodBuilder:
    """Start a pod in namespace ``default`` with one container that states no requests.

    Nothing is defaulted beyond that: requests do not follow limits, priorities are not resolved.
    """
    return PodBuilder(
        Pod,
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "resourceVersion": "1"},
            "spec": {
                "schedulerName": "default-scheduler",
                "containers": [{"name": "main", "image": "example.com/app"}],
            },
            "status": {"phase": "Pending"},
        },
    )


class PodBuilder(Builder[Pod]):
    """Builds a pod; every method returns a new builder."""

    __slots__ = ()

    def in_ns(self, namespace: str) -> Self:
        """Set the namespace."""
        return self._with(namespace, "metadata", "namespace")

    def requests(self, quantities: Quantities | None = None, /, **named: Quantity) -> Self:
        """Add requests of the first container: ``requests(cpu="2")``, ``requests({"example.com/gpu": 1})``."""
        return self._edit_first("resources", "requests", resource_list(quantities or {}, named))

    def limits(self, quantities: Quantities | None = None, /, **named: Quantity) -> Self:
        """Add limits of the first container."""
        return self._edit_first("resources", "limits", resource_list(quantities or {}, named))

    def image(self, image: str) -> Self:
        """Set the image of the first container."""
        first, *others = self._get("spec", "containers")
        return self._with([{**first, "image": image}, *others], "spec", "containers")

    def host_port(self, port: int, *, protocol: str = "TCP", ip: str = "") -> Self:
        """Add a host port to the first container."""
        entry = _given(containerPort=port, hostPort=port, protocol=protocol, hostIP=ip)
        first, *others = self._get("spec", "containers")
        return self._with([{**first, "ports": [*first.get("ports", ()), entry]}, *others], "spec", "containers")

    def container(self, requests: Quantities | None = None, **fields: Any) -> Self:
        """Add one more container; ``fields`` are further fields of the manifest (``image=…``, ``ports=[…]``)."""
        return self._add_container("containers", requests, fields)

    def init_container(self, requests: Quantities | None = None, **fields: Any) -> Self:
        """Add an init container that runs to completion."""
        return self._add_container("initContainers", requests, fields)

    def sidecar(self, requests: Quantities | None = None, **fields: Any) -> Self:
        """Add a native sidecar: an init container that restarts always."""
        return self._add_container("initContainers", requests, {"restartPolicy": "Always", **fields})

    def overhead(self, quantities: Quantities | None = None, /, **named: Quantity) -> Self:
        """Add to what the pod's sandbox takes."""
        return self._merge(resource_list(quantities or {}, named), "spec", "overhead")

    def pod_requests(self, quantities: Quantities | None = None, /, **named: Quantity) -> Self:
        """Add pod-level requests."""
        return self._merge(resource_list(quantities or {}, named), "spec", "resources", "requests")

    def node_selector(self, labels: Mapping[str, str] | None = None, /, **named: str) -> Self:
        """Add labels that the node must have."""
        return self._merge({**(labels or {}), **named}, "spec", "nodeSelector")

    def requires_node(self, *terms: Manifest) -> Self:
        """Add required node affinity: one of ``terms`` must hold; each is an expression, a field or ``all_of(…)``."""
        path = ("spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
        known = (self._get(*path) or {}).get("nodeSelectorTerms", ())
        return self._with({"nodeSelectorTerms": [*known, *map(all_of, terms)]}, *path)

    def prefers_node(self, weight: int, *parts: Manifest) -> Self:
        """Add a node preference: ``weight`` counts where all ``parts`` hold."""
        path = ("spec", "affinity", "nodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution")
        return self._append({"weight": weight, "preference": all_of(*parts)}, *path)

    def pod_affinity(
        self, topology_key: str, wanted: SelectorLike | None = None, *, weight: int | None = None, **fields: Any
    ) -> Self:
        """Add pod affinity: required without ``weight``, else preferred.

        Args:
            topology_key: label whose value the nodes must share.
            wanted: labels, expressions or a selector of the other pods; None leaves the selector out.
            weight: 1..100 for a preference.
            fields: further fields of the term, e.g. ``namespaces=["a"]``, ``namespaceSelector={}``.
        """
        return self._pod_term("podAffinity", topology_key, wanted, weight, fields)

    def pod_anti_affinity(
        self, topology_key: str, wanted: SelectorLike | None = None, *, weight: int | None = None, **fields: Any
    ) -> Self:
        """Add pod anti-affinity; arguments as for ``pod_affinity``."""
        return self._pod_term("podAntiAffinity", topology_key, wanted, weight, fields)

    def spread(
        self,
        topology_key: str,
        wanted: SelectorLike | None = None,
        *,
        max_skew: int = 1,
        when: str = "DoNotSchedule",
        **fields: Any,
    ) -> Self:
        """Add a topology spread constraint; ``fields`` are further fields, e.g. ``minDomains=3``."""
        constraint = {"maxSkew": max_skew, "topologyKey": topology_key, "whenUnsatisfiable": when, **fields}
        if wanted is not None:
            constraint["labelSelector"] = selector(wanted)
        return self._append(constraint, "spec", "topologySpreadConstraints")

    def toleration(
        self, key: str = "", value: str = "", *, operator: str = "", effect: str = "", seconds: int | None = None
    ) -> Self:
        """Add a toleration; without a key and with operator ``Exists`` it covers everything."""
        entry = _given(key=key, operator=operator, value=value, effect=effect, tolerationSeconds=seconds)
        return self._append(entry, "spec", "tolerations")

    def gate(self, *names: str) -> Self:
        """Add scheduling gates."""
        gates = self._get("spec", "schedulingGates") or ()
        return self._with([*gates, *({"name": name} for name in names)], "spec", "schedulingGates")

    def volume(self, name: str, source: Manifest | None = None, /, **sources: Manifest) -> Self:
        """Add a volume: ``volume("data", hostPath={"path": "/x"})``."""
        return self._append({"name": name, **(source or {}), **sources}, "spec", "volumes")

    def claim(self, claim_name: str, *, volume: str = "", read_only: bool = False) -> Self:
        """Add a volume from a persistent volume claim."""
        source = _given(claimName=claim_name, readOnly=read_only)
        return self.volume(volume or claim_name, persistentVolumeClaim=source)

    def resource_claim(self, name: str, *, claim: str = "", template: str = "") -> Self:
        """Add a claim for devices, by claim or by template."""
        entry = _given(name=name, resourceClaimName=claim, resourceClaimTemplateName=template)
        return self._append(entry, "spec", "resourceClaims")

    def priority(self, priority: int) -> Self:
        """Set the resolved priority."""
        return self._with(priority, "spec", "priority")

    def preemption_policy(self, policy: str) -> Self:
        """Set ``Never`` or ``PreemptLowerPriority``."""
        return self._with(policy, "spec", "preemptionPolicy")

    def scheduler(self, name: str) -> Self:
        """Set ``schedulerName``."""
        return self._with(name, "spec", "schedulerName")

    def on(self, node_name: str) -> Self:
        """Bind the pod to a node."""
        return self._with(node_name, "spec", "nodeName")

    def nominated(self, node_name: str) -> Self:
        """Nominate the pod for a node."""
        return self._with(node_name, "status", "nominatedNodeName")

    def phase(self, phase: str) -> Self:
        """Set the phase."""
        return self._with(phase, "status", "phase")

    def started(self, timestamp: str) -> Self:
        """Set the time at which the kubelet took the pod (RFC 3339)."""
        return self._with(timestamp, "status", "startTime")

    def container_status(
        self, name: str = "main", *, allocated: Quantities | None = None, actuated: Quantities | None = None
    ) -> Self:
        """Add what the kubelet has allocated and actuated for a container (in-place resize)."""
        status: Manifest = {"name": name}
        if allocated is not None:
            status["allocatedResources"] = dict(allocated)
        if actuated is not None:
            status["resources"] = {"requests": dict(actuated)}
        is_init = any(c["name"] == name for c in self._get("spec", "initContainers") or ())
        return self._append(status, "status", "initContainerStatuses" if is_init else "containerStatuses")

    def _edit_first(self, section: str, key: str, more: Manifest) -> Self:
        first, *others = self._get("spec", "containers")
        part = first.get(section, {})
        first = {**first, section: {**part, key: {**part.get(key, {}), **more}}}
        return self._with([first, *others], "spec", "containers")

    def _add_container(self, where: str, requests: Quantities | None, fields: Mapping[str, Any]) -> Self:
        known = self._get("spec", where) or ()
        prefix = "init" if where == "initContainers" else "container"
        made: Manifest = {"name": f"{prefix}-{len(known)}", "image": "example.com/app"}
        if requests is not None:
            made["resources"] = {"requests": dict(requests)}
        return self._append({**made, **fields}, "spec", where)

    def _pod_term(
        self, kind: str, topology_key: str, wanted: SelectorLike | None, weight: int | None, fields: Mapping[str, Any]
    ) -> Self:
        term: Manifest = {"topologyKey": topology_key, **fields}
        if wanted is not None:
            term["labelSelector"] = selector(wanted)
        path = ("spec", "affinity", kind)
        if weight is None:
            return self._append(term, *path, "requiredDuringSchedulingIgnoredDuringExecution")
        preference = {"weight": weight, "podAffinityTerm": term}
        return self._append(preference, *path, "preferredDuringSchedulingIgnoredDuringExecution")


def _given(**fields: Any) -> Manifest:
    """Return the fields that say something, as ``omitempty`` would write them."""
    return {name: value for name, value in fields.items() if value is not None and value not in ("", False)}
