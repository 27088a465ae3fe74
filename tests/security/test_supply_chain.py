"""What is installed beside us, and what our own code may not do: checked without asking anybody.

Known vulnerabilities are another matter: `make audit` asks PyPI's service, where the network allows it.
"""

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCKS = sorted((ROOT / "requirements").glob("*.lock"))
PERMITTED = re.compile(
    r"(?:Apache(?: Software License|[- ]2\.0)?|MIT(?:-0| License)?|BSD(?:-[23]-Clause| License)?|0BSD|ISC|Zlib|CC0-1\.0"
    r"|PSF-2\.0|MPL-2\.0)"
)
"""Licences under which a package may be installed beside one under Apache-2.0; MPL covers its own files only."""

FORBIDDEN = {
    "S102": "exec",
    "S301": "pickle",
    "S302": "marshal",
    "S307": "eval",
    "S324": "weak hashes",
    "S501": "TLS without verification",
    "S506": "yaml.load",
    "S602": "shell=True",
    "S604": "shell=True",
    "S605": "a shell",
    "S608": "SQL from strings",
}
UNNAMED = {"pyreqwest": "Apache-2.0"}
"""Packages whose metadata name no licence, and what the LICENSE file that they bring says."""


def pinned(lock: Path) -> list[str]:
    """Return the requirements of a lock file, each with its hashes."""
    joined = lock.read_text().replace("\\\n", " ")
    return [line for line in joined.splitlines() if line.strip() and not line.lstrip().startswith("#")]


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_package_is_pinned_to_its_content(lock):
    """One version, at least one SHA-256, and no source but the index that the user has set."""
    assert pinned(lock)
    for requirement in pinned(lock):
        assert re.match(r"[A-Za-z0-9._-]+==[^\s;]+[\s;]", requirement), requirement
        assert re.search(r"--hash=sha256:[0-9a-f]{64}(?:\s|$)", requirement), requirement
        assert not re.search(r"https?://|git\+|--(?:index|extra-index|find-links|trusted)", requirement), requirement


def licence_of(package: str) -> str:
    metadata = importlib.metadata.metadata(package)
    classifiers = [c.rsplit(" :: ", 1)[-1] for c in metadata.get_all("Classifier") or [] if c.startswith("License ::")]
    return metadata.get("License-Expression") or metadata.get("License") or " OR ".join(classifiers) or UNNAMED[package]


def test_what_runs_beside_us_may_be_given_away_with_us():
    for requirement in pinned(ROOT / "requirements" / "runtime.lock"):
        package = requirement.split("==")[0]
        licence = licence_of(package)
        assert all(PERMITTED.fullmatch(part) for part in re.split(r" (?:AND|OR) ", licence)), (package, licence)


def test_our_code_runs_no_text_and_trusts_no_pickle():
    """Not even where a comment asks the linter to look away."""
    command = [
        Path(sys.executable).with_name("ruff"),
        "check",
        "--isolated",
        "--ignore-noqa",
        "--output-format=concise",
    ]
    done = subprocess.run(
        [*command, "--select", ",".join(FORBIDDEN), "scheduler", "deploy", "docs", "examples"],
        cwd=ROOT, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_linter_would_see_them(tmp_path):
    """Each rule finds what it is there for: one that was renamed or removed must not pass in silence."""
    (tmp_path / "bad.py").write_text(
        "import hashlib, os, pickle, marshal, ssl, subprocess, yaml, requests\n"
        "exec('1')\npickle.loads(b'')\nmarshal.loads(b'')\neval('1')\nhashlib.md5(b'')\n"
        "requests.get('https://x', verify=False)\nyaml.load('')\nsubprocess.run('ls', shell=True)\n"
        "own.run('ls', shell=True)\nos.system('ls')\nf'SELECT * FROM t WHERE a={eval}'\n"
    )
    command = [Path(sys.executable).with_name("ruff"), "check", "--isolated", "--output-format=concise", "--select"]
    done = subprocess.run([*command, ",".join(FORBIDDEN), tmp_path], check=False, capture_output=True, text=True)
    assert {code for code in FORBIDDEN if f" {code} " in done.stdout} == FORBIDDEN.keys(), done.stdout
