"""Podium's own settings: a second file (``--options``), so that the first stays valid for kube-scheduler too.

``apiVersion: podium.dev/v1alpha1``, ``kind: SchedulerOptions``; read as strictly as the main file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import msgspec

from scheduler.config.document import parse_document
from scheduler.config.errors import ConfigError, Path, Problem, invalid, not_supported
from scheduler.config.load import check_header
from scheduler.config.wire import Float64, Int32, Part, Problems, decode_into

__all__ = [
    "FAIL_POD",
    "OPTIONS_API_VERSION",
    "OPTIONS_KIND",
    "SKIP_PLUGIN",
    "LiveProfilesOptions",
    "PluginFaults",
    "ProfileOptions",
    "SchedulerOptions",
    "load_options",
]

OPTIONS_API_VERSION = "podium.dev/v1alpha1"
OPTIONS_KIND = "SchedulerOptions"


FAIL_POD = "FailPod"
SKIP_PLUGIN = "SkipPlugin"
_SKIP_AFTER = 10


class PluginFaults(Part, frozen=True):
    """What happens when a plugin of a third party raises, gives a bad answer or takes too long.

    Attributes:
        policy: FailPod (the attempt fails, the pod is tried again) or SkipPlugin (the attempt goes on without it).
        budget_ms: how long one call may take before it counts as overrun; None: pluginBudgetSeconds.
        quarantine_after: the plugin is left alone after faults on so many different pods within the window; 0: never.
            None: never with FailPod, 10 with SkipPlugin.
        window_s: the window in which faults count together.
        quarantine_s: for so long the plugin is left alone, with FailPod all pods that need it fail at once.
    """

    ZERO_IS_UNSET: ClassVar[bool] = False

    policy: str = FAIL_POD
    budget_ms: Int32 | None = msgspec.field(name="budgetMilliseconds", default=None)
    quarantine_after: Int32 | None = None
    window_s: Float64 = msgspec.field(name="windowSeconds", default=60.0)
    quarantine_s: Float64 = msgspec.field(name="quarantineSeconds", default=60.0)

    @property
    def pods_before_quarantine(self) -> int:
        """Return on how many pods a plugin may go wrong within the window; 0 means any number."""
        if self.quarantine_after is not None:
            return self.quarantine_after
        return _SKIP_AFTER if self.policy == SKIP_PLUGIN else 0


class ProfileOptions(Part, frozen=True):
    """Settings of one profile.

    Attributes:
        plugin_faults: stands in place of the general setting as a whole.
    """

    ZERO_IS_UNSET: ClassVar[bool] = False

    plugin_faults: PluginFaults | None = None


class LiveProfilesOptions(Part, frozen=True):
    """Profiles as objects of the API server (``SchedulerProfile``), which may change while we run.

    Attributes:
        enabled: whether they are looked for; needs the custom resource and the rights to read it.
        resync_s: the objects are listed at least this often, whatever the watch says.
    """

    ZERO_IS_UNSET: ClassVar[bool] = False

    enabled: bool = False
    resync_s: Float64 = msgspec.field(name="resyncSeconds", default=30.0)


class SchedulerOptions(Part, frozen=True):
    """What only Podium knows.

    Attributes:
        honor_foreign_nominations: whether pods of other schedulers that are nominated to a node count there.
        plugin_budget_s: how long one call of a plugin may take before it counts as overrun.
        bind_concurrency: how many bindings are under way at most.
        watch_stale_after_s: a watch stream silent for so long is opened anew.
        compare_period_s: what a watch has not told is found and repaired within this time; each comparison lists the
            metadata of all nodes and pods.
        allow_exec_credentials: whether a kubeconfig may start a program that hands out credentials.
        live_profiles: profiles that come and go while we run.
        plugin_faults: what happens when a plugin of a third party goes wrong.
        profiles: settings of single profiles, by schedulerName.
    """

    ZERO_IS_UNSET: ClassVar[bool] = False

    honor_foreign_nominations: bool = True
    plugin_budget_s: Float64 = msgspec.field(name="pluginBudgetSeconds", default=5.0)
    bind_concurrency: Int32 = 64
    watch_stale_after_s: Float64 = msgspec.field(name="watchStaleAfterSeconds", default=90.0)
    compare_period_s: Float64 = msgspec.field(name="comparePeriodSeconds", default=300.0)
    allow_exec_credentials: bool = False
    live_profiles: LiveProfilesOptions = LiveProfilesOptions()
    plugin_faults: PluginFaults = PluginFaults()
    profiles: dict[str, ProfileOptions] = msgspec.field(default_factory=dict)

    def plugin_faults_of(self, profile: str) -> PluginFaults:
        """Return what holds for a profile."""
        own = self.profiles.get(profile)
        return self.plugin_faults if own is None or own.plugin_faults is None else own.plugin_faults


def load_options(data: bytes) -> SchedulerOptions:
    """Return the options that a file describes.

    Raises:
        ConfigError: with everything that is wrong.
    """
    document = parse_document(data)
    check_header(document.value, OPTIONS_API_VERSION, OPTIONS_KIND)
    problems = Problems(document.problems)
    options = decode_into(SchedulerOptions, document.value, (), problems, skip=frozenset({"apiVersion", "kind"}))
    assert isinstance(options, SchedulerOptions)
    found = problems.sorted() + list(_validate(options))
    if found:
        raise ConfigError(found)
    return options


def _validate(options: SchedulerOptions) -> Iterator[Problem]:
    positive = {
        "pluginBudgetSeconds": options.plugin_budget_s,
        "bindConcurrency": options.bind_concurrency,
        "watchStaleAfterSeconds": options.watch_stale_after_s,
        "comparePeriodSeconds": options.compare_period_s,
        "liveProfiles.resyncSeconds": options.live_profiles.resync_s,
    }
    for name, value in positive.items():
        if value <= 0:
            yield invalid(tuple(name.split(".")), value, "must be greater than zero")
    yield from _validate_faults(("pluginFaults",), options.plugin_faults)
    for name, own in options.profiles.items():
        if own.plugin_faults is not None:
            yield from _validate_faults(("profiles", name, "pluginFaults"), own.plugin_faults)


def _validate_faults(path: Path, faults: PluginFaults) -> Iterator[Problem]:
    if faults.policy not in {FAIL_POD, SKIP_PLUGIN}:
        yield not_supported((*path, "policy"), faults.policy, (FAIL_POD, SKIP_PLUGIN))
    positive = {
        "budgetMilliseconds": faults.budget_ms,
        "windowSeconds": faults.window_s,
        "quarantineSeconds": faults.quarantine_s,
    }
    for name, value in positive.items():
        if value is not None and value <= 0:
            yield invalid((*path, name), value, "must be greater than zero")
    if faults.quarantine_after is not None and faults.quarantine_after < 0:
        yield invalid((*path, "quarantineAfter"), faults.quarantine_after, "must not be negative")
