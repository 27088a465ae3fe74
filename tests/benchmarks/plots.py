"""Plots for the documentation, made only where matplotlib is installed (``make bench`` installs it).

Throughput by cluster size, ratios, waits, decisions of the core alone, memory in the steady state.
"""

from __future__ import annotations

import importlib
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks import side_tables
from tests.benchmarks.contestants import KUBE, PODIUM
from tests.benchmarks.documents import CORE, SIDE_BY_SIDE, STEADY

Result = dict[str, Any]


class NoMatplotlibError(RuntimeError):
    """Plots need matplotlib, which is in the extra ``bench`` only."""


Series = Mapping[str, Sequence[tuple[float, float]]]


def draw_all(results: Mapping[str, Sequence[Result]], directory: Path) -> dict[str, list[str]]:
    """Draw what the results (by kind of document) are enough for; returns the file names by kind.

    Raises:
        NoMatplotlibError: there is nothing to draw with.
    """
    pyplot = _pyplot()
    drawn: dict[str, list[str]] = {}
    for kind, draw in ((SIDE_BY_SIDE, _side_by_side), (CORE, _core), (STEADY, _steady)):
        if results.get(kind):
            drawn[kind] = draw(pyplot, directory, results[kind])
    return drawn


def _side_by_side(pyplot: Any, directory: Path, results: Sequence[Result]) -> list[str]:
    groups = side_tables.groups(results)
    bars: dict[str, float] = {}
    sizes: dict[str, list[tuple[float, float]]] = {}
    waits: dict[str, list[tuple[float, float]]] = {}
    for (key, nodes, _, _), mine in groups.items():
        found = side_tables.ratios(mine, PODIUM, KUBE)
        if found:
            bars[f"{key} {nodes:,}"] = statistics.median(found)
        for name in dict.fromkeys(r["contestant"] for r in mine):
            own = [r for r in mine if r["contestant"] == name]
            if key in ("W1", "W2"):
                sizes.setdefault(name, []).append((nodes, statistics.median(r["pods_per_s"] for r in own)))
            if key in ("W1a", "W8a", "W8q"):
                points = own[0]["wait_ms"].items()
                waits[f"{key} {name}"] = [(float(p), max(float(ms or 0), 0.1)) for p, ms in points]
    names = []
    if bars:
        names.append(_bars(pyplot, directory / "ratios.svg", bars, "Podium against kube-scheduler", "times as fast"))
    names.append(
        _lines(pyplot, directory / "throughput.svg", sizes, ("Plain pods", "nodes", "pods/s"), "log", "linear")
    )
    if waits:
        labels = ("From creation to bind, pods arriving", "per cent of the pods", "ms")
        names.append(_lines(pyplot, directory / "waits.svg", waits, labels, "linear", "log"))
    return names


def _core(pyplot: Any, directory: Path, results: Sequence[Result]) -> list[str]:
    series: dict[str, list[tuple[float, float]]] = {}
    for r in sorted(results, key=lambda r: (r["case"], r["nodes"])):
        if r["metrics"] == "real":
            series.setdefault(f"{r['case']} {r['title']}", []).append((r["nodes"], r["decisions_per_s"]))
    labels = ("Decisions on one core", "nodes", "decisions/s")
    return [_lines(pyplot, directory / "core-decisions.svg", series, labels, "log", "log")]


def _steady(pyplot: Any, directory: Path, results: Sequence[Result]) -> list[str]:
    series = {r["where"]: r["rss_mb"] for r in results}
    labels = ("Pods created and deleted", "pods so far", "resident memory, MB")
    return [_lines(pyplot, directory / "steady.svg", series, labels, "linear", "linear")]


# --- drawing ---------------------------------------------------------------------------------------------------------


def _pyplot() -> Any:
    try:
        matplotlib = importlib.import_module("matplotlib")
    except ImportError as error:
        raise NoMatplotlibError("no plots: matplotlib is not installed (make bench-docs installs it)") from error
    matplotlib.use("Agg")
    matplotlib.rcParams |= {"svg.hashsalt": "podium", "svg.fonttype": "none"}  # small files, the same ones every time
    return importlib.import_module("matplotlib.pyplot")


def _lines(pyplot: Any, path: Path, series: Series, labels: tuple[str, str, str], x_scale: str, y_scale: str) -> str:
    """Draw one line a series; ``labels`` are title, x and y. Returns the file's name."""
    figure, axes = pyplot.subplots(figsize=(7, 4.2))
    for name, points in series.items():
        ordered = sorted(points)
        axes.plot([p[0] for p in ordered], [p[1] for p in ordered], marker="o", markersize=3, label=name)
    axes.set_xscale(x_scale)
    axes.set_yscale(y_scale)
    if y_scale == "linear":
        axes.set_ylim(bottom=0)
    if series:
        axes.legend(fontsize=8)
    return _finish(pyplot, figure, axes, path, labels)


def _bars(pyplot: Any, path: Path, heights: Mapping[str, float], title: str, y: str) -> str:
    """Draw one bar an entry, with a line at 1."""
    figure, axes = pyplot.subplots(figsize=(7, 4.2))
    axes.bar(list(heights), list(heights.values()))
    axes.axhline(1.0, linewidth=1, linestyle="--")
    axes.tick_params(axis="x", rotation=60)
    return _finish(pyplot, figure, axes, path, (title, "", y))


def _finish(pyplot: Any, figure: Any, axes: Any, path: Path, labels: tuple[str, str, str]) -> str:
    title, x, y = labels
    axes.set(title=title, xlabel=x, ylabel=y)
    axes.grid(visible=True, alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    return path.name
