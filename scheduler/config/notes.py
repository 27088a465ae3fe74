"""What a configuration says that has no effect in Podium: accepted, and said once.

A file that works for kube-scheduler works here unchanged; where a field only means something to a Go program, its
author gets a sentence instead of an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scheduler.config.args import ARGS
from scheduler.config.document import Document
from scheduler.config.types import Profile, SchedulerConfiguration

__all__ = ["notes_on"]

SECOND_DOCUMENT = "only the first YAML document of the file was read"
CONTENT_TYPE = "clientConnection.{} is accepted and ignored: Podium speaks JSON"
PARALLELISM = "parallelism is accepted and ignored: nodes are evaluated all at once, on one thread"
CONTENTION = "enableContentionProfiling is accepted and ignored: there are no contended Go locks to profile"
PROFILING = "enableProfiling is accepted, but Go's pprof endpoints do not exist here"
ALL_NODES = "percentageOfNodesToScore 0 is not adaptive here: all nodes are evaluated where the plugins allow it"


def notes_on(document: Document, configuration: SchedulerConfiguration) -> Iterator[str]:
    """Return the notes on a configuration that was loaded from ``document``."""
    given = document.value
    if document.is_followed:
        yield SECOND_DOCUMENT
    connection = given.get("clientConnection") or {}
    for field in ("acceptContentTypes", "contentType"):
        if connection.get(field) not in {None, "", "application/json"}:
            yield CONTENT_TYPE.format(field)
    if given.get("parallelism") is not None:
        yield PARALLELISM
    if configuration.enable_profiling:
        yield PROFILING
    if configuration.enable_contention_profiling:
        yield CONTENTION
    if _says_adaptive(given) or any(_says_adaptive(profile) for profile in given.get("profiles") or ()):
        yield ALL_NODES
    for index, profile in enumerate(configuration.profiles):
        yield from _unused_args(index, profile)


def _says_adaptive(given: Any) -> bool:
    return isinstance(given, dict) and given.get("percentageOfNodesToScore") == 0


def _unused_args(index: int, profile: Profile) -> Iterator[str]:
    enabled = set(profile.plugins.names())
    for name, args in profile.plugin_config.items():
        if name not in enabled:
            yield f"profiles[{index}].pluginConfig: the args of {name} are not used: the plugin is not enabled"
        elif name not in ARGS and name in _WITHOUT_ARGS and args:
            yield f"profiles[{index}].pluginConfig: the args of {name} are ignored: the plugin takes none"


_WITHOUT_ARGS = frozenset(
    {
        "DefaultBinder",
        "ImageLocality",
        "NodeDeclaredFeatures",
        "NodeName",
        "NodePorts",
        "NodeUnschedulable",
        "NodeVolumeLimits",
        "PrioritySort",
        "SchedulingGates",
        "TaintToleration",
        "VolumeRestrictions",
        "VolumeZone",
    }
)
