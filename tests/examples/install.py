"""Install the example packages with pip, without a network, into a directory of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NAMES = tuple(sorted(path.parent.name for path in EXAMPLES.glob("*/pyproject.toml")))


def install_all(directory: Path) -> dict[str, str]:
    """Build all examples and install them into `directory`; returns the environment in which they are installed."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    offline = ["--no-index", "--no-deps", "--no-build-isolation", "--no-cache-dir"]
    target = ["--target", str(directory), *(str(EXAMPLES / name) for name in NAMES)]
    done = subprocess.run([*pip, *offline, *target], capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, f"pip could not install the examples:\n{done.stderr}"
    return {**os.environ, "PYTHONPATH": str(directory)}
