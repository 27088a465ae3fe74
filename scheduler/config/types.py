"""The completed KubeSchedulerConfiguration: what the rest of Podium reads.

Names and meaning are those of ``kubescheduler.config.k8s.io/v1``; defaults are upstream's except where a comment says
``differs``. All values are frozen, and equal when they mean the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import msgspec

from scheduler.config.wire import Float32, Int32, Int64, Part, Seconds

__all__ = [
    "API_VERSION",
    "DEFAULT_EXTENDER_TIMEOUT_S",
    "DEFAULT_SCHEDULER_NAME",
    "KIND",
    "POINTS",
    "WIRE_POINTS",
    "ClientConnection",
    "Extender",
    "ExtenderManagedResource",
    "ExtenderTLS",
    "LeaderElection",
    "PluginRef",
    "PluginSet",
    "Plugins",
    "Profile",
    "SchedulerConfiguration",
]

API_VERSION = "kubescheduler.config.k8s.io/v1"
KIND = "KubeSchedulerConfiguration"
DEFAULT_SCHEDULER_NAME = "default-scheduler"
DEFAULT_EXTENDER_TIMEOUT_S = 5.0
"""Stands where an extender's ``httpTimeout`` is 0."""


class LeaderElection(Part, frozen=True):
    """``leaderElection``: who of several replicas decides. An empty value counts as not given."""

    ZERO_IS_UNSET: ClassVar[bool] = True

    leader_elect: bool = True
    lease_duration_s: Seconds = msgspec.field(name="leaseDuration", default=15.0)
    renew_deadline_s: Seconds = msgspec.field(name="renewDeadline", default=10.0)
    retry_period_s: Seconds = msgspec.field(name="retryPeriod", default=2.0)
    resource_lock: str = "leases"
    resource_name: str = "kube-scheduler"
    resource_namespace: str = "kube-system"


class ClientConnection(Part, frozen=True):
    """``clientConnection``: how to reach the API server. An empty value counts as not given.

    Attributes:
        kubeconfig: path of a kubeconfig file; "" means the service account of the pod.
        accept_content_types: accepted and ignored, Podium speaks JSON.
        content_type: likewise.
        qps: requests per second; None if not given. A negative number means no limit.
        burst: requests at once; None if not given. Of use only together with ``qps`` (100 if that stands alone).
    """

    ZERO_IS_UNSET: ClassVar[bool] = True

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = "application/vnd.kubernetes.protobuf"
    # differs: upstream limits itself to 50/100 by default; not given means no limit here (docs: client limits)
    qps: Float32 | None = None
    burst: Int32 | None = None


class PluginRef(Part, frozen=True):
    """A plugin named in a profile; weight 0 stands for "not given" and counts as 1 for Score."""

    name: str = ""
    weight: Int32 = 0


class PluginSet(Part, frozen=True):
    """What a profile says about one extension point; ``*`` in ``disabled`` means all."""

    enabled: tuple[PluginRef, ...] = ()
    disabled: tuple[PluginRef, ...] = ()


class Plugins(Part, frozen=True):
    """One `PluginSet` per extension point; ``multi_point`` stands for all points that a plugin implements."""

    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    multi_point: PluginSet = PluginSet()
    placement_generate: PluginSet = PluginSet()
    placement_score: PluginSet = PluginSet()

    def at(self, point: str) -> PluginSet:
        """Return the set of an extension point (a name out of `POINTS`) or of ``multi_point``."""
        found = getattr(self, point)
        assert isinstance(found, PluginSet)
        return found

    def names(self) -> Iterator[str]:
        """Return the names of all enabled plugins, in no particular order and perhaps repeatedly."""
        for point in WIRE_POINTS:
            yield from (ref.name for ref in self.at(point).enabled)


WIRE_POINTS: Mapping[str, str] = {field.name: field.encode_name for field in msgspec.structs.fields(Plugins)}
"""All fields of `Plugins` with their names in the file."""

POINTS = tuple(point for point in WIRE_POINTS if point != "multi_point")
"""The extension points."""


class Profile(Part, frozen=True):
    """One scheduler name with its plugins.

    Attributes:
        scheduler_name: pods that name it in ``spec.schedulerName`` are this profile's.
        percentage_of_nodes_to_score: overrides the configuration's; None if not given.
        plugins: merged with the default plugins; not yet expanded (see ``config.expand``).
        plugin_config: decoded args by plugin name: values of ``config.args`` for plugins of Kubernetes that have
            args, plain data for all others. Every enabled plugin with args has an entry.
    """

    scheduler_name: str = ""
    percentage_of_nodes_to_score: int | None = None
    plugins: Plugins = Plugins()
    plugin_config: dict[str, Any] = {}  # noqa: RUF012  msgspec copies empty defaults for each value


class ExtenderTLS(Part, frozen=True, repr_omit_defaults=True):
    """``tlsConfig`` of an extender; data wins over files."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    key_data: bytes = b""
    ca_data: bytes = b""

    def __repr__(self) -> str:
        """Leave the private key out of logs."""
        shown = {name: getattr(self, name) for name in self.__struct_fields__ if name != "key_data"}
        return f"ExtenderTLS({', '.join(f'{name}={value!r}' for name, value in shown.items() if value)})"


class ExtenderManagedResource(Part, frozen=True):
    """A resource that an extender accounts for."""

    name: str = ""
    ignored_by_scheduler: bool = False


class Extender(Part, frozen=True):
    """An HTTP service that filters, ranks, preempts or binds beside the plugins (spec of the wire: see extender)."""

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: Int64 = 0
    bind_verb: str = ""
    enable_https: bool = msgspec.field(name="enableHTTPS", default=False)
    tls_config: ExtenderTLS | None = None
    http_timeout_s: Seconds = msgspec.field(name="httpTimeout", default=DEFAULT_EXTENDER_TIMEOUT_S)
    node_cache_capable: bool = False
    managed_resources: tuple[ExtenderManagedResource, ...] = ()
    ignorable: bool = False


class SchedulerConfiguration(Part, frozen=True):
    """A completed and validated configuration.

    Attributes:
        enable_profiling: None if not given. ``differs``: upstream then serves profiles, Podium does not.
        enable_contention_profiling: None if not given; means nothing in Python.
        parallelism: accepted; means nothing here, nodes are evaluated at once.
        percentage_of_nodes_to_score: 0 is "all nodes" where the plugins allow it, else upstream's adaptive number.
    """

    parallelism: int = 16
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    percentage_of_nodes_to_score: int = 0
    pod_initial_backoff_s: int = 1
    pod_max_backoff_s: int = 10
    profiles: tuple[Profile, ...] = ()
    extenders: tuple[Extender, ...] = ()
    enable_profiling: bool | None = None
    enable_contention_profiling: bool | None = None
    delay_cache_until_active: bool = False
