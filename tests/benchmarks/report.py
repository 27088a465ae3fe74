"""One report from many results: ``python -m tests.benchmarks.report [FILE …] [--docs]``.

It prints the tables of these files, or of every result file in ``build/benchmarks``. With ``--docs`` the files go into
``docs/performance`` (beside those that are there already: one name, one file) and ``docs/performance.md`` and its plots are
made anew from all that is there. What stands between the two marks of that page is written by hand, and kept.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.benchmarks import core_only, core_preemption, machine, plots, plugin_cost, side_tables, steady, targets
from tests.benchmarks.documents import (
    CORE,
    KINDS,
    OUTPUT,
    PLUGINS,
    PREEMPTION,
    REPOSITORY,
    SIDE_BY_SIDE,
    STEADY,
    Document,
    NotAResultFileError,
    Result,
    merged,
)

DOCS = REPOSITORY / "docs"
BEGIN, END = "<!-- by hand -->", "<!-- end -->"
COSTS = """\
## The largest remaining costs

Not written yet: `python -m tests.benchmarks.core_only --cases C --nodes 5000 --profile` shows those of a decision."""
HEAD = """\
# Performance

Made by `make bench-docs` from the files in `docs/performance`; do not edit outside the marked part. How the harness
works, and how to run it, is in `tests/benchmarks`: `make bench-quick` takes some minutes, `make bench` at most 75,
`make bench-core` needs no API server."""
SIDE_TEXT = """\
## Side by side on one machine

The same etcd, kube-apiserver, nodes and pods for each; the contestants take turns, in another order each run, in a fresh
namespace each. kube-scheduler runs with client limits of 5,000 requests a second (and once with its own), Podium as
`podium run --config …` under the rights of `deploy/rbac.yaml`; both elect a leader, serve metrics over HTTPS and post
events. "null" posts the bindings of a list made beforehand and nothing else: the ceiling on this machine. After each run
all placements are checked by code that shares nothing with the scheduler; an invalid one voids the run."""
CORE_TEXT = """\
## The core alone

One thread, no API server, all default plugins, the daemon's own metrics. "(a)" is the decision, "(b)" with what arrives and
is bound, "(c)" with decoding from JSON."""
PREEMPTION_TEXT = """\
### Preemption

Nodes of 4 cores, full of four pods of 900m each; pods of 3 cores come, each evicting three. "Hopeless" is a pod that no
eviction helps."""
PLUGINS_TEXT = """\
## What a plugin costs

The ten-line Filter plugin of the README, in the core alone."""
STEADY_TEXT = "## Steady state"

Tables = dict[str, tuple[str, Callable[[Sequence[Result]], str]]]
SECTIONS: Tables = {
    SIDE_BY_SIDE: (SIDE_TEXT, side_tables.report),
    CORE: (CORE_TEXT, core_only.report),
    PREEMPTION: (PREEMPTION_TEXT, core_preemption.report),
    PLUGINS: (PLUGINS_TEXT, plugin_cost.report),
    STEADY: (STEADY_TEXT, steady.report),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Print or write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="*", help="result files")
    parser.add_argument("--docs", type=Path, nargs="?", const=DOCS, help="write the documentation's page")
    options = parser.parse_args(argv)
    files = options.files or ([] if options.docs else sorted(OUTPUT.glob("*.json")))
    try:
        documents = [Document.read(path) for path in files]
        if options.docs is None:
            print(page(documents, {}, COSTS))
        else:
            write_docs(options.docs, documents)
    except NotAResultFileError as error:
        sys.exit(str(error))
    return 0


def write_docs(docs: Path, documents: Sequence[Document]) -> None:
    """Keep the documents under ``docs/performance`` and make the page from everything that is there."""
    home = docs / "performance"
    home.mkdir(parents=True, exist_ok=True)
    for document in documents:
        target = home / document.path.name
        if document.path.resolve() != target.resolve():
            shutil.copyfile(document.path, target)
    everything = [Document.read(path) for path in sorted(home.glob("*.json"))]
    drawn: dict[str, list[str]] = {}
    try:
        drawn = plots.draw_all({kind: merged(everything, kind) for kind in KINDS}, home)
    except plots.NoMatplotlibError as error:
        print(error)
    file = docs / "performance.md"
    file.write_text(page(everything, drawn, _by_hand(file)) + "\n")
    print(f"written: {file}")


def page(documents: Sequence[Document], drawn: dict[str, list[str]], by_hand: str) -> str:
    """Return the whole page; ``drawn``: kind -> plots in the folder ``performance``."""
    results = {kind: merged(documents, kind) for kind in KINDS}
    parts = [HEAD, "## Targets", targets.table(results), f"{BEGIN}\n\n{by_hand}\n\n{END}"]
    for kind, (text, table) in SECTIONS.items():
        if not results[kind]:
            continue
        parts += [text, *_origins([d for d in documents if d.kind == kind])]
        parts += [f"![{Path(name).stem}](performance/{name})" for name in drawn.get(kind, ())]
        parts.append(table(results[kind]))
    return "\n\n".join(parts)


def _origins(documents: Sequence[Document]) -> list[str]:
    """Return machine, versions, command and what was left out, once for each document."""
    lines = []
    for document in documents:
        lines.append(f"* `{document.command}`: {machine.sentence(document.facts)}. {document.method}".rstrip())
        lines += [f"  * {note}" for note in document.notes]
    return ["\n".join(lines)] if lines else []


def _by_hand(file: Path) -> str:
    """Return what the page has between the marks."""
    text = file.read_text() if file.exists() else ""
    _, begin, rest = text.partition(BEGIN)
    kept, end, _ = rest.partition(END)
    return kept.strip() if begin and end else COSTS


if __name__ == "__main__":
    sys.exit(main())
