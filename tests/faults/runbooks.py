"""Tries alerts and runbooks on what a fault test recorded: queries by promtool, greps on the logs as they are."""

from __future__ import annotations

import html
import re
import shlex
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from deploy.monitoring.generate.alerts import ALERTS
from scheduler.telemetry.catalogue import catalogue
from tests.faults.history.record import Sample
from tests.faults.results import ROOT
from tests.faults.sights import Sight
from tests.monitoring.build import programs

PAGES = ROOT / "docs" / "runbooks"
GRID_S = 1
GAP = 3
"""So many seconds without a sample are the sampler's; more are the process's, and it is scraped in vain."""
_NAME = re.compile(r"\b[a-z]+(?:_[a-z0-9]+)+\b")
_FENCE = re.compile(r"^```\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_SPAN = re.compile(r"`([^`]+)`")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_SUFFIX = re.compile(r"_(bucket|sum|count)$")
KNOWN = frozenset(entry.name for entry in catalogue())
HISTOGRAMS = frozenset(entry.name for entry in catalogue() if entry.kind == "histogram")
OURS = ("podium_", "scheduler_", "leader_election_", "rest_client_", "process_", "python_")
"""How the names of metrics begin that we serve."""
MOMENTS = ("_timestamp_seconds", "_time_seconds")
"""How the names of metrics end that are moments; promtool's ``time()`` begins at 0 with the recording, and so do they."""


@dataclass(frozen=True, slots=True)
class Runbook:
    """What a runbook tells one to look at.

    Attributes:
        text: of the page, its lines joined.
        codes: every piece of code.
    """

    text: str
    codes: tuple[str, ...]

    @classmethod
    def read(cls, alert: str) -> Runbook:
        """Read the page of an alert."""
        page = (PAGES / f"{alert}.md").read_text()
        lines = [line for block in _FENCE.findall(page) for line in block.splitlines()]
        inline = _SPAN.findall(_FENCE.sub("", page))
        codes = tuple(" ".join(code.split()) for code in (*lines, *inline))
        return cls(" ".join(_COMMENT.sub("", page).split()), codes)

    @property
    def queries(self) -> list[str]:
        """The pieces that are queries about metrics of ours, and of ours only."""
        return [code for code in self.codes if (names := metrics_of(code)) and names <= KNOWN and "kubectl" not in code]

    @property
    def greps(self) -> list[str]:
        """The commands that look for something in our log."""
        return [code for code in self.codes if code.startswith("kubectl") and " logs " in code and "grep" in code]

    @property
    def event_greps(self) -> list[str]:
        """The commands that look for something in events."""
        return [code for code in self.codes if code.startswith("kubectl get events") and "grep" in code]

    @property
    def event_reasons(self) -> list[str]:
        """The reasons of events that are selected by their field."""
        return [reason for code in self.codes for reason in re.findall(r"^kubectl get events.*reason=(\w+)", code)]


def metrics_of(code: str) -> set[str]:
    """Return the names of metrics in a query, without the suffixes of histograms."""
    bare = re.sub(r'"[^"]*"', "", code)
    bare = re.sub(r"\b(?:by|on|and)\s*\([^)]*\)", "", bare)
    bare = re.sub(r"\{[^}]*\}", "", bare)
    return {_SUFFIX.sub("", name) for name in _NAME.findall(bare)} - {"histogram_quantile"}


def check(
    sight: Sight, samples: Sequence[Sample], log: str, events: Iterable[tuple[str, str]], directory: Path
) -> list[str]:
    """Return what the alert or its runbook says and this run did not show.

    Args:
        sight: the alert, and what this fault shows of it.
        samples: what the schedulers said.
        log: of all of them.
        events: reason and note of each.
        directory: for promtool's file.
    """
    runbook = Runbook.read(sight.alert)
    events = list(events)
    pages = "\n".join(sample.page for sample in samples)
    told = "\n".join(f"{reason} {note}" for reason, note in events)
    greps = [(code, log) for code in runbook.greps] + [(code, told) for code in runbook.event_greps]
    missing = [
        f"`{code}` finds nothing" for code, text in greps if code not in sight.unseen and not _found(code, text, sight)
    ]
    missing += [f"no event {reason}" for reason in runbook.event_reasons if reason not in {why for why, _ in events}]
    missing += [f"the log does not say {words!r}" for words in sight.logs if words not in log]
    missing += [f"/readyz?verbose does not say {words!r}" for words in sight.pages if words not in pages]
    conditions = [] if sight.short_of else [f"({' or '.join(f'({rule})' for rule in expressions(sight.alert))})"]
    queries = [_filled(query, sight) for query in runbook.queries if query not in sight.unseen]
    wanted = [*conditions, *queries, *sight.shows]
    missing += [f"never a result: {query}" for query in without_result(wanted, samples, directory)]
    return [f"{sight.alert}: {each}" for each in missing]


def expressions(alert: str) -> list[str]:
    """Return the conditions of an alert; one with several rules has several."""
    return [rule.expression for rule in ALERTS if rule.name == alert]


def _filled(code: str, sight: Sight) -> str:
    for word, name in sight.names.items():
        code = code.replace(word, name)
    code = code.replace('{extender="URL"}', "")
    return f"{code}_count" if code in HISTOGRAMS else code


def _found(command: str, text: str, sight: Sight) -> bool:
    """Run the greps of a command on a text; tell whether a line is left."""
    for part in _filled(command, sight).split(" | "):
        if part.startswith("grep "):
            done = subprocess.run(
                shlex.split(part), input=text, check=False, capture_output=True, text=True, timeout=60
            )
            text = done.stdout
    return bool(text)


# --- queries ---------------------------------------------------------------------------------------------------------


def without_result(queries: Sequence[str], samples: Sequence[Sample], directory: Path) -> list[str]:
    """Return the queries that never have a result in what was recorded."""
    if not queries:
        return []
    assert samples, "nobody was asked what he says of himself"
    begin_s, end_s = min(s.asked_s for s in samples), max(s.answered_s for s in samples)
    length = int((end_s - begin_s) / GRID_S) + 2
    names = {name for query in queries for name in _NAME.findall(query)}
    inputs = [
        {"series": series, "values": " ".join(values)} for series, values in _series(samples, names, begin_s, length)
    ]
    found: list[str] = []
    for number, query in enumerate(dict.fromkeys(queries)):
        expression = f"max_over_time((count({query}) > bool 0)[{length * GRID_S}s:{GRID_S}s])"
        look = {"expr": expression, "eval_time": f"{length * GRID_S}s", "exp_samples": [{"labels": "{}", "value": 1}]}
        test = {"interval": f"{GRID_S}s", "input_series": inputs, "promql_expr_test": [look]}
        file = directory / f"runbook-{number}.yaml"
        file.write_text(
            yaml.dump({"rule_files": [], "evaluation_interval": f"{GRID_S}s", "tests": [test]}, Dumper=yaml.CDumper)
        )
        if said := _refused(file):
            assert "got:" in said, f"promtool does not take {query}: {html.unescape(said)}"
            found.append(query)
    return found


def _refused(file: Path) -> str:
    done = subprocess.run(
        [programs().promtool, "test", "rules", str(file)], check=False, capture_output=True, text=True, timeout=150
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def _series(samples: Sequence[Sample], names: set[str], begin_s: float, length: int) -> Iterable[tuple[str, list[str]]]:
    """Return each series of these names on an even grid; a process that cannot be asked makes its series stale."""
    values: dict[tuple[str, str], dict[int, str]] = {}
    for sample in samples:
        slot = int((sample.answered_s - begin_s) / GRID_S)
        for line in sample.metrics:
            series, _, value = line.rpartition(" ")
            name = series.partition("{")[0]
            if name in names:
                told = f"{float(value) - begin_s:.3f}" if name.endswith(MOMENTS) else value
                values.setdefault((sample.scheduler, series), {})[slot] = told
    for (scheduler, series), by_slot in values.items():
        yield _labelled(series, scheduler), _on_grid(by_slot, length)


def _labelled(series: str, scheduler: str) -> str:
    """Add the labels that Prometheus adds."""
    target = f'namespace="podium",job="podium",instance="{scheduler}"'
    name, _, labels = series.partition("{")
    return f"{name}{{{target},{labels}" if labels else f"{name}{{{target}}}"


def _on_grid(by_slot: dict[int, str], length: int) -> list[str]:
    found, missed = [], 0
    for slot in range(length):
        missed = 0 if slot in by_slot else missed + 1
        found.append(by_slot.get(slot, "stale" if missed == GAP else "_"))
    return found
