"""The README of the chart, with its table of values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import yaml

from tests.chart.rendering import CHART

README = CHART / "README.md"
_HEADER = """\
# Podium's chart

    helm install podium charts/podium --namespace kube-system

installs a second scheduler named `podium`, with two replicas of which one decides, and the rights it uses and no others.
There is no published image yet: build one with the `Dockerfile` and name it in `image`. The notes that Helm prints lead
to the first scheduled pod. `values.schema.json` is closed, so a misspelt value is an error that names it, and combinations
that would do harm are refused with a sentence. Value sets for common cases are in `ci/`.

Every object carries the release's name, so releases do not meet. A second release of the *same* name in another namespace
is refused by Helm, as the cluster-scoped roles belong to the first; it would answer to the same `schedulerName` too.

## Values

Generated from `values.yaml` by `make manifests`.

| value | default | meaning |
| --- | --- | --- |
"""
_KEY = re.compile(r"^( *)([A-Za-z]+):")
_COMMENT = re.compile(r"^ *# -- (.*)$")


def chart_readme() -> str:
    """Return what the file must hold."""
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    return _HEADER + "".join(f"| `{path}` | {_shown(_at(values, path))} | {text} |\n" for path, text in described())


def described() -> Iterator[tuple[str, str]]:
    """Yield the path of every value with a comment, and the comment."""
    above: list[str] = []
    comment = ""
    for line in (CHART / "values.yaml").read_text().splitlines():
        if found := _COMMENT.match(line):
            comment = found[1]
        elif found := _KEY.match(line):
            above = [*above[: len(found[1]) // 2], found[2]]
            if comment:
                yield ".".join(above), comment
            comment = ""


def _at(values: Any, path: str) -> Any:
    for key in path.split("."):
        values = values[key]
    return values


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return f"`{text}`" if len(text) <= 40 else "see `values.yaml`"
