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
    """``leaderElection``: who of several replicas decides. An empty value counts as not given.

    Attributes:
        leader_elect: whether a replica waits for the lease before it schedules.
        lease_duration_s: how long the others wait for a renewal before they take over.
        renew_deadline_s: how long the leader tries to renew before it stops; shorter than ``leaseDuration``.
        retry_period_s: the pause between two tries; with jitter it must fit into ``renewDeadline``.
        resource_lock: ``leases`` is the only kind.
        resource_name: name of the lease; two schedulers must not share one.
        resource_namespace: namespace of the lease.
    """

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
        content_type: accepted and ignored, Podium speaks JSON.
        qps: requests per second; unset or negative means no limit.
        burst: requests at once, together with ``qps`` (100 if that stands alone).
    """

    ZERO_IS_UNSET: ClassVar[bool] = True

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = "application/vnd.kubernetes.protobuf"
    # differs: upstream limits itself to 50/100 by default; not given means no limit here (docs: client limits)
    qps: Float32 | None = None
    burst: Int32 | None = None


class PluginRef(Part, frozen=True):
    """A plugin named in a profile.

    Attributes:
        name: a default plugin or an entry point of the group ``podium.plugins``.
        weight: factor of the plugin's score; 0 stands for "not given" and counts as 1.
    """

    name: str = ""
    weight: Int32 = 0


class PluginSet(Part, frozen=True):
    """What a profile says about one extension point.

    Attributes:
        enabled: plugins to add, in this order, after the default ones that are left.
        disabled: default plugins to leave out; ``*`` means all.
    """

    enabled: tuple[PluginRef, ...] = ()
    disabled: tuple[PluginRef, ...] = ()


class Plugins(Part, frozen=True):
    """One `PluginSet` per extension point.

    Attributes:
        pre_enqueue: may a pod enter the active queue?
        queue_sort: which pod is next? One plugin, the same in all profiles.
        pre_filter: what the pod's filters need, computed once; may narrow the nodes.
        filter: does the pod fit a node?
        post_filter: what to do when it fits none (preemption).
        pre_score: what the pod's scores need, computed once.
        score: how good is a node? 0 to 100, times the weight.
        reserve: claims something on the chosen node, and gives it back when binding fails.
        permit: may binding go on: yes, no, or wait.
        pre_bind: what must be done before binding (volumes).
        bind: writes the decision.
        post_bind: learns that the pod is bound.
        multi_point: stands for all points that a plugin implements.
        placement_generate: read and checked; upstream's alpha feature is not built.
        placement_score: read and checked; upstream's alpha feature is not built.
    """

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
        percentage_of_nodes_to_score: overrides the configuration's if set.
        plugins: which plugins run, on top of the default ones (merged, not yet expanded: ``config.expand``).
        plugin_config: arguments by plugin name (in the file a list of ``name`` and ``args``): values of ``config.args``
            for plugins of Kubernetes that have args, plain data for all others. Every enabled plugin with args has an
            entry.
    """

    scheduler_name: str = ""
    percentage_of_nodes_to_score: int | None = None
    plugins: Plugins = Plugins()
    plugin_config: dict[str, Any] = {}  # noqa: RUF012  msgspec copies empty defaults for each value


class ExtenderTLS(Part, frozen=True, repr_omit_defaults=True):
    """``tlsConfig`` of an extender; data wins over files.

    Attributes:
        insecure: do not verify the extender's certificate.
        server_name: name to verify in the certificate, if it is not the host of the URL.
        cert_file: client certificate (PEM).
        key_file: its private key.
        ca_file: authorities that may have signed the extender's certificate.
        cert_data: as ``certFile``, base64 in the file.
        key_data: as ``keyFile``, base64 in the file.
        ca_data: as ``caFile``, base64 in the file.
    """

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
    """A resource that an extender accounts for.

    Attributes:
        name: the extended resource; pods that do not request one of an extender's resources skip the extender.
        ignored_by_scheduler: NodeResourcesFit does not count it, the extender does.
    """

    name: str = ""
    ignored_by_scheduler: bool = False


class Extender(Part, frozen=True):
    """An HTTP service that filters, ranks, preempts or binds beside the plugins.

    Attributes:
        url_prefix: where it listens; a verb is appended to it.
        filter_verb: path of the filter call; empty: it does not filter.
        preempt_verb: path of the call that looks at preemption's candidates.
        prioritize_verb: path of the call that scores nodes, 0 to 10.
        weight: factor of its scores; needed with ``prioritizeVerb``.
        bind_verb: path of the call that binds; at most one extender binds.
        enable_https: whether to speak TLS.
        tls_config: how.
        http_timeout_s: how long a filter or preempt call may take before the pod's attempt fails.
        node_cache_capable: it knows the nodes: send names only.
        managed_resources: what it accounts for; empty: it is asked about every pod.
        ignorable: its failure does not fail the pod.
    """

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
        leader_election: who of several replicas decides.
        client_connection: how to reach the API server.
        pod_initial_backoff_s: the pause after a pod's first failed attempt; it doubles with each one.
        pod_max_backoff_s: the longest such pause.
        profiles: one per scheduler name; at least one.
        extenders: HTTP services to ask beside the plugins.
        delay_cache_until_active: start the watches only as the leader: less load, a slower take-over.
        enable_profiling: serve profiles. ``differs``: unset means off, upstream then serves them.
        enable_contention_profiling: accepted; means nothing in Python.
        parallelism: accepted; means nothing here, nodes are evaluated at once.
        percentage_of_nodes_to_score: 0 is "all nodes" where the plugins allow it, else upstream's adaptive number.
    """

    parallelism: int = 16
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    percentage_of_nodes_to_score: int = 0
    pod_initial_backoff_s: Int64 = msgspec.field(name="podInitialBackoffSeconds", default=1)
    pod_max_backoff_s: Int64 = msgspec.field(name="podMaxBackoffSeconds", default=10)
    profiles: tuple[Profile, ...] = ()
    extenders: tuple[Extender, ...] = ()
    enable_profiling: bool | None = None
    enable_contention_profiling: bool | None = None
    delay_cache_until_active: bool = False
