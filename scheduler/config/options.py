"""Podium's own settings: a second file (``--options``), so that the first stays valid for kube-scheduler too.

``apiVersion: podium.dev/v1alpha1``, ``kind: SchedulerOptions``; read as strictly as the main file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import msgspec

from scheduler.config.document import parse_document
from scheduler.config.errors import ConfigError, Problem, invalid
from scheduler.config.load import check_header
from scheduler.config.wire import Float64, Int32, Part, Problems, decode_into

__all__ = ["OPTIONS_API_VERSION", "OPTIONS_KIND", "LiveProfilesOptions", "SchedulerOptions", "load_options"]

OPTIONS_API_VERSION = "podium.dev/v1alpha1"
OPTIONS_KIND = "SchedulerOptions"


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
        allow_exec_credentials: whether a kubeconfig may start a program that hands out credentials.
        live_profiles: profiles that come and go while we run.
    """

    ZERO_IS_UNSET: ClassVar[bool] = False

    honor_foreign_nominations: bool = True
    plugin_budget_s: Float64 = msgspec.field(name="pluginBudgetSeconds", default=5.0)
    bind_concurrency: Int32 = 64
    watch_stale_after_s: Float64 = msgspec.field(name="watchStaleAfterSeconds", default=90.0)
    allow_exec_credentials: bool = False
    live_profiles: LiveProfilesOptions = LiveProfilesOptions()


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
        "liveProfiles.resyncSeconds": options.live_profiles.resync_s,
    }
    for name, value in positive.items():
        if value <= 0:
            yield invalid(tuple(name.split(".")), value, "must be greater than zero")
