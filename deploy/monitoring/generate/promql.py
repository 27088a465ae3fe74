"""PromQL over the catalogue of metrics: an expression cannot name a metric or a label that does not exist.

kube-scheduler shows metrics under the same names, and one Prometheus often scrapes both. So every expression over a
metric that is not Podium's own takes only the targets that show ``podium_inbox_depth`` too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from scheduler.telemetry.catalogue import Entry, catalogue

METRICS: Final[Mapping[str, Entry]] = {entry.name: entry for entry in reversed(catalogue())}
RELEASE: Final = ("namespace", "job")
"""What tells one installation from another."""
TARGET: Final = (*RELEASE, "instance")
_FROM_PROMETHEUS = {*TARGET, "le", "pod"}
_OWN = "podium_"
_MARK = "podium_inbox_depth"


def series(name: str, where: str = "", *, suffix: str = "", selector: str = "") -> str:
    """Return a selector of a metric's series.

    Args:
        name: of the metric.
        where: label matchers, such as ``result="error"``.
        suffix: ``_bucket``, ``_sum`` or ``_count`` of a histogram.
        selector: more matchers, of labels that the scrape adds.

    Raises:
        ValueError: there is no such metric, or it has no such label.
    """
    if name not in METRICS:
        raise ValueError(f"there is no metric {name}")
    if bool(suffix) != (METRICS[name].kind == "histogram"):
        raise ValueError(f"{name} is a {METRICS[name].kind}: {name}{suffix} does not exist")
    matchers = [part.strip() for part in where.split(",") if part.strip()]
    known = {*METRICS[name].labels, *({"le"} if suffix == "_bucket" else ())}
    for matcher in matchers:
        label = matcher.partition("=")[0].rstrip("!")
        if label not in known:
            raise ValueError(f"{name} has no label {label}; it has {sorted(known)}")
    inside = ",".join(part for part in (selector, *matchers) if part)
    return f"{name}{suffix}{{{inside}}}" if inside else f"{name}{suffix}"


class Queries:
    """Expressions over the targets that ``selector`` admits (a dashboard's variables; nothing in alerts)."""

    def __init__(self, selector: str = "") -> None:
        self._selector = selector

    def value(self, name: str, where: str = "") -> str:
        """Return the instant vector of a gauge."""
        return self._ours(name, series(name, where, selector=self._selector))

    def highest(self, name: str, by: Sequence[str] = (), where: str = "") -> str:
        """Return the highest value of a gauge."""
        return f"max by ({self._by(name, by)}) ({self.value(name, where)})"

    def total(self, name: str, by: Sequence[str] = (), where: str = "") -> str:
        """Return the sum of a gauge."""
        return f"sum by ({self._by(name, by)}) ({self.value(name, where)})"

    def rate(self, name: str, window: str, by: Sequence[str] = (), where: str = "", *, suffix: str = "") -> str:
        """Return the rate a second of a counter, or of a histogram's ``_count`` or ``_sum``."""
        inner = f"rate({series(name, where, suffix=suffix, selector=self._selector)}[{window}])"
        return f"sum by ({self._by(name, by)}) ({self._ours(name, inner)})"

    def increase(self, name: str, window: str, by: Sequence[str] = (), where: str = "") -> str:
        """Return by how much a counter has grown."""
        inner = f"increase({series(name, where, selector=self._selector)}[{window}])"
        return f"sum by ({self._by(name, by)}) ({self._ours(name, inner)})"

    def ratio(self, name: str, window: str, where: str, by: Sequence[str] = (), of: str = "") -> str:
        """Return which part of a counter's growth has these labels, of what has the labels ``of``."""
        return f"{self.rate(name, window, by, where)} / {self.rate(name, window, by, of)}"

    def quantile(self, part: float, name: str, window: str, by: Sequence[str] = (), where: str = "") -> str:
        """Return a quantile of a histogram."""
        inner = f"rate({series(name, where, suffix='_bucket', selector=self._selector)}[{window}])"
        labels = self._by(name, (*by, "le"))
        return f"histogram_quantile({part}, sum by ({labels}) ({self._ours(name, inner)}))"

    def mean(self, name: str, window: str, by: Sequence[str] = ()) -> str:
        """Return the mean of a histogram's observations."""
        return f"{self.rate(name, window, by, suffix='_sum')} / {self.rate(name, window, by, suffix='_count')}"

    def slower_than(self, bound: float, name: str, window: str, where: str = "") -> str:
        """Return which part of a histogram's observations lies above one of its bounds."""
        bounds = METRICS[name].buckets
        if bound not in bounds:
            raise ValueError(f"{name} has no bucket that ends at {bound}: {bounds}")
        within = f'le="{bound:g}"' + (f",{where}" if where else "")
        inside = f"rate({series(name, within, suffix='_bucket', selector=self._selector)}[{window}])"
        good = f"sum by ({', '.join(RELEASE)}) ({self._ours(name, inside)})"
        return f"1 - {good} / {self.rate(name, window, where=where, suffix='_count')}"

    def _ours(self, name: str, expression: str) -> str:
        if name.startswith(_OWN):
            return expression
        return f"{expression} and on ({', '.join(TARGET)}) {series(_MARK, selector=self._selector)}"

    @staticmethod
    def _by(name: str, labels: Sequence[str]) -> str:
        wrong = set(labels) - _FROM_PROMETHEUS - set(METRICS[name].labels)
        if wrong:
            raise ValueError(f"{name} has no label {', '.join(sorted(wrong))}")
        return ", ".join(dict.fromkeys((*RELEASE, *labels)))
