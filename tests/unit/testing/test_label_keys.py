"""merge_label_keys: what an API server writes into the selectors of a new pod."""

import copy

import pytest

from scheduler.testing.apiserver.label_keys import merge_label_keys
from scheduler.testing.builders import pod

LABELS = {"version": "v2", "app": "web"}
IN_V2 = {"key": "version", "operator": "In", "values": ["v2"]}
NOT_V2 = {"key": "version", "operator": "NotIn", "values": ["v2"]}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def merged(made):
    manifest = made.labels(LABELS).manifest()
    merge_label_keys(manifest)
    once = copy.deepcopy(manifest)
    merge_label_keys(manifest)
    assert manifest == once, "a second time changes nothing"
    return manifest["spec"]


@pytest.mark.parametrize(
    ("made", "find"),
    [
        pytest.param(
            pod().spread("zone", {"app": "web"}, matchLabelKeys=["version"]),
            lambda spec: spec["topologySpreadConstraints"][0],
            id="spread constraint",
        ),
        pytest.param(
            pod().pod_affinity("zone", {"app": "web"}, matchLabelKeys=["version"]),
            lambda spec: spec["affinity"]["podAffinity"][REQUIRED][0],
            id="required affinity",
        ),
        pytest.param(
            pod().pod_affinity("zone", {"app": "web"}, weight=1, matchLabelKeys=["version"]),
            lambda spec: spec["affinity"]["podAffinity"][PREFERRED][0]["podAffinityTerm"],
            id="preferred affinity",
        ),
        pytest.param(
            pod().pod_anti_affinity("zone", {"app": "web"}, matchLabelKeys=["version"]),
            lambda spec: spec["affinity"]["podAntiAffinity"][REQUIRED][0],
            id="required anti-affinity",
        ),
        pytest.param(
            pod().pod_anti_affinity("zone", {"app": "web"}, weight=1, matchLabelKeys=["version"]),
            lambda spec: spec["affinity"]["podAntiAffinity"][PREFERRED][0]["podAffinityTerm"],
            id="preferred anti-affinity",
        ),
    ],
)
def test_every_rule_with_a_selector(made, find):
    """The pod's own value becomes an expression; the rest of the selector stays."""
    rule = find(merged(made))

    assert rule["labelSelector"] == {"matchLabels": {"app": "web"}, "matchExpressions": [IN_V2]}
    assert rule["matchLabelKeys"] == ["version"]


def test_mismatch_keys_come_after_match_keys():
    """They exclude the pod's own value."""
    made = pod().pod_anti_affinity("zone", {}, matchLabelKeys=["app"], mismatchLabelKeys=["version"])
    term = merged(made)["affinity"]["podAntiAffinity"][REQUIRED][0]

    in_web = {"key": "app", "operator": "In", "values": ["web"]}
    assert term["labelSelector"]["matchExpressions"] == [in_web, NOT_V2]


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(pod().spread("zone", {"app": "web"}, matchLabelKeys=["absent"]), id="a key that the pod lacks"),
        pytest.param(pod().spread("zone", matchLabelKeys=["version"]), id="no selector"),
        pytest.param(pod().spread("zone", {"app": "web"}), id="no keys"),
        pytest.param(pod(), id="no rules"),
    ],
)
def test_nothing_to_merge(made):
    """The manifest stays as it is."""
    manifest = made.labels(LABELS).manifest()
    before = copy.deepcopy(manifest)
    merge_label_keys(manifest)
    assert manifest == before
