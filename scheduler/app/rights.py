"""The rights that the deployed scheduler has: what each is for, and what becomes of it without.

One table; ``deploy``, the chart and ``docs/reference/rights.md`` are held to it by tests.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from scheduler.app.kinds import is_optional
from scheduler.model.dra import DeviceClass, ResourceClaim, ResourceSlice
from scheduler.model.kinds import KINDS
from scheduler.model.meta import KubeObject, Namespace
from scheduler.model.node import Node
from scheduler.model.pod import Pod
from scheduler.model.policy import PodDisruptionBudget
from scheduler.model.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from scheduler.model.workload import ReplicaSet, ReplicationController, Service, StatefulSet

__all__ = ["LIVE_PROFILE_RIGHTS", "RIGHTS", "Right", "Where"]


class Where(enum.Enum):
    """Where a right is granted."""

    CLUSTER = enum.auto()
    """Everywhere."""
    ELECTION = enum.auto()
    """In the namespace of the election's lease; beyond creation, on that lease alone."""
    AUTHENTICATION = enum.auto()
    """On ``extension-apiserver-authentication`` in ``kube-system``, by a role that every cluster has."""


@dataclass(frozen=True, slots=True)
class Right:
    """Verbs on a resource; reading a kind is one right, since an informer needs both verbs or has none.

    Attributes:
        verbs: as in a role.
        resource: plural, with the sub-resource: ``pods/binding``.
        group: API group, "" for the core group.
        purpose: what it is for.
        without: what becomes of the scheduler without it.
        where: where it is granted.
        plugin: the only plugin that needs it; "": the scheduler itself, or several.
    """

    verbs: tuple[str, ...]
    resource: str
    group: str
    purpose: str
    without: str
    where: Where = Where.CLUSTER
    plugin: str = ""

    def __str__(self) -> str:
        return self.named(self.verbs)

    def named(self, verbs: tuple[str, ...]) -> str:
        """Return the right with these verbs in the words of the documentation: ``list,watch replicasets.apps``."""
        return f"{','.join(verbs)} {self.resource}" + (f".{self.group}" if self.group else "")


_WATCHING = ("list", "watch")
_NOTHING = "not ready, nothing is decided"


def _reads(kind: type[KubeObject], purpose: str, without: str = "") -> Right:
    """Return the right to watch a kind; without a hard one nothing is decided, because of what stands behind it."""
    if not is_optional(kind):
        without = f"{_NOTHING}: {without}" if without else _NOTHING
    return Right(_WATCHING, KINDS[kind].plural, KINDS[kind].group, purpose, without)


RIGHTS: tuple[Right, ...] = (
    _reads(Node, "where pods can go"),
    _reads(Pod, "what is pending, what is taken"),
    _reads(Namespace, "affinity to pods of selected namespaces", "anti-affinity would be broken"),
    _reads(PodDisruptionBudget, "preemption", "budgets would be broken"),
    _reads(CSINode, "limits of attached volumes", "limits would be broken"),
    _reads(VolumeAttachment, "limits of attached volumes", "limits would be broken"),
    _reads(Service, "default spreading", "pods of services are not spread by default"),
    _reads(ReplicationController, "default spreading", "pods of controllers are not spread by default"),
    _reads(ReplicaSet, "default spreading", "pods of replica sets are not spread by default"),
    _reads(StatefulSet, "default spreading", "pods of stateful sets are not spread by default"),
    _reads(PersistentVolume, "pods with claims", "pods with claims stay pending"),
    _reads(PersistentVolumeClaim, "pods with claims", "pods with claims stay pending"),
    _reads(StorageClass, "claims that are not bound yet", "pods with such claims stay pending"),
    _reads(CSIDriver, "capacity, and drivers that attach nothing", "capacity is not looked at"),
    _reads(CSIStorageCapacity, "capacity", "no node has room for volumes of drivers that publish it"),
    Right(
        ("create",), "pods/binding", "",
        "binding",
        "no pod is bound; each has the refusal in its events",
    ),
    Right(
        ("patch",), "pods/status", "",
        "conditions and nominations",
        "pods are bound; why others are not stands in events only",
    ),
    Right(
        ("get",), "pods", "",
        "reading back a binding without an answer",
        "such a binding is settled by the watch alone",
    ),
    Right(
        ("create",), "events", "events.k8s.io",
        "events",
        "everything but events works",
    ),
    Right(
        ("patch",), "events", "events.k8s.io",
        "counting an event that comes again",
        "the first event of a series is all there is",
    ),
    Right(
        ("create",), "tokenreviews", "authentication.k8s.io",
        "scrapers with a token",
        "they get 401; client certificates work",
    ),
    Right(
        ("create",), "subjectaccessreviews", "authorization.k8s.io",
        "who may see which page",
        "health is served, other pages answer 500",
    ),
    Right(
        ("create",), "leases", "coordination.k8s.io",
        "the first election",
        "nobody leads where the Lease does not exist yet",
        Where.ELECTION,
    ),
    Right(
        ("get",), "leases", "coordination.k8s.io",
        "leader election",
        "nobody leads",
        Where.ELECTION,
    ),
    Right(
        ("update",), "leases", "coordination.k8s.io",
        "leader election",
        "the leader cannot renew and ends with exit code 1; nobody leads for longer than a lease",
        Where.ELECTION,
    ),
    Right(
        ("delete",), "pods", "",
        "preemption",
        "nobody is evicted; the pod stays pending",
        plugin="DefaultPreemption",
    ),
    Right(
        ("patch",), "persistentvolumes", "",
        "volumes that wait for a consumer",
        "pods with such claims stay pending; the refusal is in their events",
        plugin="VolumeBinding",
    ),
    Right(
        ("patch",), "persistentvolumeclaims", "",
        "volumes that are made on demand",
        "pods with such claims stay pending; the refusal is in their events",
        plugin="VolumeBinding",
    ),
    Right(
        ("get",), "configmaps", "",
        "who vouches for client certificates",
        "certificates of the cluster's clients are not believed",
        Where.AUTHENTICATION,
    ),
)  # fmt: skip
"""What the manifests and the chart grant by default."""

LIVE_PROFILE_RIGHTS: tuple[Right, ...] = (
    Right(
        _WATCHING, "schedulerprofiles", "scheduling.podium.dev",
        "live profiles",
        "profiles that are live stay live; others are not seen",
    ),
    Right(
        ("patch",), "schedulerprofiles/status", "scheduling.podium.dev",
        "saying what became of a live profile",
        "they are served; their status says nothing",
    ),
    *(
        _reads(kind, "plugins of live profiles that look at claims and devices", "such plugins see none of them")
        for kind in (ResourceClaim, ResourceSlice, DeviceClass)
    ),
)  # fmt: skip
"""What live profiles need besides (``deploy/components/live-profiles``)."""
