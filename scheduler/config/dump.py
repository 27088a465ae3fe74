"""A completed configuration back to text: v1 YAML for ``--write-config-to`` and JSON for ``/configz``.

``load(dump(c)) == c`` holds for every configuration that ``load`` returns.

The form is upstream's: enabled plugins with their weights, args with ``apiVersion`` and ``kind``, every default
written out. ``differs:`` settings whose absence means something else here than in kube-scheduler (client limits,
profiling) are left out when they were not given.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec
import yaml

from scheduler.config.document import resolve_plain
from scheduler.config.durations import format_duration
from scheduler.config.errors import ConfigError
from scheduler.config.types import (
    API_VERSION,
    KIND,
    WIRE_POINTS,
    Extender,
    Plugins,
    Profile,
    SchedulerConfiguration,
)

__all__ = ["REDACTED", "configz", "dump", "to_v1", "write_configuration"]

REDACTED = "--- REDACTED ---"
_ALWAYS_WRITTEN = frozenset(
    {
        "ignorePreferredTermsOfExistingPods",
        "key",
        "maxSkew",
        "name",
        "nodeSelectorTerms",
        "operator",
        "preference",
        "score",
        "topologyKey",
        "urlPrefix",
        "utilization",
        "weight",
        "whenUnsatisfiable",
    }
)
"""Fields that upstream writes even when they are empty (no ``omitempty``)."""
_SECRETS = frozenset({"keyData"})


def dump(configuration: SchedulerConfiguration) -> str:
    """Return the configuration as v1 YAML."""
    return yaml.dump(to_v1(configuration), Dumper=_Dumper, default_flow_style=False, allow_unicode=True, width=1 << 16)


def write_configuration(configuration: SchedulerConfiguration, path: str) -> None:
    """Write the configuration as v1 YAML to a file (``--write-config-to``).

    Raises:
        OSError: the file cannot be written.
    """
    Path(path).write_text(dump(configuration), encoding="utf-8")


def configz(configuration: SchedulerConfiguration) -> bytes:
    """Return the body of ``/configz``; private keys are left out.

    ``parity:`` since 1.36 upstream shows the v1 form; up to 1.35 it was the internal one with capitalised keys.
    """
    return json.dumps({"componentconfig": _redacted(to_v1(configuration))}, ensure_ascii=False).encode()


def to_v1(configuration: SchedulerConfiguration) -> dict[str, Any]:
    """Return the configuration as plain data in the form of the v1 API."""
    connection = _plain(configuration.client_connection, keep_empty=True)
    document = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "parallelism": configuration.parallelism,
        "leaderElection": _plain(configuration.leader_election, keep_empty=True),
        "clientConnection": connection,
        "enableProfiling": configuration.enable_profiling,
        "enableContentionProfiling": configuration.enable_contention_profiling,
        "percentageOfNodesToScore": configuration.percentage_of_nodes_to_score,
        "podInitialBackoffSeconds": configuration.pod_initial_backoff_s,
        "podMaxBackoffSeconds": configuration.pod_max_backoff_s,
        "profiles": [_profile(profile) for profile in configuration.profiles],
        "extenders": [_extender(extender) for extender in configuration.extenders] or None,
        "delayCacheUntilActive": configuration.delay_cache_until_active or None,
    }
    return {key: value for key, value in document.items() if value is not None}


def _profile(profile: Profile) -> dict[str, Any]:
    document = {
        "schedulerName": profile.scheduler_name,
        "percentageOfNodesToScore": profile.percentage_of_nodes_to_score,
        "plugins": _plugins(profile.plugins),
        "pluginConfig": [
            {"name": name, "args": _args(name, args)} for name, args in sorted(profile.plugin_config.items())
        ],
    }
    return {key: value for key, value in document.items() if value not in (None, [])}


def _plugins(plugins: Plugins) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for point, wire_name in WIRE_POINTS.items():
        at = plugins.at(point)
        sets = {"enabled": at.enabled, "disabled": at.disabled}
        document[wire_name] = {
            key: [{"name": ref.name, "weight": ref.weight} for ref in refs] for key, refs in sets.items() if refs
        }
    return document


def _args(name: str, args: Any) -> Any:
    if not isinstance(args, msgspec.Struct):
        return args
    return {"apiVersion": API_VERSION, "kind": f"{name}Args", **_plain(args)}


def _extender(extender: Extender) -> dict[str, Any]:
    document = {**_plain(extender), "httpTimeout": format_duration(extender.http_timeout_s)}
    if extender.weight == 0:  # unlike the weights of plugins and preferences it is optional
        del document["weight"]
    return document


def _plain(value: msgspec.Struct, *, keep_empty: bool = False) -> dict[str, Any]:
    """Return a value as plain data; what is empty is left out unless it is always written."""
    document: dict[str, Any] = {}
    for field in msgspec.structs.fields(value):
        name = field.encode_name
        item = _item(field.type, getattr(value, field.name))
        is_default = item == _item(field.type, field.default)
        if item is None or (is_default and _is_empty(item) and not keep_empty and name not in _ALWAYS_WRITTEN):
            continue
        document[name] = item
    return document


def _is_empty(item: object) -> bool:
    return item in ("", [], {}, False) or (isinstance(item, (int, float)) and item == 0)


def _item(annotation: Any, value: Any) -> Any:
    if value is None or value is msgspec.NODEFAULT:
        return None
    if isinstance(value, msgspec.Struct):
        return _plain(value)
    if isinstance(value, tuple):
        return [_item(None, entry) for entry in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, float):
        return format_duration(value) if _is_duration(annotation) else _number(value)
    return value


def _is_duration(annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        return bool(get_args(annotation)[1] == "duration")
    is_optional = get_origin(annotation) is Union or type(annotation).__name__ == "UnionType"
    return is_optional and any(_is_duration(item) for item in get_args(annotation))


def _number(value: float) -> int | float:
    return int(value) if value.is_integer() and abs(value) < 1e15 else value


def _redacted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: REDACTED if key in _SECRETS else _redacted(item) for key, item in value.items()}
    return [_redacted(item) for item in value] if isinstance(value, list) else value


class _Dumper(yaml.SafeDumper):
    """Quotes every text that our own reader would take for something else (``y``, ``0o17``)."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None if _is_read_as_text(text) else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _is_read_as_text(text: str) -> bool:
    try:
        return isinstance(resolve_plain(text), str)
    except ConfigError:
        return False


_Dumper.add_representer(str, _represent_text)
