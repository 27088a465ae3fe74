"""Podium decides as kube-scheduler did: every golden case, in process, with everything that the answer says.

A failure names the case, the pod, and the plugin or field that differs. A case can be taken out of its file, and made
smaller by hand, with ``python tests/conformance/golden.py GROUP CASE > case.jsonl``; then ``podium simulate --cases
case.jsonl`` and the oracle answer it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
import structlog.testing

from scheduler.testing.cases import answer_case
from tests.conformance import golden
from tests.conformance.build import kubernetes_version
from tests.conformance.compare import Compared
from tests.conformance.groups import GROUPS

SHOWN = 12
MOST_EXCLUDED = 0.03
"""A rule that leaves out more than this share of a group hides too much to call the rest a proof."""


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Log nothing: a case may well contain what an operator should be told."""
    with structlog.testing.capture_logs():
        yield


@pytest.mark.timeout(300)
@pytest.mark.parametrize("group", [group.name for group in GROUPS])
def test_decides_as_kube_scheduler(group: str) -> None:
    """No golden case of the group differs, but for what a named rule excludes."""
    differences: list[str] = []
    fields: Counter[str] = Counter()
    excluded: Counter[str] = Counter()
    cases = 0
    for case, answer in golden.read(group):
        cases += 1
        compared = Compared(expected=answer, answered=answer_case(case), case=case, scored=None)
        excluded.update({compared.rule: 1} if compared.rule else {})
        fields.update({field for field, _ in compared.found})
        if compared.found:
            field, detail = compared.found[0]
            differences.append(f"{case['id']} ({','.join(case['features'])}): {field}: {detail}")
    report = "\n".join(
        [*(f"{count:5d} cases differ in {field}" for field, count in fields.most_common()), *differences[:SHOWN]]
    )
    assert not differences, f"{len(differences)} of {cases} cases differ:\n{report}"
    assert excluded.total() <= MOST_EXCLUDED * cases, dict(excluded)


def test_golden_files_are_complete() -> None:
    """The files are those that the manifest describes, of the oracle's Kubernetes version, and enough."""
    manifest = golden.manifest()
    assert manifest["kubernetes"] == kubernetes_version()
    assert [entry["name"] for entry in manifest["groups"]] == [group.name for group in GROUPS]
    assert {entry["name"]: entry["sha256"] for entry in manifest["groups"]} == {
        group.name: golden.checksum(group.name) for group in GROUPS
    }
    assert sum(entry["cases"] for entry in manifest["groups"]) >= 3_000


def test_golden_cases_come_from_their_seeds() -> None:
    """The generator still makes the case that is stored, so that a golden file can be made anew."""
    for group in GROUPS:
        number, (case, _) = next(enumerate(golden.read(group.name)))
        assert group.case(number) == case
