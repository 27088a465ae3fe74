"""``podium simulate``: decisions without a cluster, by the engine that the daemon runs.

podium simulate --cases FILE|-            JSON lines of cases in, JSON lines of answers out
podium simulate -f DIR [-o table|json]    where would the pods of these manifests go, and why
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from scheduler.telemetry import logging
from scheduler.testing.cases import answer_case

__all__ = ["simulate"]


def simulate(argv: Sequence[str]) -> int:
    """Run the sub-command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="podium simulate", allow_abbrev=False, description=__doc__.split("\n")[0])
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--cases", metavar="FILE", help="JSON lines of cases; - reads standard input")
    source.add_argument("-f", "--filename", metavar="PATH", help="a manifest or a directory of manifests")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="for -f (default: table)")
    options = parser.parse_args(argv)
    logging.configure(verbosity=-1)
    if options.cases:
        return _answer_cases(options.cases)
    from scheduler.cli.manifests import simulate_manifests  # noqa: PLC0415  needs YAML, which cases do not

    return simulate_manifests(Path(options.filename), options.output)


def _answer_cases(source: str) -> int:
    encode = msgspec.json.Encoder().encode
    failed = False
    for number, line in enumerate(_lines(source), start=1):
        try:
            case = msgspec.json.decode(line, type=dict)
        except msgspec.DecodeError as error:
            print(f"podium simulate: line {number} is not a JSON object: {error}", file=sys.stderr)
            failed = True
            continue
        sys.stdout.buffer.write(encode(answer_case(case)) + b"\n")
    sys.stdout.flush()
    return 1 if failed else 0


def _lines(source: str) -> Iterator[bytes]:
    if source == "-":
        yield from (line for line in sys.stdin.buffer if line.strip())
        return
    with Path(source).open("rb") as file:
        yield from (line for line in file if line.strip())
