"""The example packages: they install, are listed, and pass their own tests as installed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples.install import EXAMPLES, NAMES, install_all

EXPECTED = {
    "carbon_aware": ("CarbonAware", "podium-example-carbon-aware", ["preScore", "score"]),
    "gang": ("Gang", "podium-example-gang", ["preFilter", "postFilter", "reserve", "permit"]),
    "template": ("QuietNodes", "podium-example-quiet-nodes", ["filter"]),
    "usage_aware": ("UsageAware", "podium-example-usage-aware", ["reserve", "preScore", "score"]),
}


def test_there_are_these_examples():
    assert set(EXPECTED) == set(NAMES)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The environment in which all of them are installed, side by side."""
    return install_all(tmp_path_factory.mktemp("site"))


def run(environment, *arguments, cwd=None):
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=cwd, timeout=300)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", NAMES)
def test_own_tests_pass_on_the_installed_package(name, site, tmp_path):
    """Run from elsewhere, so that what is imported is what was installed."""
    folder = EXAMPLES / name
    options = ["-q", "-c", str(folder / "pyproject.toml"), "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    done = run(site, "pytest", *options, str(folder / "tests"), cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-6000:]


@pytest.mark.timeout(300)
def test_podium_lists_all_of_them(site):
    """Each with the distribution that it is of."""
    done = run(site, "scheduler", "plugins", "-o", "json")
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row for row in json.loads(done.stdout)}
    for plugin, distribution, points in EXPECTED.values():
        assert rows[plugin] == {
            "name": plugin,
            "distribution": distribution,
            "version": "0.1.0",
            "api_version": 1,
            "extension_points": points,
            "problem": "",
        }


def test_the_template_has_a_configuration_that_fits(site, tmp_path):
    """And one that does not fit is refused, with the path of what is wrong."""
    environment = site
    file = EXAMPLES / "template" / "profile.yaml"
    done = run(environment, "scheduler", "check-config", str(file))
    assert (done.returncode, done.stdout) == (0, f"{file}: ok\n")
    wrong = Path(tmp_path / "wrong.yaml")
    wrong.write_text(file.read_text().replace("maxPods: 20", "maxPods: twenty"))
    done = run(environment, "scheduler", "check-config", str(wrong))
    path = "profiles[0].pluginConfig[0].args.maxPods"
    assert (done.returncode, done.stdout) == (1, f"{path}: plugin QuietNodes: Expected `int`, got `str`\n")
