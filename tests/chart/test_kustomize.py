"""The kustomizations are the chart in another form: object by object the same, and the one file is what they build."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.chart.generated import generated
from tests.chart.rendering import DEPLOY, REPOSITORY, Manifest, documents, helm_template, identity, kustomized, rendered

OVERLAYS = sorted(path.parent.name for path in DEPLOY.glob("overlays/*/kustomization.yaml"))
COMPONENTS = {
    "dynamic-resources": {"rbac": {"dynamicResources": True}},
    "live-profiles": {"liveProfiles": {"enabled": True}},
    "prometheus": {
        "serviceMonitor": {"enabled": True},
        "prometheusRule": {"enabled": True},
        "grafanaDashboard": {"enabled": True},
    },
    "networkpolicy": {"networkPolicy": {"enabled": True}},
    "certmanager": {"tls": {"mode": "certManager"}},
}
"""Optional components, and the chart's values for the same."""


@pytest.mark.parametrize(("overlay", "value_set"), [("ha", "ha"), ("replace-default", "replace-default")])
def test_overlays_are_value_sets_of_the_chart(overlay: str, value_set: str) -> None:
    """What both render is the same."""
    assert _comparable(documents(kustomized(f"overlays/{overlay}"))) == _comparable(rendered(value_set))


def test_the_second_scheduler_is_the_charts_default() -> None:
    """The overlay of the README, and a plain `helm install`."""
    assert _comparable(documents(kustomized("overlays/second-scheduler"))) == _comparable(helm_template())


@pytest.mark.parametrize("component", COMPONENTS)
def test_components_are_values_of_the_chart(component: str, tmp_path: Path) -> None:
    """Each optional component on top of the second scheduler, against the value that switches it on."""
    built = documents(kustomized_with(component, tmp_path))
    chart = helm_template(values=COMPONENTS[component])
    if component == "live-profiles":  # Helm installs definitions apart from what it renders
        chart += helm_template(values=COMPONENTS[component], options=["--include-crds"])[:1]
    assert _comparable(built) == _comparable(chart)


def test_every_component_is_compared() -> None:
    """A new component needs its value."""
    compared_by_overlays = {"preemption", "volume-binding"}
    assert {path.parent.name for path in DEPLOY.glob("components/*/kustomization.yaml")} == (
        set(COMPONENTS) | compared_by_overlays
    )
    assert set(OVERLAYS) == {"ha", "replace-default", "second-scheduler"}


def test_what_is_generated_is_current() -> None:
    """`make manifests` writes it."""
    stale = [str(path.relative_to(REPOSITORY)) for path, text in generated().items() if path.read_text() != text]
    assert stale == []


def kustomized_with(component: str, scratch: Path) -> str:
    """Build the second scheduler with one component more."""
    here = DEPLOY.resolve()
    up = "/".join([".."] * len(scratch.resolve().parts[1:]))
    kustomization = {
        "resources": [f"{up}{here}/overlays/second-scheduler"],
        "components": [f"{up}{here}/components/{component}"],
    }
    (scratch / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    return kustomized(str(scratch))


def _comparable(manifests) -> dict[tuple[str, str, str], Manifest]:
    """Return objects by identity, without what only one of the two tools writes, and rules without an order."""
    made = {}
    for manifest in map(_without_tool_marks, manifests):
        if manifest["kind"] in ("ClusterRole", "Role"):
            manifest["rules"].sort(key=yaml.safe_dump)
        for key in (key for key in manifest.get("data", {}) if key.endswith(".yaml")):
            manifest["data"][key] = yaml.safe_load(manifest["data"][key])
        made[identity(manifest)] = manifest
    return made


def _without_tool_marks(manifest: Manifest) -> Manifest:
    text = yaml.safe_dump(manifest)
    text = re.sub(r"podium-config-[a-z0-9]{10}\b", "podium-config", text)  # kustomize names a ConfigMap by its content
    loaded: Manifest = yaml.safe_load(text)
    template = loaded.get("spec", {}).get("template", {}).get("metadata", {})
    for metadata in (loaded["metadata"], template):
        for mark in ("helm.sh/chart", "app.kubernetes.io/managed-by"):
            metadata.get("labels", {}).pop(mark, None)
    if template:
        template.get("annotations", {}).pop("checksum/config", None)  # Helm's way to roll pods with a configuration
        if not template.get("annotations"):
            template.pop("annotations", None)
    return loaded
