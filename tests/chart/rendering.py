"""What helm and kustomize make of our manifests, as Python objects."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.chart.renderers.build import binary_dir

Manifest = dict[str, Any]

REPOSITORY = Path(__file__).resolve().parents[2]
CHART = REPOSITORY / "charts" / "podium"
DEPLOY = REPOSITORY / "deploy"
VALUE_SETS = sorted(path.stem for path in (CHART / "ci").glob("*.yaml"))
RELEASE = "podium"
NAMESPACE = "kube-system"
KUBERNETES = "1.36.0"
CLUSTER_SCOPED = {"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "Namespace"}


class RenderError(RuntimeError):
    """Helm or kustomize refused; the message is theirs."""


def helm(*arguments: str, environment: Mapping[str, str] | None = None) -> str:
    """Run helm without any configuration of this machine; returns what it printed.

    Raises:
        RenderError: it refused.
    """
    with tempfile.TemporaryDirectory() as home:
        surroundings = {"PATH": os.defpath, "HOME": home, **(environment or {})}
        return _run([str(binary_dir() / "helm"), *arguments], surroundings)


def helm_template(
    *value_sets: str,
    values: Mapping[str, Any] | None = None,
    release: str = RELEASE,
    namespace: str = NAMESPACE,
    options: Sequence[str] = (),
) -> list[Manifest]:
    """Render the chart with value sets of `ci/` and values on top.

    Raises:
        RenderError: the chart or its schema refused the values.
    """
    with tempfile.TemporaryDirectory() as scratch:
        files = [CHART / "ci" / f"{name}.yaml" for name in value_sets]
        if values is not None:
            files.append(Path(scratch) / "values.yaml")
            files[-1].write_text(json.dumps(values))
        arguments = [argument for file in files for argument in ("--values", str(file))]
        arguments += ["--namespace", namespace, "--kube-version", KUBERNETES, *options]
        return documents(helm("template", release, str(CHART), *arguments))


@cache
def rendered(value_set: str) -> tuple[Manifest, ...]:
    """Render one set of `ci/`, once."""
    return tuple(helm_template(value_set))


@cache
def kustomized(path: str) -> str:
    """Build a kustomization below `deploy/`; returns the YAML text.

    Raises:
        RenderError: kustomize refused.
    """
    return _run(
        [str(binary_dir() / "kustomize"), "build", "--load-restrictor=LoadRestrictionsRootOnly", str(DEPLOY / path)],
        {"PATH": os.defpath},
    )


def documents(text: str) -> list[Manifest]:
    """Return the objects of a YAML stream."""
    return [document for document in yaml.safe_load_all(text) if document]


def one(manifests: Sequence[Manifest], kind: str, name: str = "") -> Manifest:
    """Return the only object of a kind (and name)."""
    found = [m for m in manifests if m["kind"] == kind and name in ("", m["metadata"]["name"])]
    assert len(found) == 1, f"{len(found)} objects of kind {kind} {name}"
    return found[0]


def identity(manifest: Manifest) -> tuple[str, str, str]:
    """Return kind, namespace and name; the namespace is empty for cluster-scoped kinds."""
    kind, metadata = manifest["kind"], manifest["metadata"]
    return kind, "" if kind in CLUSTER_SCOPED else metadata.get("namespace", ""), metadata["name"]


def _run(command: list[str], environment: Mapping[str, str]) -> str:
    result = subprocess.run(command, check=False, capture_output=True, text=True, env=environment, timeout=120)
    if result.returncode != 0:
        raise RenderError(result.stderr.strip())
    return result.stdout
