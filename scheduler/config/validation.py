"""The rules that a completed configuration must keep, all checked, with upstream's texts (spec section 5.5).

Source: ``pkg/scheduler/apis/config/validation/validation.go`` 1.36; problems come in the order in which upstream
reports them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from scheduler.config.durations import format_duration
from scheduler.config.errors import Path, Problem, duplicate, invalid, required
from scheduler.config.gates import FeatureGates
from scheduler.config.types import (
    API_VERSION,
    WIRE_POINTS,
    ClientConnection,
    Extender,
    LeaderElection,
    PluginSet,
    SchedulerConfiguration,
)
from scheduler.config.validation_args import validate_args
from scheduler.config.wire_types import CompletedProfile
from scheduler.model.label_syntax import label_key_problems

__all__ = ["FIT", "validate"]

FIT = "NodeResourcesFit"
_REMOVED_PLUGINS = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})
_UNCHECKED_POINTS = frozenset({"multi_point", "placement_generate", "placement_score"})
_REQUESTS_PREFIX = "requests."


def validate(
    configuration: SchedulerConfiguration, profiles: Sequence[CompletedProfile], gates: FeatureGates
) -> Iterator[Problem]:
    """Return everything that is wrong.

    Args:
        configuration: all but its profiles.
        profiles: the profiles with their ``pluginConfig`` still a list, as repeated entries are an error.
        gates: decide which args may be there.
    """
    yield from _client_connection(configuration.client_connection)
    yield from _leader_election(configuration.leader_election)
    if configuration.parallelism <= 0:
        yield invalid(("parallelism",), configuration.parallelism, "should be an integer value greater than zero")
    for index, profile in enumerate(profiles):
        yield from _profile(("profiles", index), profile, gates)
        yield from _repeated_name(profiles, index)
    yield from _common_queue_sort(profiles)
    yield from _percentage(("percentageOfNodesToScore",), configuration.percentage_of_nodes_to_score)
    initial, longest = configuration.pod_initial_backoff_s, configuration.pod_max_backoff_s
    if initial <= 0:
        yield invalid(("podInitialBackoffSeconds",), initial, "must be greater than 0")
    if longest < initial:
        yield invalid(("podMaxBackoffSeconds",), longest, "must be greater than or equal to PodInitialBackoffSeconds")
    yield from _extenders(configuration.extenders)


def _client_connection(connection: ClientConnection) -> Iterator[Problem]:
    if connection.burst is not None and connection.burst < 0:
        yield invalid(("clientConnection", "burst"), connection.burst, "must be non-negative")


def _leader_election(election: LeaderElection) -> Iterator[Problem]:
    if not election.leader_elect:
        return
    root = "leaderElection"
    durations = {
        "leaseDuration": election.lease_duration_s,
        "renewDeadline": election.renew_deadline_s,
        "retryPeriod": election.retry_period_s,
    }
    for name, seconds in durations.items():
        if seconds <= 0:
            yield invalid((root, name), format_duration(seconds), "must be greater than zero")
    if election.lease_duration_s <= election.renew_deadline_s:
        # parity: the value shown is the deadline's
        shown = format_duration(election.renew_deadline_s)
        yield invalid((root, "leaseDuration"), shown, "must be greater than `RenewDeadline`")
    if election.resource_lock != "leases":
        yield invalid((root, "resourceLock"), election.resource_lock, 'resourceLock value must be "leases"')


def _profile(path: Path, profile: CompletedProfile, gates: FeatureGates) -> Iterator[Problem]:
    if not profile.scheduler_name:
        yield required((*path, "schedulerName"))
    yield from _percentage((*path, "percentageOfNodesToScore"), profile.percentage_of_nodes_to_score)
    for point, wire_name in WIRE_POINTS.items():
        if point not in _UNCHECKED_POINTS:
            yield from _removed_plugins((*path, "plugins", wire_name), profile.plugins.at(point))
    yield from _plugin_config(path, profile, gates)


def _repeated_name(profiles: Sequence[CompletedProfile], index: int) -> Iterator[Problem]:
    name = profiles[index].scheduler_name
    earlier = [i for i in range(index) if profiles[i].scheduler_name == name]
    if earlier:
        # differs: 1.36 prints the other path as {}; here it is readable
        yield duplicate(("profiles", index, "schedulerName"), ("profiles", earlier[-1], "schedulerName"))


def _percentage(path: Path, percentage: int | None) -> Iterator[Problem]:
    if percentage is not None and not 0 <= percentage <= 100:
        yield invalid(path, percentage, "not in valid range [0-100]")


def _removed_plugins(path: Path, plugins: PluginSet) -> Iterator[Problem]:
    for index, ref in enumerate(plugins.enabled):
        if ref.name in _REMOVED_PLUGINS:
            yield _removed((*path, "enabled", index), ref.name)


def _removed(path: Path, name: str) -> Problem:
    # parity: upstream prints the version of the core API here
    versions = f'"v1" (KubeSchedulerConfiguration is version "{API_VERSION}")'
    return invalid(path, name, f"was invalid in version {versions}")


def _plugin_config(path: Path, profile: CompletedProfile, gates: FeatureGates) -> Iterator[Problem]:
    seen: set[str] = set()
    enabled = set(profile.plugins.names())
    for index, entry in enumerate(profile.plugin_config):
        here = (*path, "pluginConfig", index)
        if entry.name in seen:
            yield duplicate(here, entry.name)
        seen.add(entry.name)
        if entry.name in _REMOVED_PLUGINS:
            yield _removed(here, entry.name)
        elif entry.name != FIT or FIT in enabled:
            # differs: upstream checks Fit's args only when it makes the plugin, one profile at a time and without the
            # path; here they are checked with the rest, if the plugin is going to be made
            yield from validate_args((*here, "args"), entry.args, gates)


def _common_queue_sort(profiles: Sequence[CompletedProfile]) -> Iterator[Problem]:
    first = profiles[0].plugins.queue_sort
    if len(first.enabled) > 1:
        path: Path = ("profiles", 0, "plugins", "queueSort", "Enabled")
        yield invalid(path, len(first.enabled), "only one queue sort plugin can be enabled")
    name = first.enabled[0].name if first.enabled else None
    first_args = [entry.args for entry in profiles[0].plugin_config if entry.name == name]
    for index, profile in enumerate(profiles[1:], start=1):
        if profile.plugins.queue_sort != first:
            path = ("profiles", index, "plugins", "queueSort")
            yield invalid(path, _shown_set(profile.plugins.queue_sort), "must be the same for all profiles")
        for entry in profile.plugin_config:
            if name is not None and entry.name == name and [entry.args] != first_args[-1:]:
                path = ("profiles", index, "pluginConfig", "args")
                yield invalid(path, entry.shown_args(), "queueSort must be the same for all profiles")


def _shown_set(plugins: PluginSet) -> dict[str, list[dict[str, object]] | None]:
    return {
        name: [{"Name": ref.name, "Weight": ref.weight} for ref in refs] or None
        for name, refs in (("Enabled", plugins.enabled), ("Disabled", plugins.disabled))
    }


def _extenders(extenders: Sequence[Extender]) -> Iterator[Problem]:
    managed: set[str] = set()
    for index, extender in enumerate(extenders):
        path = ("extenders", index)
        if extender.prioritize_verb and extender.weight <= 0:
            yield invalid((*path, "weight"), extender.weight, "must have a positive weight applied to it")
        for number, resource in enumerate(extender.managed_resources):
            here = (*path, "managedResources", number, "name")
            yield from _extended_resource_name(here, resource.name)
            if resource.name in managed:
                yield invalid(here, resource.name, "duplicate extender managed resource name")
            managed.add(resource.name)
        yield from _extender_tls(path, extender)
    binders = sum(1 for extender in extenders if extender.bind_verb)
    if binders > 1:
        shown = f"found {binders} extenders implementing bind"
        yield invalid(("extenders",), shown, "only one extender can implement bind")


def _extender_tls(path: Path, extender: Extender) -> Iterator[Problem]:
    tls = extender.tls_config
    if extender.enable_https and tls is not None and tls.insecure and (tls.ca_file or tls.ca_data):
        # differs: upstream finds this when it makes the client, and does not say which extender
        reason = "specifying a root certificates file with the insecure flag is not allowed"
        yield invalid((*path, "tlsConfig", "insecure"), value=True, detail=reason)


def _extended_resource_name(path: Path, name: str) -> Iterator[Problem]:
    problems = label_key_problems(name)
    if problems:
        yield from (invalid(path, name, problem) for problem in problems)
        return
    is_native = "/" not in name or "kubernetes.io/" in name
    if is_native or name.startswith(_REQUESTS_PREFIX) or label_key_problems(_REQUESTS_PREFIX + name):
        yield invalid(path, name, "is an invalid extended resource name")
