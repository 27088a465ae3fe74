"""What the chart renders: valid on five versions of Kubernetes, hardened, and never two things of one name."""

from __future__ import annotations

import json
import re

import kubernetes_validate
import pytest
import yaml

from scheduler.config.flags import complete, parse_flags
from tests.chart.chart_readme import described
from tests.chart.rendering import (
    CHART,
    CLUSTER_SCOPED,
    VALUE_SETS,
    Manifest,
    RenderError,
    documents,
    helm,
    helm_template,
    identity,
    one,
    rendered,
)

MINORS = ["1.32", "1.33", "1.34", "1.35", "1.36"]
OTHER_PROJECTS = {"monitoring.coreos.com/v1", "cert-manager.io/v1"}
"""Kinds that are not Kubernetes' own; `test_install` has the API server judge them by their real definitions."""


NAMED_BY_VALUES = {"namespaced-lease", "two-profiles", "replace-default"}
"""Sets that name schedulers themselves, as an operator would for each release anew."""


@pytest.mark.parametrize("value_set", VALUE_SETS)
def test_every_value_set_passes_lint(value_set: str) -> None:
    """`helm lint --strict` has nothing to say."""
    helm("lint", "--strict", "--quiet", str(CHART), "--values", str(CHART / "ci" / f"{value_set}.yaml"))


@pytest.mark.parametrize("value_set", VALUE_SETS)
def test_every_object_is_valid_on_five_minors(value_set: str) -> None:
    """No unknown, missing or mistyped field, by the API's own schemas in their strict form."""
    for manifest in rendered(value_set):
        if manifest["apiVersion"] not in OTHER_PROJECTS:
            for minor in MINORS:
                kubernetes_validate.validate(manifest, minor, strict=True)


def test_the_validation_sees_a_misspelt_field() -> None:
    """A strict check that lets a wrong field pass would prove nothing."""
    deployment = json.loads(json.dumps(one(rendered("minimal"), "Deployment")))
    deployment["spec"]["replicaz"] = 1
    with pytest.raises(kubernetes_validate.ValidationError, match="replicaz"):
        kubernetes_validate.validate(deployment, MINORS[0], strict=True)


@pytest.mark.parametrize("value_set", VALUE_SETS)
def test_every_object_has_one_name_with_the_releases_in_it(value_set: str) -> None:
    """No object stands there twice, and each is the release's."""
    manifests = rendered(value_set)
    identities = [identity(m) for m in manifests]
    assert len(set(identities)) == len(identities)
    for manifest in manifests:
        assert manifest["metadata"]["name"].startswith("podium"), identity(manifest)
        if manifest["kind"] != "ConfigMap" or "labels" in manifest["metadata"]:
            assert manifest["metadata"]["labels"]["app.kubernetes.io/instance"] == "podium"
        assert bool(manifest["metadata"].get("namespace")) == (
            manifest["kind"] not in CLUSTER_SCOPED and not manifest["metadata"]["name"].endswith(("-map", "-text"))
        )


@pytest.mark.parametrize("value_set", sorted(set(VALUE_SETS) - NAMED_BY_VALUES))
def test_two_releases_share_no_name(value_set: str) -> None:
    """Nor a selector, a lease or a schedulerName; in one namespace."""
    first, second = rendered(value_set), helm_template(value_set, release="batch")
    assert not {identity(m) for m in first} & {identity(m) for m in second}
    selectors = [one(m, "Deployment")["spec"]["selector"]["matchLabels"] for m in (first, second)]
    assert selectors[0] != selectors[1]
    configurations = [configuration(m) for m in (first, second)]
    assert configurations[0]["leaderElection"]["resourceName"] != configurations[1]["leaderElection"]["resourceName"]
    assert configurations[0]["profiles"][0]["schedulerName"] == "podium"
    assert configurations[1]["profiles"][0]["schedulerName"] == "batch-podium"


def test_names_that_yaml_takes_for_something_else() -> None:
    """A release `123` in a namespace `on` is unusual, and valid."""
    odd = {"fullnameOverride": "1e3", "serviceAccount": {"name": "no"}, "podSchedulerName": "0x1"}
    manifests = helm_template(values=odd, release="123", namespace="on")
    for manifest in manifests:
        kubernetes_validate.validate(manifest, MINORS[-1], strict=True)
    assert configuration(manifests)["leaderElection"]["resourceName"] == "1e3"
    assert configuration(manifests)["leaderElection"]["resourceNamespace"] == "on"


@pytest.mark.parametrize("value_set", VALUE_SETS)
def test_the_pods_are_restricted(value_set: str) -> None:
    """Pod Security "restricted", and more: a root that cannot be written, a token that runs out."""
    spec = one(rendered(value_set), "Deployment")["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert spec["securityContext"] == {
        "runAsNonRoot": True, "runAsUser": 65532, "runAsGroup": 65532, "seccompProfile": {"type": "RuntimeDefault"},
    }  # fmt: skip
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
    assert {kind for volume in spec["volumes"] for kind in volume if kind != "name"} <= {
        "configMap", "projected", "secret", "emptyDir",
    }  # fmt: skip
    assert spec["automountServiceAccountToken"] is False
    (token,) = [volume for volume in spec["volumes"] if volume["name"] == "token"]
    assert token["projected"]["sources"][0]["serviceAccountToken"] == {"path": "token", "expirationSeconds": 3600}
    assert set(container["resources"]["requests"]) == {"cpu", "memory"}


@pytest.mark.parametrize("value_set", VALUE_SETS)
def test_the_daemon_takes_flags_configuration_and_options(value_set: str, tmp_path) -> None:
    """What the chart renders is read by Podium's own loaders, as strictly as at the start."""
    manifests = rendered(value_set)
    for name, text in one(manifests, "ConfigMap", "podium-config")["data"].items():
        (tmp_path / name).write_text(text)
    arguments = one(manifests, "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"]
    assert arguments[0] == "run"
    local = [argument.replace("/etc/podium/", f"{tmp_path}/") for argument in arguments[1:]]
    completed = complete(parse_flags(local))
    profiles = {profile.scheduler_name for profile in completed.configuration.profiles}
    assert profiles == {p["schedulerName"] for p in configuration(manifests)["profiles"]}
    assert completed.flags["secure-port"] == 10259


def test_a_change_of_the_configuration_rolls_the_pods() -> None:
    """The checksum moves with the configuration, and with nothing else."""

    def checksum(**values) -> str:
        deployment = one(helm_template(values=values), "Deployment")
        return deployment["spec"]["template"]["metadata"]["annotations"]["checksum/config"]

    assert checksum() == checksum(resources={})
    assert checksum() != checksum(config={"podMaxBackoffSeconds": 20})
    assert checksum() != checksum(options={"bindConcurrency": 8})


# --- features --------------------------------------------------------------------------------------------------------

DYNAMIC_RESOURCES = {
    (verb, "resource.k8s.io", resource)
    for verb in ("list", "watch")
    for resource in ("resourceclaims", "resourceslices", "deviceclasses")
}
LIVE_PROFILES = DYNAMIC_RESOURCES | {
    ("list", "scheduling.podium.dev", "schedulerprofiles"),
    ("watch", "scheduling.podium.dev", "schedulerprofiles"),
    ("patch", "scheduling.podium.dev", "schedulerprofiles/status"),
}
RIGHTS_OF_FEATURES = [
    ({"rbac": {"preemption": False}}, {("delete", "", "pods")}, set()),
    (
        {"rbac": {"volumeBinding": False}},
        {("patch", "", "persistentvolumes"), ("patch", "", "persistentvolumeclaims")},
        set(),
    ),
    (
        {"rbac": {"dynamicResources": True}},
        set(),
        DYNAMIC_RESOURCES,
    ),
    (
        {"rbac": {"extra": [{"apiGroups": ["example.org"], "resources": ["widgets"], "verbs": ["list"]}]}},
        set(),
        {("list", "example.org", "widgets")},
    ),
    ({"liveProfiles": {"enabled": True}}, set(), LIVE_PROFILES),
    ({"options": {"liveProfiles": {"enabled": True}}}, set(), LIVE_PROFILES),
    ({"liveProfiles": {"enabled": True}, "options": {"liveProfiles": {"enabled": False}}}, set(), set()),
    ({"leaderElection": {"enabled": False}, "replicaCount": 1},
     {("create", "coordination.k8s.io", "leases"), ("get", "coordination.k8s.io", "leases"),
      ("update", "coordination.k8s.io", "leases")}, set()),
]  # fmt: skip


@pytest.mark.parametrize(("values", "without", "more"), RIGHTS_OF_FEATURES)
def test_rights_follow_features(values, without, more) -> None:
    """A right is granted only while the feature that uses it is on."""
    usual = rights(helm_template())
    assert without <= usual
    assert rights(helm_template(values=values)) == (usual - without) | more


@pytest.mark.parametrize("value_set", VALUE_SETS)
def test_dangerous_rights_are_never_granted(value_set: str) -> None:
    """Nothing about secrets, no writes to pods or nodes themselves, no wildcard; leases by name."""
    granted = rights(rendered(value_set))
    assert not [right for right in granted if "*" in right or right[2] == "secrets"]
    assert {verb for verb, _, resource in granted if resource in ("pods", "nodes")} <= {
        "get",
        "list",
        "watch",
        "delete",
    }
    roles = [m for m in rendered(value_set) if m["kind"] == "Role"]
    for rule in (rule for role in roles for rule in role["rules"] if rule["verbs"] != ["create"]):
        assert rule["resourceNames"] == [configuration(rendered(value_set))["leaderElection"]["resourceName"]]


def test_the_lease_goes_where_it_is_sent() -> None:
    """Role, binding and configuration agree about namespace and name."""
    manifests = rendered("namespaced-lease")
    role = one(manifests, "Role")
    election = configuration(manifests)["leaderElection"]
    assert (role["metadata"]["namespace"], election["resourceNamespace"]) == ("leases", "leases")
    assert role["rules"][1]["resourceNames"] == [election["resourceName"]] == ["batch-scheduler"]
    by_config = helm_template(values={"config": {"leaderElection": {"resourceName": "x", "resourceNamespace": "y"}}})
    assert one(by_config, "Role")["metadata"]["namespace"] == "y"
    assert one(by_config, "Role")["rules"][1]["resourceNames"] == ["x"]


def test_a_budget_only_where_it_does_not_block() -> None:
    """With one replica a disruption budget could only hold up a drain."""
    assert "PodDisruptionBudget" not in {m["kind"] for m in rendered("minimal")}
    assert one(rendered("ha"), "PodDisruptionBudget")["spec"]["maxUnavailable"] == 1


def test_system_priority_only_in_kube_system() -> None:
    """Other namespaces may not use the system's classes everywhere."""
    inside = one(helm_template(), "Deployment")["spec"]["template"]["spec"]
    outside = one(helm_template(namespace="scheduling"), "Deployment")["spec"]["template"]["spec"]
    assert inside["priorityClassName"] == "system-cluster-critical"
    assert "priorityClassName" not in outside


def test_lists_of_plugins_as_other_charts_take_them() -> None:
    """`plugins` and `pluginConfig` shape the chart's profile."""
    (profile,) = configuration(rendered("scheduler-plugins-style"))["profiles"]
    assert profile["plugins"]["multiPoint"] == {
        "enabled": [{"name": "NodeResourcesFit"}, {"name": "ImageLocality", "weight": 3}],
        "disabled": [{"name": "*"}],
    }
    assert profile["pluginConfig"][0]["name"] == "NodeResourcesFit"


def test_the_monitor_verifies_a_certificate_that_can_be_verified() -> None:
    """cert-manager's CA and the Service's name are used; otherwise the certificate is made by each replica."""
    endpoint = one(rendered("certmanager"), "ServiceMonitor")["spec"]["endpoints"][0]
    certificate = one(rendered("certmanager"), "Certificate")["spec"]
    assert endpoint["tlsConfig"]["serverName"] in certificate["dnsNames"]
    assert endpoint["tlsConfig"]["ca"]["secret"]["name"] == certificate["secretName"]
    deployment = one(rendered("certmanager"), "Deployment")["spec"]["template"]["spec"]
    assert deployment["volumes"][-1]["secret"]["secretName"] == certificate["secretName"]
    assert one(rendered("prometheus"), "ServiceMonitor")["spec"]["endpoints"][0]["tlsConfig"] == {
        "insecureSkipVerify": True
    }


def test_notes_lead_to_the_first_pod() -> None:
    """They name the scheduler, hold a manifest that works, and say how to remove everything."""
    shown = helm("install", "podium", str(CHART), "--namespace", "kube-system", "--dry-run=client")
    notes = shown.partition("NOTES:")[2]
    (pod,) = [d for d in documents(_here_document(notes)) if d["kind"] == "Pod"]
    assert pod["spec"]["schedulerName"] == "podium"
    kubernetes_validate.validate(pod, MINORS[-1], strict=True)
    assert "helm uninstall podium -n kube-system" in notes


# --- refusals --------------------------------------------------------------------------------------------------------

UNKNOWN_VALUES = [
    ({"replicaCout": 1}, "replicaCout"),
    ({"leaderElection": {"enable": True}}, "enable"),
    ({"image": {"name": "x"}}, "name"),
    ({"tls": {"certManager": {"issuer": {}}}}, "issuer"),
    ({"replicaCount": "two"}, "replicaCount"),
    ({"tls": {"mode": "none"}}, "mode"),
    ({"logging": {"format": "xml"}}, "format"),
    ({"image": {"digest": "latest"}}, "digest"),
    ({"config": {"kind": "Other"}}, "config"),
    ({"leaderElection": {"leaseDuration": "fifteen"}}, "leaseDuration"),
    ({"plugins": {"enabled": [{"nam": "x"}]}}, "enabled"),
]


@pytest.mark.parametrize(("values", "named"), UNKNOWN_VALUES)
def test_a_wrong_value_is_named(values, named) -> None:
    """The schema is closed: the error says which key it is."""
    with pytest.raises(RenderError, match=rf"(?s)schema.*{named}"):
        helm_template(values=values)


UNSAFE = [
    ({"leaderElection": {"enabled": False}}, "replicaCount is 2 without leader election"),
    ({"config": {"leaderElection": {"leaderElect": False}}}, "replicaCount is 2 without leader election"),
    ({"schedulerName": "default-scheduler"}, "a profile is named default-scheduler"),
    ({"config": {"profiles": [{}]}}, "a profile is named default-scheduler"),
    (
        {"schedulerName": "default-scheduler", "acknowledgeReplacingDefault": True},
        "Podium's own pods would wait for Podium",
    ),
    ({"podSchedulerName": "podium"}, "Podium's own pods would wait for Podium"),
    (
        {"config": {"profiles": [{"schedulerName": "a"}]}, "plugins": {"enabled": ["ImageLocality"]}},
        "plugins and pluginConfig belong to the chart's own profile",
    ),
    ({"schedulerName": "a", "config": {"profiles": [{"schedulerName": "b"}]}}, "no profile in config.profiles"),
    ({"tls": {"mode": "secret"}}, "tls.secretName is empty"),
    ({"serviceMonitor": {"enabled": True}, "service": {"enabled": False}}, "serviceMonitor.enabled needs the Service"),
    ({"podMonitor": {"enabled": True}}, "podMonitor.enabled needs podMonitor.authorization"),
]


@pytest.mark.parametrize(("values", "sentence"), UNSAFE)
def test_an_unsafe_combination_is_refused_with_a_sentence(values, sentence) -> None:
    """Each of them would be found out in production otherwise."""
    with pytest.raises(RenderError, match=re.escape(sentence)):
        helm_template(values=values)


def test_every_value_is_described() -> None:
    """Schema and defaults have the same keys at every depth that the schema closes."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    _same_keys(schema, yaml.safe_load((CHART / "values.yaml").read_text()), "")


def test_the_readme_lists_every_value() -> None:
    """No value is without a word about it."""
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    paths = {path for path, _ in described()}
    assert set(values) == {path.partition(".")[0] for path in paths}
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert {path for path in _leaves(schema) if path != "global"} <= paths | {
        f"{p}.{k}" for p in paths for k in ("name", "kind", "group")
    }


def configuration(manifests) -> Manifest:
    """Return the KubeSchedulerConfiguration in the ConfigMap."""
    (text,) = [
        m["data"]["config.yaml"] for m in manifests if m["kind"] == "ConfigMap" and "config.yaml" in m.get("data", {})
    ]
    loaded: Manifest = yaml.safe_load(text)
    return loaded


def rights(manifests) -> set[tuple[str, str, str]]:
    """Return verb, group and resource of everything that the scheduler's own roles grant."""
    return {
        (verb, group, resource)
        for manifest in manifests
        if manifest["kind"] in ("ClusterRole", "Role")
        for rule in manifest["rules"]
        if "resources" in rule
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def _leaves(schema, path=""):
    if schema.get("properties"):
        for key, below in schema["properties"].items():
            yield from _leaves(below, f"{path}.{key}" if path else key)
    else:
        yield path


def _here_document(notes: str) -> str:
    lines = notes.partition("<<'EOF'")[2].partition("EOF")[0].splitlines()
    return "\n".join(line[5:] for line in lines)


def _same_keys(schema, values, path) -> None:
    known = set(schema["properties"]) - ({"global"} if not path else set())
    if path != ".tls.certManager.issuerRef":
        assert set(values) == known, path
    for key, value in values.items():
        below = schema["properties"][key]
        if isinstance(value, dict) and "properties" in below:
            _same_keys(below, value, f"{path}.{key}")
