"""From the bytes of a file to a completed, validated configuration.

::

    bytes ─ parse_document ─▶ plain data ─ decode ─▶ WireConfiguration ─ defaults ─▶ adjust ─ validate ─▶ done

Every stage goes on past what it finds wrong, so that one run reports everything; only a file that cannot be read at
all ends earlier. ``adjust`` is where command-line flags that win over the file come in, before validation as upstream
has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from scheduler.config.args import ARGS, NodeResourcesFitArgs, completed
from scheduler.config.default_plugins import default_plugins
from scheduler.config.document import parse_document
from scheduler.config.errors import ConfigError, Path, Problem, join
from scheduler.config.gates import DEFAULT_GATES, FeatureGates
from scheduler.config.merge import merge_plugins
from scheduler.config.notes import notes_on
from scheduler.config.types import (
    API_VERSION,
    DEFAULT_EXTENDER_TIMEOUT_S,
    DEFAULT_SCHEDULER_NAME,
    KIND,
    Extender,
    Profile,
    SchedulerConfiguration,
)
from scheduler.config.validation import FIT, validate
from scheduler.config.wire import Part, Problems, decode_into
from scheduler.config.wire_types import (
    CompletedPluginConfig,
    CompletedProfile,
    WireConfiguration,
    WirePluginConfig,
    WireProfile,
)

__all__ = ["Adjust", "Loaded", "check_header", "default_configuration", "load", "load_profile", "load_with_notes"]

Adjust = Callable[[SchedulerConfiguration], SchedulerConfiguration]
_HEADER = frozenset({"apiVersion", "kind"})
_STRICT = "strict decoding error: "


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration and what its author should know about it.

    Attributes:
        configuration: completed and validated.
        notes: sentences about what was accepted without having an effect; to be said once.
    """

    configuration: SchedulerConfiguration
    notes: tuple[str, ...]


def load(data: bytes, gates: FeatureGates = DEFAULT_GATES) -> SchedulerConfiguration:
    """Return the configuration that a file describes.

    Raises:
        ConfigError: with everything that is wrong.
    """
    return load_with_notes(data, gates).configuration


def load_with_notes(data: bytes, gates: FeatureGates = DEFAULT_GATES, adjust: Adjust | None = None) -> Loaded:
    """Return the configuration that a file describes, and notes on it.

    Args:
        data: the file.
        gates: feature gates, which decide about default plugins and default args.
        adjust: changes the configuration (its profiles are not in it yet) before it is validated.

    Raises:
        ConfigError: with everything that is wrong.
    """
    document = parse_document(data)
    check_header(document.value, API_VERSION, KIND, other_kinds=frozenset(f"{name}Args" for name in ARGS))
    problems = Problems(document.problems)
    wire = decode_into(WireConfiguration, document.value, (), problems, skip=_HEADER)
    configuration = _finish(wire, gates, problems, adjust)
    return Loaded(configuration, tuple(notes_on(document, configuration)))


def default_configuration(gates: FeatureGates = DEFAULT_GATES, adjust: Adjust | None = None) -> SchedulerConfiguration:
    """Return the configuration that stands when there is no file.

    Raises:
        ConfigError: ``adjust`` made it invalid.
    """
    return _finish(WireConfiguration(), gates, Problems(), adjust)


def load_profile(
    spec: Mapping[str, Any], configuration: SchedulerConfiguration, gates: FeatureGates, root: str
) -> Profile:
    """Return the profile that ``spec`` describes, as if it stood behind those of ``configuration``.

    What is wrong is said as for a file, with ``root`` in the place of ``profiles[i]``. A repeated scheduler name is not
    among it: who has the name is the caller's to know.

    Args:
        spec: one entry of ``profiles`` as plain data.
        configuration: validated.
        gates: feature gates.
        root: how the reader finds ``spec``.

    Raises:
        ConfigError: with everything that is wrong.
    """
    problems = Problems()
    wire = decode_into(WireProfile, spec, ("profiles", 1), problems)
    profile = _complete_profile(wire, 1, gates, problems)
    found = problems.sorted()
    unread = tuple(problem.path for problem in found)
    here = "profiles[1]"
    found += [
        problem
        for problem in validate(configuration, [_as_first(configuration.profiles[0]), profile], gates)
        if problem.path.startswith(here) and not _is_under(problem.path, unread)
    ]
    if found:
        raise ConfigError(Problem(p.path.replace(here, root), p.text.replace(here, root)) for p in found)
    return _profile(profile, tuple(_ignored_resources(configuration.extenders)))


def _as_first(profile: Profile) -> CompletedProfile:
    """Return the file's first profile as validation takes it; its name is nobody's, so that none repeats it."""
    entries = tuple(CompletedPluginConfig(name, args) for name, args in profile.plugin_config.items())
    return CompletedProfile("\0", profile.percentage_of_nodes_to_score, profile.plugins, entries)


def check_header(value: Any, api_version: str, kind: str, *, other_kinds: frozenset[str] = frozenset()) -> None:
    """Refuse a document that is of another kind.

    Raises:
        ConfigError: with the one reason.
    """
    if value is not None and not isinstance(value, dict):
        raise ConfigError(["couldn't get version/kind: the file does not hold an object"])
    header = value or {}
    for field, name in (("kind", "Kind"), ("apiVersion", "apiVersion")):
        if not header.get(field):
            raise ConfigError(
                [f"Object '{name}' is missing: the file must say {field}: {_expected(field, api_version, kind)}"]
            )
        if not isinstance(header[field], str):
            raise ConfigError([f"couldn't get version/kind: {field} is not a text"])
    found = (header["apiVersion"], header["kind"])
    if found[0] == api_version and found[1] in other_kinds:
        raise ConfigError([f"couldn't decode as {kind}, got {found[0]}, Kind={found[1]}: "])
    if found != (api_version, kind):
        raise ConfigError(
            [f'no kind "{found[1]}" is registered for version "{found[0]}"; expected {api_version}, Kind={kind}']
        )


def _expected(field: str, api_version: str, kind: str) -> str:
    return kind if field == "kind" else api_version


# --- stages -------------------------------------------------------------------------------------------------------


def _finish(
    wire: WireConfiguration, gates: FeatureGates, problems: Problems, adjust: Adjust | None
) -> SchedulerConfiguration:
    profiles = [
        _complete_profile(wire_profile, index, gates, problems)
        for index, wire_profile in enumerate(_named(wire.profiles))
    ]
    configuration = _complete(wire)
    if adjust is not None:
        configuration = adjust(configuration)
    found = problems.sorted()
    unread = tuple(problem.path for problem in found)
    found += [problem for problem in validate(configuration, profiles, gates) if not _is_under(problem.path, unread)]
    found += _fit_args_missing(wire.extenders, profiles)
    if found:
        raise ConfigError(found)
    ignored = tuple(_ignored_resources(wire.extenders))
    return msgspec.structs.replace(configuration, profiles=tuple(_profile(profile, ignored) for profile in profiles))


def _is_under(path: str, roots: tuple[str, ...]) -> bool:
    """Say whether a value lies where something could not be read: what is said about it would only confuse."""
    return any(path == root or path.startswith((f"{root}.", f"{root}[")) for root in roots)


def _named(profiles: tuple[WireProfile, ...]) -> tuple[WireProfile, ...]:
    """Give a single profile its default name; several must be named in the file."""
    if not profiles:
        return (WireProfile(scheduler_name=DEFAULT_SCHEDULER_NAME),)
    if len(profiles) == 1 and profiles[0].scheduler_name is None:
        return (msgspec.structs.replace(profiles[0], scheduler_name=DEFAULT_SCHEDULER_NAME),)
    return profiles


def _complete(wire: WireConfiguration) -> SchedulerConfiguration:
    given: dict[str, Any] = {
        "parallelism": wire.parallelism,
        "percentage_of_nodes_to_score": wire.percentage_of_nodes_to_score,
        "pod_initial_backoff_s": wire.pod_initial_backoff_seconds,
        "pod_max_backoff_s": wire.pod_max_backoff_seconds,
    }
    return SchedulerConfiguration(
        leader_election=wire.leader_election,
        client_connection=wire.client_connection,
        extenders=tuple(
            msgspec.structs.replace(extender, http_timeout_s=extender.http_timeout_s or DEFAULT_EXTENDER_TIMEOUT_S)
            for extender in wire.extenders
        ),
        enable_profiling=wire.enable_profiling,
        enable_contention_profiling=wire.enable_contention_profiling,
        delay_cache_until_active=wire.delay_cache_until_active,
        **{name: value for name, value in given.items() if value is not None},
    )


def _complete_profile(wire: WireProfile, index: int, gates: FeatureGates, problems: Problems) -> CompletedProfile:
    plugins = merge_plugins(default_plugins(gates), wire.plugins)
    entries = [
        CompletedPluginConfig(entry.name, _decode_args(entry, index, number, gates, problems))
        for number, entry in enumerate(wire.plugin_config)
    ]
    configured = {entry.name for entry in entries}
    entries += [
        CompletedPluginConfig(name, completed(ARGS[name](), gates))
        for name in sorted(set(plugins.names()) & ARGS.keys() - configured)
    ]
    return CompletedProfile(wire.scheduler_name or "", wire.percentage_of_nodes_to_score, plugins, tuple(entries))


def _decode_args(
    entry: WirePluginConfig, profile_index: int, index: int, gates: FeatureGates, problems: Problems
) -> Any:
    kind = ARGS.get(entry.name)
    if kind is None:
        return {} if entry.args is None else entry.args
    path: Path = ("profiles", profile_index, "pluginConfig", index, "args")
    found = Problems()
    args = decode_into(kind, entry.args, (), found, skip=_HEADER)
    wrong_kind = _wrong_kind(entry)
    if wrong_kind:
        problems.add(path, f"decoding .profiles[{profile_index}].pluginConfig[{index}]: {wrong_kind}")
    for problem in found.sorted():
        where = (*path, problem.path) if problem.path else path
        problems.add(where, _args_text(entry.name, profile_index, index, problem.text))
    assert isinstance(args, Part)
    return completed(args, gates)


def _args_text(name: str, profile_index: int, index: int, text: str) -> str:
    """Wrap a problem of args as upstream does, each layer saying again that it is about strictness."""
    strict = _STRICT if text.startswith(_STRICT) else ""
    where = f"decoding .profiles[{profile_index}].pluginConfig[{index}]"
    return f"{strict}{where}: {strict}decoding args for plugin {name}: {text}"


def _wrong_kind(entry: WirePluginConfig) -> str | None:
    if not isinstance(entry.args, dict):
        return None
    version, kind = entry.args.get("apiVersion") or API_VERSION, entry.args.get("kind") or f"{entry.name}Args"
    if version == API_VERSION and kind == f"{entry.name}Args":
        return None
    group = API_VERSION.partition("/")[0]
    if version == API_VERSION and isinstance(kind, str) and kind.removesuffix("Args") in ARGS:
        return f"args for plugin {entry.name} were not of type {entry.name}Args.{group}, got {kind}.{group}"
    return f'decoding args for plugin {entry.name}: no kind "{kind}" is registered for version "{version}"'


# --- resources that extenders account for ---------------------------------------------------------------------------


def _ignored_resources(extenders: tuple[Extender, ...]) -> Iterator[str]:
    for extender in extenders:
        yield from (resource.name for resource in extender.managed_resources if resource.ignored_by_scheduler)


def _fit_args_missing(extenders: tuple[Extender, ...], profiles: list[CompletedProfile]) -> Iterator[Problem]:
    if not any(_ignored_resources(extenders)):
        return
    for index, profile in enumerate(profiles):
        if not any(entry.name == FIT for entry in profile.plugin_config):
            path = join(("profiles", index, "pluginConfig"))
            yield Problem(path, f"{path}: couldn't build extenders: can't find NodeResourcesFitArgs in plugin config")


def _profile(profile: CompletedProfile, ignored: tuple[str, ...]) -> Profile:
    args = {entry.name: entry.args for entry in profile.plugin_config}
    if ignored:
        # parity: what extenders account for replaces the profile's own list
        fit: NodeResourcesFitArgs = args[FIT]
        args[FIT] = msgspec.structs.replace(fit, ignored_resources=ignored)
    return Profile(
        scheduler_name=profile.scheduler_name,
        percentage_of_nodes_to_score=profile.percentage_of_nodes_to_score,
        plugins=profile.plugins,
        plugin_config=args,
    )
