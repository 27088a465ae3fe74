"""Compares two files of answers and names the plugin and field that differ.

    python tests/conformance/compare.py EXPECTED ANSWERED [--cases CASES] [--scores PLUGIN,...] [--show N]

Compared: verdict, feasible nodes, statuses, weighted scores by plugin, totals, best and chosen nodes, the whole message,
nomination, victims and the dry runs of preemption. With ``--scores`` only these plugins' scores are compared, and what
depends on the scores of all (totals, best, chosen) is not.

The rules of exclusions.py leave differences out; some of them need the cases. A case is compared up to where one applies.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.conformance.exclusions import rule_for

Json = dict[str, Any]

_PLAIN = ("verdict", "feasible", "prefilter", "prefilterNodes", "nominatedFirst", "plugin", "message", "event")
_OF_ALL_SCORES = ("totals", "best", "chosen")
_OUTCOME = ("nominated", "victims", "deleted", "unschedulablePlugins")


class Compared:
    """The differences of one case.

    Attributes:
        found: (what differs, both values), in order.
        rule: the rule that left the rest of the case out, or "".
    """

    def __init__(self, expected: Json, answered: Json, case: Json, scored: frozenset[str] | None) -> None:
        self.found: list[tuple[str, str]] = []
        self.rule = ""
        self._scored = scored
        if expected.get("error") or answered.get("error"):
            if bool(expected.get("error")) != bool(answered.get("error")):
                self.found.append(("error", f"{expected.get('error')!r} != {answered.get('error')!r}"))
            return
        for want, got in zip(expected["results"], answered["results"], strict=True):
            found = [(field, f"{want['pod']}: {detail}") for field, detail in self._differences(want, got)]
            self.rule = rule_for(want, got, case) if found else ""
            if self.rule:
                return
            self.found += found

    def _differences(self, want: Json, got: Json) -> Iterator[tuple[str, str]]:
        fields = _PLAIN + _OUTCOME + (_OF_ALL_SCORES if self._scored is None else ())
        for field in fields:
            if want.get(field) != got.get(field):
                yield field, f"{want.get(field)!r} != {got.get(field)!r}"
        yield from _by_node("status", want["statuses"], got["statuses"])
        yield from self._scores(want.get("scores") or {}, got.get("scores") or {})
        yield from _preemption(want.get("preemption") or {}, got.get("preemption") or {})

    def _scores(self, want: Json, got: Json) -> Iterator[tuple[str, str]]:
        plugins = want.keys() | got.keys()
        for plugin in sorted(plugins if self._scored is None else plugins & self._scored):
            if want.get(plugin) != got.get(plugin):
                yield f"scores of {plugin}", f"{want.get(plugin)} != {got.get(plugin)}"


def _by_node(what: str, want: Json, got: Json) -> Iterator[tuple[str, str]]:
    for node in sorted(want.keys() | got.keys()):
        mine, theirs = want.get(node), got.get(node)
        if mine != theirs:
            plugin = (mine or theirs or {}).get("plugin", "PreFilter")
            yield f"{what} of {plugin}", f"{node}: {mine} != {theirs}"


def _preemption(want: Json, got: Json) -> Iterator[tuple[str, str]]:
    yield from _by_node("dry run", want.get("rejected") or {}, got.get("rejected") or {})
    candidates, others = want.get("candidates") or {}, got.get("candidates") or {}
    for node in sorted(candidates.keys() | others.keys()):
        if candidates.get(node) != others.get(node):
            yield "candidate", f"{node}: {candidates.get(node)} != {others.get(node)}"
    if want.get("ties") != got.get("ties"):
        yield "ties", f"{want.get('ties')} != {got.get('ties')}"


def main() -> int:
    """Compare; exit 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("expected", type=Path)
    parser.add_argument("answered", type=Path)
    parser.add_argument("--cases", type=Path, help="the cases themselves, for rules that look at them")
    parser.add_argument("--scores", default="", help="plugins whose scores are compared, separated by commas; all")
    parser.add_argument("--show", type=int, default=5, help="how many differences to print in full")
    options = parser.parse_args()
    scored = frozenset(options.scores.split(",")) if options.scores else None
    counts: Counter[str] = Counter()
    rules: Counter[str] = Counter()
    cases = different = 0
    given = options.cases.read_text().splitlines() if options.cases else None
    with options.expected.open() as expected, options.answered.open() as answered:
        for want, got in zip(map(json.loads, expected), map(json.loads, answered), strict=True):
            case = json.loads(given[cases]) if given else {}
            cases += 1
            compared = Compared(want, got, case, scored)
            different += bool(compared.found)
            rules.update([compared.rule] if compared.rule else [])
            for field, detail in compared.found:
                counts[field] += 1
                if sum(counts.values()) <= options.show:
                    print(f"{want['id']}: {field}: {detail}")
    for field, count in counts.most_common():
        print(f"{count:6d}  {field}")
    for rule, count in rules.most_common():
        print(f"{count:6d}  left out from there on by the rule: {rule}")
    print(f"{cases - different} of {cases} cases agree")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
