"""Plots for the documentation, made only where matplotlib is installed (extra ``bench``)."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

NO_MATPLOTLIB = "no plots: matplotlib is not installed (pip install 'podium-scheduler[bench]')"

Series = Mapping[str, Sequence[tuple[float, float]]]


def lines(path: Path, series: Series, *, title: str, x: str, y: str, log: bool = True) -> str:
    """Draw one line a series; returns what was done, for people."""
    pyplot = _pyplot()
    if pyplot is None:
        return NO_MATPLOTLIB
    figure, axes = pyplot.subplots(figsize=(7, 4.2))
    for name, points in series.items():
        axes.plot([p[0] for p in points], [p[1] for p in points], marker="o", markersize=3, label=name)
    if log:
        axes.set_xscale("log")
        axes.set_yscale("log")
    return _finish(pyplot, figure, axes, path, title, x, y, has_legend=True)


def bars(path: Path, heights: Mapping[str, float], *, title: str, y: str) -> str:
    """Draw one bar an entry, with a line at 1; returns what was done."""
    pyplot = _pyplot()
    if pyplot is None:
        return NO_MATPLOTLIB
    figure, axes = pyplot.subplots(figsize=(7, 4.2))
    axes.bar(list(heights), list(heights.values()))
    axes.axhline(1.0, linewidth=1, linestyle="--")
    axes.tick_params(axis="x", rotation=45)
    return _finish(pyplot, figure, axes, path, title, "", y, has_legend=False)


def _pyplot() -> Any:
    try:
        importlib.import_module("matplotlib").use("Agg")
        return importlib.import_module("matplotlib.pyplot")
    except ImportError:
        return None


def _finish(pyplot: Any, figure: Any, axes: Any, path: Path, title: str, x: str, y: str, *, has_legend: bool) -> str:
    axes.set(title=title, xlabel=x, ylabel=y)
    axes.grid(visible=True, alpha=0.3)
    if has_legend:
        axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)
    return f"plot: {path.name}"
