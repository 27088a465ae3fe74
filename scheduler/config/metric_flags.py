"""The flags that restrict metrics: ``--disabled-metrics``, ``--allow-metric-labels`` and its manifest, and hidden ones.

Rules and texts are upstream's (``component-base/metrics/api/v1/config.go``), under the path ``metrics``.
``--show-hidden-metrics-for-version`` takes the minor version before the one we are compatible with, as there; nothing
more is to do, because kube-scheduler 1.36 hides no metric.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from scheduler.config.document import parse_document
from scheduler.config.errors import ConfigError, go_value

__all__ = ["MetricSettings", "metric_settings"]

_LABEL = "[a-zA-Z_][a-zA-Z0-9_]*"
_NAME = "[a-zA-Z_:][a-zA-Z0-9_:]*"
_KEY = re.compile(f"{_NAME},{_LABEL}")
_KEY_RULE = (
    f"must have keys with format `metricName,labelName` where metricName matches {go_value(_NAME)} and labelName "
    f"matches {go_value(_LABEL)}"
)
_PREVIOUS_VERSION = "1.35"
_MAPPING = "metrics.allowListMapping"
_MANIFEST = "metrics.allowListMappingManifest"


@dataclass(frozen=True, slots=True)
class MetricSettings:
    """What the flags ask of the metrics.

    Attributes:
        disabled: full names of metrics to leave out.
        allowed_labels: "METRIC,LABEL" → allowed values, separated by commas; all others are shown as ``unexpected``.
    """

    disabled: frozenset[str] = frozenset()
    allowed_labels: Mapping[str, str] = field(default_factory=dict)


def metric_settings(
    *,
    hidden_for_version: str,
    disabled: Sequence[str],
    allowed_labels: Mapping[str, str],
    manifest: str,
    read: Callable[[str], bytes],
) -> MetricSettings:
    """Check the flags and read the manifest.

    Args:
        hidden_for_version: ``--show-hidden-metrics-for-version``, or "".
        disabled: ``--disabled-metrics``.
        allowed_labels: ``--allow-metric-labels``.
        manifest: path of ``--allow-metric-labels-manifest``, or "": a YAML file that says the same.
        read: returns the content of a file; raises ConfigError if it cannot.

    Raises:
        ConfigError: with everything that is wrong with them.
    """
    errors = [*_version_errors(hidden_for_version), *_name_errors(disabled), *_key_errors(_MAPPING, allowed_labels)]
    from_file: Mapping[str, str] = {}
    if manifest:
        try:
            from_file = _read_manifest(manifest, read)
        except ConfigError as error:
            errors += error.problems
    if allowed_labels and manifest:
        both = {"allowListMapping": dict(allowed_labels), "allowListMappingManifest": manifest}
        errors.append(
            f"metrics: Invalid value: {go_value(both)}: cannot specify both allowListMapping and "
            "allowListMappingManifest"
        )
    if errors:
        raise ConfigError(errors)
    return MetricSettings(frozenset(disabled), allowed_labels or from_file)


def _version_errors(version: str) -> Iterator[str]:
    if version not in {"", _PREVIOUS_VERSION}:
        yield (
            f"metrics.showHiddenMetricsForVersion: Invalid value: {go_value(version)}: must be omitted or have the "
            f"value '{_PREVIOUS_VERSION}'; only the previous minor version is allowed"
        )


def _name_errors(names: Sequence[str]) -> Iterator[str]:
    for name in names:
        if re.fullmatch(_NAME, name) is None:
            yield (
                f"metrics.disabledMetrics: Invalid value: {go_value(list(names))}: must be fully qualified metric "
                f"names matching {go_value(f'^{_NAME}$')}, got {go_value(name)}"
            )
            return


def _key_errors(path: str, mapping: Mapping[str, str]) -> Iterator[str]:
    if any(_KEY.fullmatch(key) is None for key in mapping):
        yield f"{path}: Invalid value: {go_value(dict(mapping))}: {_KEY_RULE}"


def _read_manifest(path: str, read: Callable[[str], bytes]) -> Mapping[str, str]:
    where = f"{_MANIFEST}: Invalid value: {go_value(path)}:"
    try:
        text = read(path)
    except ConfigError as error:
        words = "; ".join(error.problems)
        raise ConfigError([f"{where} failed to read allow list manifest: {words}"]) from None
    try:
        mapping = parse_document(text).value or {}
    except ConfigError as error:
        # differs: the words after the last colon are our reader's.
        words = "; ".join(error.problems)
        raise ConfigError([f"{where} failed to parse allow list manifest: {words}"]) from None
    if not isinstance(mapping, dict) or not all(isinstance(word, str) for pair in mapping.items() for word in pair):
        raise ConfigError([f"{where} failed to parse allow list manifest: it must map texts to texts"])
    for problem in _key_errors(_MANIFEST, mapping):
        raise ConfigError([f"{where} invalid allow list mapping in manifest: [{problem}]"])
    return mapping
