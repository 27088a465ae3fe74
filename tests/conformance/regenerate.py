"""Makes the golden files anew: ``make conformance``, or ``python tests/conformance/regenerate.py [--only GROUP]``.

Builds the oracle, generates each group's cases from its seed, lets kube-scheduler answer them, and writes
``golden/*.jsonl.xz`` with the manifest. Podium is not asked: what it answers is what the tests find out.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from tests.conformance import golden, oracle_process
from tests.conformance.build import OracleUnavailableError, kubernetes_version, oracle_path
from tests.conformance.generator.feature import Json
from tests.conformance.groups import GROUPS, NOT_BUILT, Group


def made(group: Group, cases: Sequence[Json], answers: Sequence[Json]) -> dict[str, Any]:
    """Return the manifest's entry about a group."""
    results = [result for answer in answers for result in answer["results"]]
    features = Counter(name for case in cases for name in case["features"])
    return {
        "name": group.name,
        "seed": group.seed,
        "nodes": "{}:{}".format(*group.nodes),
        "cases": len(cases),
        "pods": len(results),
        "verdicts": dict(sorted(Counter(result["verdict"] for result in results).items())),
        "preempting": sum(bool(result["victims"]) for result in results),
        "features": dict(sorted(features.items())),
        "sha256": golden.checksum(group.name),
    }


def regenerate(group: Group) -> dict[str, Any]:
    """Write one golden file; returns the manifest's entry.

    Raises:
        ValueError: the generator made a case that the API server would refuse.
    """
    cases = [group.case(number) for number in range(group.cases)]
    answers = oracle_process.ask(oracle_path(), cases)
    for answer in answers:
        if answer.get("error"):
            raise ValueError(f"case {answer['id']} is not valid: {answer['error']}")
    golden.write(group.name, cases, answers)
    return made(group, cases, answers)


def main() -> int:
    """Regenerate."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", choices=[group.name for group in GROUPS], help="regenerate one group")
    options = parser.parse_args()
    before = golden.manifest() if golden.MANIFEST.exists() else {"groups": []}
    entries = {entry["name"]: entry for entry in before["groups"]}
    try:
        for group in GROUPS:
            if options.only in (None, group.name):
                entries[group.name] = regenerate(group)
                size = golden.path_of(group.name).stat().st_size
                print(
                    f"{group.name:12} {group.cases:5d} cases  {size // 1024:6d} KiB  {entries[group.name]['verdicts']}"
                )
    except OracleUnavailableError as error:
        sys.exit(str(error))
    groups = [entries[group.name] for group in GROUPS if group.name in entries]
    today = before.get("made") if groups == before["groups"] else datetime.now(UTC).date().isoformat()
    manifest = {"kubernetes": kubernetes_version(), "made": today, "without": NOT_BUILT, "groups": groups}
    golden.MANIFEST.write_text(json.dumps(manifest, indent=1) + "\n")
    print(f"{sum(entry['cases'] for entry in groups)} cases, answered by kube-scheduler {kubernetes_version()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
