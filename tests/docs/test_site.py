"""The documentation is a site: every page is reached, every link leads somewhere, the plugin API is shown."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    target = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [
            sys.executable,
            "-m",
            "sphinx",
            "-W",
            "--keep-going",
            "-q",
            "-b",
            "html",
            "-d",
            target / "doctrees",
            "docs",
            target / "html",
        ],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    return target / "html"


@pytest.mark.timeout(300)
def test_builds_without_warnings(site):
    """Warnings are errors; each Markdown file has become a page."""
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    assert {page for page in pages if not (site / page).exists()} == set()


@pytest.mark.timeout(300)
def test_shows_the_plugin_api(site):
    """What a plugin author imports stands there with its documentation."""
    page = (site / "reference" / "plugin-api.html").read_text()
    for name in ("FilterPlugin", "ScorePlugin", "PermitPlugin", "QueueingHint", "NodesView", "CycleState"):
        assert f'id="scheduler.api.{name}"' in page, name
