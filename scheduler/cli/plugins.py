"""``podium plugins``: every plugin on offer, where it comes from and at which extension points it takes part.

Packages are imported to ask them; one that cannot be used is listed with the reason. Exit codes: 0 all of them can be
used, 1 some cannot, 2 usage.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from scheduler.api import API_VERSION
from scheduler.config.default_plugins import KNOWN_POINTS
from scheduler.framework.points import POINTS, takes_part_in
from scheduler.framework.registry import Registry, RegistryError
from scheduler.plugins import IN_TREE
from scheduler.telemetry import logging

__all__ = ["plugins"]


@dataclass(frozen=True, slots=True)
class _Row:
    """One plugin; ``extension_points`` is None if its factory does not say which class it makes."""

    name: str
    distribution: str
    version: str
    api_version: int | None
    extension_points: list[str] | None
    problem: str = ""


def plugins(argv: Sequence[str], registry: Registry | None = None) -> int:
    """Print the list; returns the exit code."""
    parser = argparse.ArgumentParser(prog="podium plugins", allow_abbrev=False, description=__doc__.split("\n")[0])
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    output = parser.parse_args(argv).output
    logging.configure(verbosity=-1)
    rows = list(_rows(registry or Registry.installed(IN_TREE)))
    if output == "json":
        print(json.dumps([asdict(row) for row in rows], indent=2, ensure_ascii=False))
    else:
        _print_table(rows)
    return 1 if any(row.problem for row in rows) else 0


def _rows(registry: Registry) -> Iterator[_Row]:
    for name in registry.names:
        try:
            origin = registry.origin(name)
            made = registry.made(name)
        except RegistryError as error:
            yield _Row(name, "", "", None, None, str(error))
            continue
        if registry.is_in_tree(name):
            points: list[str] | None = [point for point in POINTS if point in KNOWN_POINTS.get(name, ())]
        else:
            points = None if made is None else [point for point in POINTS if takes_part_in(made, point)]
        shown = None if points is None else [_camel(point) for point in points]
        yield _Row(name, origin.distribution, origin.version, API_VERSION if made is None else made.api_version, shown)


def _camel(point: str) -> str:
    first, *others = point.split("_")
    return first + "".join(word.title() for word in others)


def _print_table(rows: Sequence[_Row]) -> None:
    table = [("NAME", "DISTRIBUTION", "VERSION", "API", "EXTENSION POINTS")]
    for row in rows:
        points = "known once it is made" if row.extension_points is None else " ".join(row.extension_points)
        api = "-" if row.api_version is None else str(row.api_version)
        table.append((row.name, row.distribution or "-", row.version or "-", api, row.problem or points))
    widths = [max(len(line[column]) for line in table) for column in range(4)]
    for line in table:
        print("  ".join([*(text.ljust(width) for text, width in zip(line, widths, strict=False)), line[4]]))
