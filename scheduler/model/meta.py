"""Object metadata and the base of every typed Kubernetes value.

Values hold only the fields that scheduling reads; unknown fields are ignored. They are frozen: a changed object is a
new value, so a reference taken in a cycle can never change under it. ``dict=True`` gives each value room for cached
properties (derived facts that are computed once, such as a pod's requests); the dictionary is made on first use.
"""

from __future__ import annotations

from typing import Annotated, NewType

import msgspec

__all__ = [
    "Condition",
    "Int32",
    "Int64",
    "KubeObject",
    "LabelSelector",
    "LabelSelectorRequirement",
    "ListMeta",
    "Namespace",
    "NodeName",
    "ObjectMeta",
    "OwnerReference",
    "PodKey",
    "PodUid",
    "Value",
]

PodUid = NewType("PodUid", str)
PodKey = NewType("PodKey", str)
NodeName = NewType("NodeName", str)

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
"""An ``int32`` of the API: decode refuses what does not fit, so that arithmetic on columns cannot overflow."""
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""An ``int64`` of the API."""


class Value(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A part of an object."""


class OwnerReference(Value, frozen=True):
    """Who made the object."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(Value, frozen=True):
    """``metadata`` of an object; timestamps stay RFC 3339 texts, which sort by time."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()


class ListMeta(Value, frozen=True):
    """``metadata`` of a list."""

    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")
    remaining_item_count: Int64 | None = None


class KubeObject(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, dict=True):
    """Base of all top-level objects."""

    metadata: ObjectMeta

    @property
    def name(self) -> str:
        """Return ``metadata.name``."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """Return ``metadata.namespace``; "" for cluster-scoped kinds."""
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        """Return ``metadata.uid``."""
        return self.metadata.uid

    @property
    def labels(self) -> dict[str, str]:
        """Return ``metadata.labels``."""
        return self.metadata.labels

    @property
    def annotations(self) -> dict[str, str]:
        """Return ``metadata.annotations``."""
        return self.metadata.annotations

    @property
    def original(self) -> bytes | None:
        """Return the JSON as the API server sent it, where it was kept (see ``kube.originals``)."""
        return self.__dict__.get("original_json")

    @property
    def key(self) -> str:
        """Return ``namespace/name``, or the bare name of a cluster-scoped object."""
        meta = self.metadata
        return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


class Condition(Value, frozen=True):
    """One entry of ``status.conditions``."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_probe_time: str | None = None
    last_transition_time: str | None = None
    observed_generation: Int64 = 0


class LabelSelectorRequirement(Value, frozen=True, dict=True):
    """One ``matchExpressions`` entry: ``In NotIn Exists DoesNotExist``."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(Value, frozen=True):
    """``matchLabels`` and ``matchExpressions``, all of which must hold; an empty selector matches everything."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class Namespace(KubeObject, frozen=True):
    """A namespace; only its labels are read."""
