"""Size gates: no module above 600 lines, no function above 80; prints the largest, and the six files to read first.

A file past the limit usually holds two ideas, a function past it always does.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

MAX_MODULE_LINES = 600
MAX_FUNCTION_LINES = 80
ROOT = Path(__file__).resolve().parents[1] / "scheduler"
FIRST_SIX = (
    "kube/reflector.py",
    "intake/pods.py",
    "state/queue/queue.py",
    "cycle/schedule_one.py",
    "binding/binder.py",
    "cycle/failure.py",
)


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Yield (place, lines) of every function in a module."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{path.relative_to(ROOT)}:{node.lineno} {node.name}", (node.end_lineno or 0) - node.lineno + 1


def main() -> int:
    """Print the sizes; exit 1 if a gate is closed."""
    modules = {str(p.relative_to(ROOT)): len(p.read_text().splitlines()) for p in ROOT.rglob("*.py")}
    sizes = sorted((item for path in ROOT.rglob("*.py") for item in functions(path)), key=lambda item: -item[1])
    longest = sorted(modules.items(), key=lambda item: -item[1])
    print(f"{len(modules)} modules, {sum(modules.values())} lines; largest: {longest[:3]}; longest: {sizes[:3]}")
    print(f"the six files of the pipeline: {sum(modules.get(name, 0) for name in FIRST_SIX)} lines")
    too_long = [item for item in longest if item[1] > MAX_MODULE_LINES]
    too_long += [item for item in sizes if item[1] > MAX_FUNCTION_LINES]
    for place, lines in too_long:
        print(f"too long: {place} has {lines} lines", file=sys.stderr)
    return 1 if too_long else 0


if __name__ == "__main__":
    sys.exit(main())
