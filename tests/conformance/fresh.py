"""Fresh cases, never stored: Podium against the oracle, with figures by feature.

    python tests/conformance/fresh.py --seed S --count N [--features a,b] [--without a,b] [--nodes LO:HI]
                                      [--show N] [--update-docs NAME]

Case i of a seed is always the same, so a difference found once can be looked at again. By default every feature but
``dra`` may be drawn. ``--features everything`` has all of them on in each case. ``--update-docs`` writes the figures into
the part of docs/conformance.md that is marked with NAME. Exit code 1 if anything differs.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import structlog.testing

from scheduler.testing.cases import answer_case
from tests.conformance.build import OracleUnavailableError, kubernetes_version, oracle_path
from tests.conformance.compare import Compared
from tests.conformance.generate import features_of, nodes_of
from tests.conformance.generator.catalogue import NAMES, make_case
from tests.conformance.generator.feature import Json
from tests.conformance.groups import EVERYTHING, NOT_BUILT
from tests.conformance.oracle_process import ask

CHUNK = 100
DOCS = Path(__file__).resolve().parents[2] / "docs" / "conformance.md"


@dataclass(frozen=True, slots=True)
class Chunk:
    """Cases ``start`` to ``stop`` of a seed."""

    oracle: Path
    seed: str
    start: int
    stop: int
    features: tuple[str, ...]
    without: tuple[str, ...]
    nodes: tuple[int, int]

    def cases(self) -> list[Json]:
        """Return the cases."""
        numbers = range(self.start, self.stop)
        return [make_case(self.seed, number, self.features, self.nodes, self.without) for number in numbers]


@dataclass(slots=True)
class Figures:
    """What came out; every counter goes by feature, with "" for all cases."""

    cases: Counter[str] = field(default_factory=Counter)
    pods: Counter[str] = field(default_factory=Counter)
    unschedulable: Counter[str] = field(default_factory=Counter)
    preempting: Counter[str] = field(default_factory=Counter)
    differing: Counter[str] = field(default_factory=Counter)
    excluded: Counter[str] = field(default_factory=Counter)
    fields: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)
    details: list[str] = field(default_factory=list)
    invalid: int = 0

    def add(self, case: Json, answer: Json, compared: Compared) -> None:
        """Count one case."""
        results = answer["results"]
        for name in ("", *case["features"]):
            self.cases[name] += 1
            self.pods[name] += len(results)
            self.unschedulable[name] += sum(result["verdict"] == "unschedulable" for result in results)
            self.preempting[name] += sum(bool(result["victims"]) for result in results)
            self.differing[name] += bool(compared.found)
            self.excluded[name] += bool(compared.rule)
        self.invalid += bool(answer.get("error"))
        self.rules.update([compared.rule] if compared.rule else [])
        self.fields.update({name for name, _ in compared.found})
        self.details += [f"{case['id']}: {name}: {detail}" for name, detail in compared.found[:2]]

    def merge(self, other: Figures) -> None:
        """Add the figures of other cases."""
        for name in ("cases", "pods", "unschedulable", "preempting", "differing", "excluded", "fields", "rules"):
            getattr(self, name).update(getattr(other, name))
        self.details += other.details
        self.invalid += other.invalid

    def table(self) -> str:
        """Return a Markdown table by feature."""
        rows = [
            "| feature | cases | pods | unschedulable | with victims | cases that differ | excluded by a rule |",
            "|---|--:|--:|--:|--:|--:|--:|",
        ]
        columns = (self.cases, self.pods, self.unschedulable, self.preempting, self.differing, self.excluded)
        for name in (*(name for name in NAMES if self.cases[name]), ""):
            figures = " | ".join(f"{column[name]:,}" for column in columns)
            rows.append(f"| {name or '**all cases**'} | {figures} |")
        return "\n".join(rows)


def compare_chunk(chunk: Chunk) -> Figures:
    """Answer the cases both ways; runs in a process of its own."""
    cases = chunk.cases()
    answers = ask(chunk.oracle, cases, workers=1)
    figures = Figures()
    for case, answer in zip(cases, answers, strict=True):
        with structlog.testing.capture_logs():  # a case may well contain what an operator should be told
            answered = answer_case(case)
        figures.add(case, answer, Compared(expected=answer, answered=answered, case=case, scored=None))
    return figures


def chunks(everything: Chunk) -> Iterator[Chunk]:
    """Cut a range of cases into pieces."""
    for start in range(everything.start, everything.stop, CHUNK):
        yield replace(everything, start=start, stop=min(start + CHUNK, everything.stop))


def compare(everything: Chunk, processes: int) -> Figures:
    """Compare all cases, in several processes."""
    total = Figures()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        for figures in pool.map(compare_chunk, chunks(everything)):
            total.merge(figures)
            sys.stderr.write(f"\r{total.cases['']:,} cases, {total.differing['']:,} differ ")
    sys.stderr.write("\n")
    return total


def said(total: Figures, command: str, seconds: float) -> str:
    """Return what the documentation says about a run."""
    rules = "".join(f" The rule *{rule}* touched {count:,}." for rule, count in total.rules.most_common())
    return (
        f"`{command}`\n\n{total.cases['']:,} cases with {total.pods['']:,} pods: **{total.differing['']:,} differ**."
        f"{rules} kube-scheduler {kubernetes_version()}, {datetime.now(UTC).date()}, {seconds:.0f} s for both schedulers "
        f"together.\n\n{total.table()}\n"
    )


def update_docs(name: str, text: str) -> None:
    """Replace the part of the documentation that is marked with ``name``.

    Raises:
        SystemExit: there is no such part.
    """
    begin, end = f"<!-- fresh.py --update-docs {name} -->", f"<!-- end of {name} -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    before = DOCS.read_text()
    if not pattern.search(before):
        raise SystemExit(f"{DOCS} has no part that begins with {begin}")
    DOCS.write_text(pattern.sub(lambda _: f"{begin}\n{text}{end}", before))


def _features(text: str) -> list[str]:
    return list(EVERYTHING) if text == "everything" else features_of(text)


def main() -> int:
    """Compare fresh cases."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", required=True, help="any text")
    parser.add_argument("--count", type=int, required=True, help="number of cases")
    parser.add_argument("--features", type=_features, default=[], help="exactly these, or: everything")
    parser.add_argument("--without", type=features_of, default=list(NOT_BUILT), help="never drawn (default: dra)")
    parser.add_argument("--nodes", type=nodes_of, default=(1, 60), metavar="LO:HI", help="default: 1:60")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="default: one a CPU")
    parser.add_argument("--show", type=int, default=10, help="differences to print in full (default: %(default)s)")
    parser.add_argument("--update-docs", metavar="NAME", help="write the figures into docs/conformance.md")
    options = parser.parse_args()
    try:
        oracle = oracle_path()
    except OracleUnavailableError as error:
        sys.exit(str(error))
    everything = Chunk(
        oracle, options.seed, 0, options.count, tuple(options.features), tuple(options.without), options.nodes
    )
    began = time.monotonic()
    total = compare(everything, options.processes)
    seconds = time.monotonic() - began
    for detail in total.details[: options.show]:
        print(detail[:2000])
    for name, count in total.fields.most_common():
        print(f"{count:6d} cases differ in {name}")
    if total.invalid:
        print(f"{total.invalid} cases are not valid")
    command = _command(options)
    text = said(total, command, seconds)
    print(text)
    if options.update_docs:
        update_docs(options.update_docs, text)
    return 1 if total.differing[""] else 0


def _command(options: argparse.Namespace) -> str:
    words = ["python tests/conformance/fresh.py", f"--seed {options.seed}", f"--count {options.count}"]
    if options.features:
        is_everything = options.features == list(EVERYTHING)
        words.append("--features " + ("everything" if is_everything else ",".join(options.features)))
    if options.without != list(NOT_BUILT):
        words.append("--without " + ",".join(options.without))
    if options.nodes != (1, 60):
        words.append("--nodes {}:{}".format(*options.nodes))
    return " ".join(words)


if __name__ == "__main__":
    sys.exit(main())
