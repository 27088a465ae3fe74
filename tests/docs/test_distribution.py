"""`make release` makes what people install: a wheel with the scheduler alone, a source archive that can be tested."""

import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    target = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", target, ROOT]
    built = subprocess.run(command, check=False, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    return target


@pytest.mark.timeout(180)
def test_the_wheel_holds_the_scheduler_and_nothing_else(dist):
    """No tests, no documentation; the licence and the command are in it."""
    (wheel,) = dist.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"scheduler"}
    assert any(name.endswith("licenses/LICENSE") for name in names)
    entry_points = next(name for name in names if name.endswith("entry_points.txt"))
    assert "podium = scheduler.cli.main:entry" in zipfile.ZipFile(wheel).read(entry_points).decode()


@pytest.mark.timeout(180)
def test_the_source_archive_can_be_tested(dist):
    """It holds the tests, their golden files and the lock files."""
    (archive,) = dist.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.split("/", 1)[-1] for name in opened.getnames()}
    assert {"Makefile", "requirements/runtime.lock", "tests/conftest.py", "scheduler/__init__.py"} <= names
    assert any(name.startswith("tests/conformance/golden/") for name in names)


@pytest.mark.timeout(180)
def test_the_sbom_lists_every_locked_package(tmp_path):
    """CycloneDX, one component for each package of runtime.lock, each with a hash."""
    target = tmp_path / "sbom.json"
    lock = ROOT / "requirements" / "runtime.lock"
    tool = Path(sys.executable).with_name("cyclonedx-py")
    subprocess.run([tool, "requirements", lock, "--of", "JSON", "-o", target], check=True, capture_output=True)
    listed = {f"{part['name']}=={part['version']}" for part in json.loads(target.read_text())["components"]}
    locked = {line.split()[0] for line in lock.read_text().splitlines() if "==" in line and not line.startswith(" ")}
    assert listed == locked
