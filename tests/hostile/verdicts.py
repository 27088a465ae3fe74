"""What kube-scheduler's own code decides about the rows that the API server accepts, stored: ``kube_scheduler.jsonl.xz``.

python -m tests.hostile.verdicts        asks the oracle anew (docs/conformance.md) after a change of the table
"""

from __future__ import annotations

import hashlib
import json
import lzma
import sys
from pathlib import Path

from tests.conformance.build import oracle_path
from tests.conformance.oracle_process import ask
from tests.hostile import cluster_objects, pods
from tests.hostile.table import ACCEPTED, Json, Row, merged
from tests.hostile.world import NODES

__all__ = ["ROWS", "case_of", "digest", "read"]

FILE = Path(__file__).with_name("kube_scheduler.jsonl.xz")
ROWS: tuple[Row, ...] = tuple(row for row in (*pods.ROWS, *cluster_objects.ROWS) if row.api == ACCEPTED)


def case_of(row: Row) -> Json:
    """Return the row as a case: the cluster of the table's world, and the pod that is tried."""
    assert isinstance(row.made, dict)
    if row.kind == "Pod":
        return {"id": str(row), "objects": [*NODES, *row.others], "pods": [_as_written(row.made)]}
    assert row.pod is not None
    user = _as_written(merged(row.pod, {"metadata": {"name": "user", "uid": "uid-user"}}))
    return {"id": str(row), "objects": [*NODES, *row.others, row.made], "pods": [user]}


def _as_written(pod: Json) -> Json:
    """Return a pod as a user writes it: without what only the server says."""
    metadata = {key: value for key, value in pod["metadata"].items() if key not in ("uid", "resourceVersion")}
    return {**{key: value for key, value in pod.items() if key != "status"}, "metadata": metadata}


def digest(case: Json) -> str:
    """Return what tells one case from another."""
    return hashlib.sha256(json.dumps(case, sort_keys=True).encode()).hexdigest()[:16]


def read() -> dict[str, Json]:
    """Return the stored answers by the name of the row, each with the digest of the case that was answered."""
    with lzma.open(FILE, "rt", encoding="utf-8") as file:
        return {stored["row"]: stored for stored in map(json.loads, file)}


def main() -> int:
    """Ask the oracle about every row."""
    cases = [case_of(row) for row in ROWS]
    with lzma.open(FILE, "wt", encoding="utf-8") as file:
        for case, answer in zip(cases, ask(oracle_path(), cases), strict=True):
            if answer.get("error"):
                raise ValueError(f"{case['id']}: the API server would refuse it: {answer['error']}")
            file.write(json.dumps({"row": case["id"], "digest": digest(case), "answer": answer}) + "\n")
    print(f"{len(cases)} answers in {FILE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
