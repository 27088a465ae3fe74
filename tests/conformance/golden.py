"""The golden files: ``golden/GROUP.jsonl.xz`` with one case and kube-scheduler's answer a line, and their manifest.

python tests/conformance/golden.py GROUP CASE [--answer]     print one case, or kube-scheduler's answer to it
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.conformance.generator.feature import Json

DIRECTORY = Path(__file__).resolve().parent / "golden"
MANIFEST = DIRECTORY / "manifest.json"
_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


def path_of(group: str) -> Path:
    """Return the golden file of a group."""
    return DIRECTORY / f"{group}.jsonl.xz"


def read(group: str) -> Iterator[tuple[Json, Json]]:
    """Yield (case, answer)."""
    for line in _content(group).splitlines():
        entry = json.loads(line)
        yield entry["case"], entry["answer"]


def write(group: str, cases: Sequence[Json], answers: Sequence[Json]) -> None:
    """Write the golden file of a group; one with this content already is left alone, whatever its compression."""
    pairs = zip(cases, answers, strict=True)
    content = "".join(_ENCODER.encode({"case": case, "answer": answer}) + "\n" for case, answer in pairs).encode()
    path = path_of(group)
    if path.exists() and _content(group) == content:
        return
    DIRECTORY.mkdir(exist_ok=True)
    path.write_bytes(lzma.compress(content, preset=9 | lzma.PRESET_EXTREME))


def checksum(group: str) -> str:
    """Return the SHA-256 of what a golden file says."""
    return hashlib.sha256(_content(group)).hexdigest()


def _content(group: str) -> bytes:
    return lzma.decompress(path_of(group).read_bytes())


def manifest() -> dict[str, Any]:
    """Return what is known about the files: the version of Kubernetes, seeds, counts, checksums."""
    found: dict[str, Any] = json.loads(MANIFEST.read_text())
    return found


def main() -> int:
    """Print a case."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("group", choices=sorted(path.name.split(".")[0] for path in DIRECTORY.glob("*.xz")))
    parser.add_argument("case", help="as a failing test names it")
    parser.add_argument("--answer", action="store_true", help="kube-scheduler's answer")
    options = parser.parse_args()
    for case, answer in read(options.group):
        if case["id"] == options.case:
            print(_ENCODER.encode(answer if options.answer else case))
            return 0
    print(f"{options.group} has no case {options.case}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
