"""Pod: the fields that scheduling reads, and the facts derived from them.

Derived facts (requests, host ports, …) are computed at the first use, kept with the value, and impossible to go stale
because the value is frozen.
"""

from __future__ import annotations

import msgspec

from scheduler.model.affinity import PodAffinityTerms, pod_affinity_terms
from scheduler.model.derived import derived
from scheduler.model.meta import Condition, Int32, Int64, KubeObject, LabelSelector, PodKey, PodUid, Value
from scheduler.model.ports import HostPort, pod_host_ports
from scheduler.model.requests import Resources, non_zero_pod_requests, pod_requests
from scheduler.model.timestamps import unix_s
from scheduler.model.volumes import Volume

__all__ = [
    "POD_SCHEDULED",
    "Affinity",
    "Container",
    "ContainerPort",
    "ContainerRestartRule",
    "ContainerStatus",
    "NodeAffinity",
    "NodeSelector",
    "NodeSelectorRequirement",
    "NodeSelectorTerm",
    "Pod",
    "PodAffinity",
    "PodAffinityTerm",
    "PodAntiAffinity",
    "PodResourceClaim",
    "PodSchedulingGate",
    "PodSpec",
    "PodStatus",
    "PreferredSchedulingTerm",
    "QuantityText",
    "ResourceRequirements",
    "Toleration",
    "TopologySpreadConstraint",
    "WeightedPodAffinityTerm",
]

QuantityText = str | int | float
"""A quantity as the wire has it; ``model.quantity`` gives it a meaning."""

POD_SCHEDULED = "PodScheduled"
"""The condition that says whether a pod has a node, and why not."""


class ResourceRequirements(Value, frozen=True):
    """``resources`` of a container or pod; the API server has already copied limits to missing requests."""

    requests: dict[str, QuantityText] = {}
    limits: dict[str, QuantityText] = {}


class ContainerPort(Value, frozen=True):
    """One ``ports`` entry."""

    container_port: Int32 = 0
    host_port: Int32 = 0
    host_ip: str = msgspec.field(name="hostIP", default="")
    protocol: str = ""


class ContainerRestartRule(Value, frozen=True):
    """One entry of ``restartPolicyRules``; only the action is read."""

    action: str = ""


class Container(Value, frozen=True):
    """A container or init container."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str = ""
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()


class Toleration(Value, frozen=True):
    """One entry of ``tolerations``; empty fields widen it (see ``model.taints``)."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class NodeSelectorRequirement(Value, frozen=True, dict=True):
    """One expression: ``In NotIn Exists DoesNotExist Gt Lt``."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Value, frozen=True, dict=True):
    """Expressions and fields that must all hold; a term with neither matches nothing."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Value, frozen=True, dict=True):
    """Terms of which one must hold."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(Value, frozen=True):
    """A node preference with its weight, 1..100."""

    weight: Int32 = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Value, frozen=True):
    """``affinity.nodeAffinity``."""

    required: NodeSelector | None = msgspec.field(name="requiredDuringSchedulingIgnoredDuringExecution", default=None)
    preferred: tuple[PreferredSchedulingTerm, ...] = msgspec.field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default=()
    )


class PodAffinityTerm(Value, frozen=True):
    """Which pods, in which namespaces, over which topology."""

    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    topology_key: str = ""
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(Value, frozen=True):
    """A pod (anti-)affinity preference with its weight, 1..100."""

    weight: Int32 = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Value, frozen=True):
    """``affinity.podAffinity``."""

    required: tuple[PodAffinityTerm, ...] = msgspec.field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=()
    )
    preferred: tuple[WeightedPodAffinityTerm, ...] = msgspec.field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default=()
    )


class PodAntiAffinity(Value, frozen=True):
    """``affinity.podAntiAffinity``."""

    required: tuple[PodAffinityTerm, ...] = msgspec.field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=()
    )
    preferred: tuple[WeightedPodAffinityTerm, ...] = msgspec.field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default=()
    )


class Affinity(Value, frozen=True):
    """``spec.affinity``."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAntiAffinity | None = None


class TopologySpreadConstraint(Value, frozen=True):
    """One entry of ``topologySpreadConstraints``."""

    max_skew: Int32 = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()


class PodSchedulingGate(Value, frozen=True):
    """A named reason not to schedule the pod yet."""

    name: str = ""


class PodResourceClaim(Value, frozen=True):
    """One entry of ``resourceClaims``."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGroup(Value, frozen=True):
    """``schedulingGroup``: the PodGroup the pod belongs to."""

    pod_group_name: str | None = None


class PodSpec(Value, frozen=True):
    """``spec`` of a pod."""

    node_name: str = ""
    scheduler_name: str = ""
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    priority: Int32 | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    volumes: tuple[Volume, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    overhead: dict[str, QuantityText] = {}
    resources: ResourceRequirements | None = None
    host_network: bool = False
    host_users: bool | None = None
    termination_grace_period_seconds: Int64 | None = None
    scheduling_group: PodSchedulingGroup | None = None


class ContainerStatus(Value, frozen=True):
    """What the kubelet says of one container; only resource facts are read (in-place resize)."""

    name: str = ""
    allocated_resources: dict[str, QuantityText] = {}
    resources: ResourceRequirements | None = None


class PodResourceClaimStatus(Value, frozen=True):
    """The claim generated for one entry of ``spec.resourceClaims``."""

    name: str = ""
    resource_claim_name: str | None = None


class PodExtendedResourceClaimStatus(Value, frozen=True):
    """The claim made for extended resources that devices back."""

    resource_claim_name: str = ""


class PodStatus(Value, frozen=True):
    """``status`` of a pod."""

    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    nominated_node_name: str = ""
    start_time: str | None = None
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resources: ResourceRequirements | None = None
    allocated_resources: dict[str, QuantityText] = {}
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None

    def is_alike(self, other: PodStatus) -> bool:
        """Say whether two statuses differ in nothing but the nomination and the PodScheduled condition."""
        return (
            self.phase == other.phase
            and self.start_time == other.start_time
            and self.container_statuses == other.container_statuses
            and self.init_container_statuses == other.init_container_statuses
            and self.resources == other.resources
            and self.allocated_resources == other.allocated_resources
            and self.resource_claim_statuses == other.resource_claim_statuses
            and self.extended_resource_claim_status == other.extended_resource_claim_status
            and _without_pod_scheduled(self.conditions) == _without_pod_scheduled(other.conditions)
        )


def _without_pod_scheduled(conditions: tuple[Condition, ...]) -> list[Condition]:
    return [condition for condition in conditions if condition.type != POD_SCHEDULED]


class Pod(KubeObject, frozen=True):
    """A pod."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @derived
    def pod_key(self) -> PodKey:
        """Return ``namespace/name``."""
        return PodKey(f"{self.metadata.namespace}/{self.metadata.name}")

    @property
    def key(self) -> str:
        """Return ``namespace/name``."""
        return self.pod_key

    @property
    def pod_uid(self) -> PodUid:
        """Return the UID."""
        return PodUid(self.metadata.uid)

    @property
    def priority(self) -> int:
        """Return the priority; unset counts as 0."""
        return self.spec.priority or 0

    @property
    def node_name(self) -> str:
        """Return the node the pod is bound to (or assumed on), or ""."""
        return self.spec.node_name

    @property
    def is_terminating(self) -> bool:
        """Say whether the pod is being deleted."""
        return self.metadata.deletion_timestamp is not None

    @derived
    def started_s(self) -> float | None:
        """Return when the kubelet took the pod up, in seconds since the epoch; None if it has not (or is illegible)."""
        started = self.status.start_time
        return None if started is None else unix_s(started)

    @derived
    def requests(self) -> Resources:
        """Return what a pending pod asks for (spec §3.4, without status)."""
        return pod_requests(self, use_status=False)

    @derived
    def accounted_requests(self) -> Resources:
        """Return what an assigned pod takes from its node (spec §3.4, in-place resize status considered)."""
        if not self.has_resource_status:
            return self.requests
        return pod_requests(self, use_status=True)

    @derived
    def non_zero_requests(self) -> Resources:
        """Return requests with 100 m CPU and 200 MiB for containers that state none (scores only)."""
        return non_zero_pod_requests(self, use_status=False)

    @derived
    def accounted_non_zero_requests(self) -> Resources:
        """Return ``non_zero_requests`` as an assigned pod takes them from its node."""
        if not self.has_resource_status:
            return self.non_zero_requests
        return non_zero_pod_requests(self, use_status=True)

    @property
    def has_resource_status(self) -> bool:
        """Say whether the kubelet has said anything about the pod's resources (in-place resize)."""
        status = self.status
        return bool(status.container_statuses or status.init_container_statuses) or status.resources is not None

    @derived
    def host_ports(self) -> tuple[HostPort, ...]:
        """Return the host ports the pod needs on its node."""
        return pod_host_ports(self)

    @derived
    def attachable_volumes(self) -> tuple[Volume, ...]:
        """Return the volumes that may take a node's places for volumes: claims, ephemeral ones and in-tree disks."""
        return tuple([volume for volume in self.spec.volumes if volume.is_attachable])

    @derived
    def claim_names(self) -> frozenset[str]:
        """Return the claims that the pod's volumes name; those of generic ephemeral volumes are not named."""
        sources = (volume.persistent_volume_claim for volume in self.spec.volumes)
        return frozenset(source.claim_name for source in sources if source is not None)

    @property
    def has_affinity(self) -> bool:
        """Say whether the pod has pod affinity or anti-affinity of any kind."""
        affinity = self.spec.affinity
        return affinity is not None and (affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None)

    @derived
    def affinity_terms(self) -> PodAffinityTerms:
        """Return the pod affinity and anti-affinity as it is evaluated."""
        return pod_affinity_terms(self)

    @property
    def has_required_anti_affinity(self) -> bool:
        """Say whether the pod repels others."""
        affinity = self.spec.affinity
        return (
            affinity is not None
            and affinity.pod_anti_affinity is not None
            and bool(affinity.pod_anti_affinity.required)
        )

    def takes_the_same_place_as(self, other: Pod) -> bool:
        """Say whether two versions of a pod are alike in all that counts for other pods' places.

        They may differ in what the API server notes about itself (resource version, generation), in the nomination,
        which has no meaning once the pod has a node, and in the PodScheduled condition.
        """
        a, b = self.metadata, other.metadata
        return (
            self.spec == other.spec
            and a.namespace == b.namespace
            and a.labels == b.labels
            and a.annotations == b.annotations
            and a.deletion_timestamp == b.deletion_timestamp
            and a.owner_references == b.owner_references
            and a.finalizers == b.finalizers
            and self.status.is_alike(other.status)
        )

    def on_node(self, node_name: str) -> Pod:
        """Return this pod as if bound to ``node_name``; derived facts that do not depend on the node are kept."""
        assumed = msgspec.structs.replace(self, spec=msgspec.structs.replace(self.spec, node_name=node_name))
        assumed.__dict__.update(self.__dict__)
        return assumed

    def nominated_to(self, node_name: str) -> Pod:
        """Return this pod as if its status said that it is nominated to ``node_name``."""
        status = msgspec.structs.replace(self.status, nominated_node_name=node_name)
        nominated = msgspec.structs.replace(self, status=status)
        nominated.__dict__.update(self.__dict__)
        return nominated
