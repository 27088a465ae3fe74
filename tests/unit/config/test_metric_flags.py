"""The flags that restrict metrics, with kube-scheduler's own texts (tried with its 1.36.3 binary)."""

import pytest

from scheduler.config.errors import ConfigError
from scheduler.config.flags import complete, parse_flags

KEY_RULE = (
    "must have keys with format `metricName,labelName` where metricName matches "
    '"[a-zA-Z_:][a-zA-Z0-9_:]*" and labelName matches "[a-zA-Z_][a-zA-Z0-9_]*"'
)
VERSION = (
    "metrics.showHiddenMetricsForVersion: Invalid value: \"1.34\": must be omitted or have the value '1.35'; "
    "only the previous minor version is allowed"
)
NAMES = (
    'metrics.disabledMetrics: Invalid value: ["a-b"]: must be fully qualified metric names matching '
    '"^[a-zA-Z_:][a-zA-Z0-9_:]*$", got "a-b"'
)
FILES = {
    "good.yaml": b'"scheduler_pending_pods,queue": "active,gated"\n"m,l": ""\n',
    "empty.yaml": b"",
    "bad-key.yaml": b"a: b\n",
    "deep.yaml": b'allowListMapping:\n  "m,l": "v"\n',
    "broken.yaml": b"[1\n",
}


def read(path):
    if path not in FILES:
        raise ConfigError([f"open {path}: no such file or directory"])
    return FILES[path]


def settings(*words):
    return complete(parse_flags(words), read).metrics


def test_nothing_given_restricts_nothing():
    assert (settings().disabled, settings().allowed_labels) == (frozenset(), {})


def test_the_manifest_says_the_same_as_the_flag():
    """The same mapping, from a file or from flags."""
    expected = {"scheduler_pending_pods,queue": "active,gated", "m,l": ""}
    assert settings("--allow-metric-labels-manifest=good.yaml").allowed_labels == expected
    flags = [f"--allow-metric-labels={key}={values}" for key, values in expected.items()]
    assert settings(*flags).allowed_labels == expected
    assert settings("--allow-metric-labels-manifest=empty.yaml").allowed_labels == {}


@pytest.mark.parametrize("word", ["--allow-metric-labels-manifest=good.yaml", "--show-hidden-metrics-for-version=1.35"])
def test_nobody_is_told_that_the_flag_has_no_effect(word):
    assert complete(parse_flags([word]), read).notes == ()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--show-hidden-metrics-for-version=1.34"], VERSION),
        (["--disabled-metrics=a-b"], NAMES),
        (["--allow-metric-labels=foo=v1"], f'metrics.allowListMapping: Invalid value: {{"foo":"v1"}}: {KEY_RULE}'),
        (
            ["--allow-metric-labels-manifest=nowhere"],
            (
                'metrics.allowListMappingManifest: Invalid value: "nowhere": failed to read allow list manifest: '
                "open nowhere: no such file or directory"
            ),
        ),
        (
            ["--allow-metric-labels-manifest=bad-key.yaml"],
            (
                'metrics.allowListMappingManifest: Invalid value: "bad-key.yaml": invalid allow list mapping in manifest: '
                f'[metrics.allowListMappingManifest: Invalid value: {{"a":"b"}}: {KEY_RULE}]'
            ),
        ),
        (
            ["--allow-metric-labels=m,l=v1", "--allow-metric-labels-manifest=good.yaml"],
            (
                'metrics: Invalid value: {"allowListMapping":{"m,l":"v1"},"allowListMappingManifest":"good.yaml"}: '
                "cannot specify both allowListMapping and allowListMappingManifest"
            ),
        ),
        (["--show-hidden-metrics-for-version=1.34", "--disabled-metrics=a-b"], f"[{VERSION}, {NAMES}]"),
    ],
)
def test_what_is_wrong_is_said_in_upstreams_words(words, text):
    with pytest.raises(ConfigError) as caught:
        settings(*words)
    assert str(caught.value) == text


@pytest.mark.parametrize("name", ["deep.yaml", "broken.yaml"])
def test_a_manifest_that_is_no_mapping_of_texts_is_refused(name):
    """The mapping stands at the top of the file, although upstream's help text shows it one level down."""
    with pytest.raises(ConfigError, match=rf'"{name}": failed to parse allow list manifest: '):
        settings(f"--allow-metric-labels-manifest={name}")
