"""The plugin author's guide: all its blocks run, in their order, and the package that it describes installs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from scheduler.config.options import PluginFaults, load_options
from scheduler.framework.registry import Registry

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "write-a-plugin.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", GUIDE.read_text(), re.DOTALL | re.MULTILINE)


def test_every_language_is_looked_at_here() -> None:
    """A block that no test runs would go stale."""
    assert set(re.findall(r"^```(\w+)$", GUIDE.read_text(), re.MULTILINE)) == {"python", "toml", "yaml"}


def test_python_blocks_run_in_their_order() -> None:
    """Each goes on where the one before has ended; their asserts are the guide's claims."""
    namespace: dict[str, object] = {"__name__": "guide"}
    text = GUIDE.read_text()
    for block in blocks("python"):
        line = text[: text.index(block)].count("\n")
        exec(compile("\n" * line + block, str(GUIDE), "exec", dont_inherit=True), namespace)
    plugins = Registry({"QuietNodes": namespace["QuietNodes"]})  # type: ignore[dict-item]
    assert plugins.made("QuietNodes") is namespace["QuietNodes"]


def test_ten_lines_are_ten_lines() -> None:
    """What counts is code: blank lines do not."""
    assert len([line for line in blocks("python")[0].splitlines() if line.strip()]) <= 10


def test_options_are_options() -> None:
    (text,) = blocks("yaml")
    assert load_options(text.encode()).plugin_faults_of("podium") == PluginFaults("SkipPlugin", 200, 5, 60.0, 300.0)


@pytest.mark.timeout(180)
def test_the_package_installs_and_is_found(tmp_path: Path) -> None:
    """The ten lines and the project file are all it takes."""
    project, site = tmp_path / "project", tmp_path / "site"
    project.mkdir()
    (project / "quiet_nodes.py").write_text(blocks("python")[0])
    (project / "pyproject.toml").write_text(blocks("toml")[0])
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    offline = ["--no-index", "--no-deps", "--no-build-isolation", "--no-cache-dir"]
    subprocess.run([*pip, *offline, "--target", str(site), str(project)], check=True, timeout=120)
    listing = subprocess.run(
        [sys.executable, "-m", "scheduler", "plugins", "-o", "json"],
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        check=True,
        timeout=60,
    )
    (row,) = [row for row in json.loads(listing.stdout) if row["name"] == "QuietNodes"]
    assert (row["distribution"], row["version"], row["extension_points"]) == ("quiet-nodes", "1.0.0", ["filter"])
