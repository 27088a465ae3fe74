"""The daemon's command line: kube-scheduler's, plus what is Podium's own.

``--flag=value``, ``--flag value``, ``--bool``, ``--bool=false``, ``-v 2``, ``-v=2``, ``-v2``; no abbreviations and no
positional arguments. `parse_flags` reads the words, `complete` reads the files they name and applies the precedence
(spec section 6.1):

* without ``--config``: defaults, changed by the deprecated and the leader-election flags that were given;
* with ``--config``: the file, changed by the leader-election flags that were given; deprecated ones are ignored
  (``differs:`` ``--kubeconfig`` still counts if the file names no kubeconfig);
* ``--master``, serving, authentication, authorization, metrics, logging flags and feature gates always apply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from scheduler.config.errors import ConfigError, UsageError, go_value
from scheduler.config.flag_table import FLAGS, INERT, SHORT, Flag
from scheduler.config.flag_values import REPEATABLE, WITHOUT_VALUE, FlagValueError, read_value
from scheduler.config.gates import FeatureGates, parse_feature_gates
from scheduler.config.load import Loaded, default_configuration, load_with_notes
from scheduler.config.metric_flags import MetricSettings, metric_settings
from scheduler.config.options import SchedulerOptions, load_options
from scheduler.config.types import SchedulerConfiguration

__all__ = ["CompletedConfig", "Flags", "complete", "parse_flags", "read_file"]

_MAX_PORT = 65535
_LOGGING_FORMATS = ("text", "json")
_TLS_VERSIONS = ("", "VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13")
_LEADER_ELECTION = {
    "leader-elect": "leader_elect",
    "leader-elect-lease-duration": "lease_duration_s",
    "leader-elect-renew-deadline": "renew_deadline_s",
    "leader-elect-retry-period": "retry_period_s",
    "leader-elect-resource-lock": "resource_lock",
    "leader-elect-resource-name": "resource_name",
    "leader-elect-resource-namespace": "resource_namespace",
}
_CONNECTION = {
    "kubeconfig": "kubeconfig",
    "kube-api-content-type": "content_type",
    "kube-api-qps": "qps",
    "kube-api-burst": "burst",
}
_IGNORED_WITH_CONFIG = ("profiling", "contention-profiling", "kube-api-content-type", "kube-api-qps", "kube-api-burst")


@dataclass(frozen=True, slots=True)
class Flags:
    """The command line as read.

    Attributes:
        given: the values of the flags that stood there.
    """

    given: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        """Return the value of a flag, given or default; durations in seconds."""
        flag = FLAGS[name]
        return self.given.get(name, flag.default)

    def is_given(self, name: str) -> bool:
        """Say whether the flag stood on the command line."""
        return name in self.given


@dataclass(frozen=True, slots=True)
class CompletedConfig:
    """Everything the daemon needs to know.

    Attributes:
        configuration: from ``--config`` or the defaults, with the flags that override it.
        options: Podium's own settings.
        flags: serving, authentication, authorization, metrics and logging settings, by flag name.
        gates: the feature gates.
        metrics: what the flags ask of the metrics.
        master: address of the API server; "" leaves it to the kubeconfig.
        pod_max_in_unschedulable_s: after this time an unschedulable pod is tried again without an event.
        notes: sentences to be said once: what was accepted without an effect.
    """

    configuration: SchedulerConfiguration
    options: SchedulerOptions
    flags: Flags
    gates: FeatureGates
    metrics: MetricSettings
    master: str
    pod_max_in_unschedulable_s: float
    notes: tuple[str, ...]


# --- reading words --------------------------------------------------------------------------------------------------


def parse_flags(argv: Sequence[str]) -> Flags:
    """Read the command line, without the program's name.

    Raises:
        UsageError: an unknown flag, a bad or missing value, or a positional argument.
    """
    given: dict[str, Any] = {}
    words = list(argv)
    position = 0
    while position < len(words):
        word = words[position]
        position += 1
        if word == "--":
            _refuse_positional(words[position:])
            break
        if not word.startswith("-") or word == "-":
            _refuse_positional([word])
            continue
        flag, text = _split(word)
        if text is None:
            text = WITHOUT_VALUE.get(flag.kind)
        if text is None:
            if position == len(words):
                raise UsageError(f"flag needs an argument: {_as_written(word)}")
            text = words[position]
            position += 1
        _set(given, flag, text)
    _check_values(given)
    return Flags(given)


def _refuse_positional(words: Sequence[str]) -> None:
    if any(words):  # parity: empty arguments are let through
        raise UsageError(f'"podium run" does not take any arguments, got {go_value(list(words))}')


def _split(word: str) -> tuple[Flag, str | None]:
    if not word.startswith("--"):
        return _split_short(word)
    body = word[2:]
    if not body or body[0] in "-=":
        raise UsageError(f"bad flag syntax: {word}")
    name, equals, text = body.partition("=")
    if name not in FLAGS:
        raise UsageError(f"unknown flag: --{name}")
    return FLAGS[name], text if equals else None


def _split_short(word: str) -> tuple[Flag, str | None]:
    letter, rest = word[1], word[2:]
    if letter not in SHORT:
        raise UsageError(f"unknown shorthand flag: '{letter}' in {word}")
    flag = FLAGS[SHORT[letter]]
    if flag.kind in WITHOUT_VALUE:
        return flag, None
    return flag, rest.removeprefix("=") if rest else None


def _as_written(word: str) -> str:
    return word if word.startswith("--") else f"'{word[1]}' in {word}"


def _set(given: dict[str, Any], flag: Flag, text: str) -> None:
    try:
        value = read_value(flag.kind, text)
    except FlagValueError as error:
        name = next(
            (f"-{letter}, --{flag.name}" for letter, name in SHORT.items() if name == flag.name), f"--{flag.name}"
        )
        raise UsageError(f"invalid argument {go_value(text)} for {go_value(name)} flag: {error}") from None
    if flag.kind in REPEATABLE and flag.name in given:
        earlier = given[flag.name]
        value = {**earlier, **value} if isinstance(earlier, dict) else (*earlier, *value)
    given[flag.name] = value


def _check_values(given: Mapping[str, Any]) -> None:
    port = given.get("secure-port", 1)
    if not 0 <= port <= _MAX_PORT:
        raise UsageError(f"--secure-port {port} must be between 0 and {_MAX_PORT}, inclusive; 0 turns HTTPS off")
    if given.get("logging-format", "text") not in _LOGGING_FORMATS:
        raise UsageError(f"format: Invalid value: {go_value(given['logging-format'])}: Unsupported log format")
    if given.get("tls-min-version", "") not in _TLS_VERSIONS:
        raise UsageError(f"unknown tls version {go_value(given['tls-min-version'])}")
    parse_feature_gates(given.get("feature-gates", ()))


# --- completing -----------------------------------------------------------------------------------------------------


def read_file(path: str) -> bytes:
    """Return the content of a file.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigError([f"open {path}: {(error.strerror or str(error)).lower()}"]) from None


def complete(flags: Flags, read: Callable[[str], bytes] = read_file) -> CompletedConfig:
    """Read the files that the flags name and apply the precedence.

    Args:
        flags: the command line.
        read: returns the content of a file; raises ConfigError if it cannot.

    Raises:
        ConfigError: with everything that is wrong with one of the files.
        UsageError: a feature gate that does not exist or cannot be changed.
    """
    gates = parse_feature_gates(flags["feature-gates"])
    if flags["config"]:
        loaded = load_with_notes(read(flags["config"]), gates, lambda found: _over_file(flags, found))
    else:
        loaded = Loaded(default_configuration(gates, lambda found: _over_defaults(flags, found)), ())
    options = load_options(read(flags["options"])) if flags["options"] else SchedulerOptions()
    return CompletedConfig(
        configuration=loaded.configuration,
        options=options,
        flags=flags,
        gates=gates,
        metrics=_metrics(flags, read),
        master=flags["master"],
        pod_max_in_unschedulable_s=flags["pod-max-in-unschedulable-pods-duration"],
        notes=(*loaded.notes, *_notes(flags, gates, loaded.configuration)),
    )


def _metrics(flags: Flags, read: Callable[[str], bytes]) -> MetricSettings:
    return metric_settings(
        hidden_for_version=flags["show-hidden-metrics-for-version"],
        disabled=flags["disabled-metrics"],
        allowed_labels=flags["allow-metric-labels"],
        manifest=flags["allow-metric-labels-manifest"],
        read=read,
    )


def _over_file(flags: Flags, configuration: SchedulerConfiguration) -> SchedulerConfiguration:
    connection = configuration.client_connection
    if flags["kubeconfig"] and not connection.kubeconfig:
        connection = msgspec.structs.replace(connection, kubeconfig=flags["kubeconfig"])
    configuration = msgspec.structs.replace(configuration, client_connection=connection)
    return _with_leader_election(flags, configuration)


def _over_defaults(flags: Flags, configuration: SchedulerConfiguration) -> SchedulerConfiguration:
    connection = msgspec.structs.replace(configuration.client_connection, **_given(flags, _CONNECTION))
    profiling = _given(flags, {"profiling": "enable_profiling", "contention-profiling": "enable_contention_profiling"})
    configuration = msgspec.structs.replace(configuration, client_connection=connection, **profiling)
    return _with_leader_election(flags, configuration)


def _with_leader_election(flags: Flags, configuration: SchedulerConfiguration) -> SchedulerConfiguration:
    election = msgspec.structs.replace(configuration.leader_election, **_given(flags, _LEADER_ELECTION))
    return msgspec.structs.replace(configuration, leader_election=election)


def _given(flags: Flags, names: Mapping[str, str]) -> dict[str, Any]:
    return {attribute: flags[name] for name, attribute in names.items() if flags.is_given(name)}


def _notes(flags: Flags, gates: FeatureGates, configuration: SchedulerConfiguration) -> Iterator[str]:
    for name in FLAGS:
        if flags.is_given(name) and name in INERT and not (flags["config"] and name in _IGNORED_WITH_CONFIG):
            yield f"--{name} is accepted and has no effect here"
    if flags["config"]:
        for name in _IGNORED_WITH_CONFIG:
            if flags.is_given(name):
                yield f"--{name} is ignored: a configuration file was given"
        given = flags["kubeconfig"]
        if given and given != configuration.client_connection.kubeconfig:
            yield "--kubeconfig is ignored: the configuration file names a kubeconfig"
    for name in sorted(gates.without_effect()):
        yield f"feature gate {name} is accepted and has no effect here"
