"""What a merge or a slip of the hand leaves in the files of the repository, and no other test would see."""

import os
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MERGE = re.compile(r"^(<{7}|>{7}|\|{7}) ", re.MULTILINE)
NAMED_TARGET = re.compile(r"(?<!\w)make ([a-z][a-z-]+)\b(?= {2,}|`|\"|$)", re.MULTILINE)
SOURCE = re.compile(r"://|--(extra-)?index-url|--find-links|--trusted-host")


def texts():
    """Yield every tracked text file's name with its content."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        content = (ROOT / name).read_bytes() if (ROOT / name).is_file() else b"\0"
        if b"\0" not in content and not name.endswith(".xz"):
            yield name, content.decode()


def test_no_merge_is_half_done():
    """Git's marks would be shown to readers as they are."""
    assert [name for name, text in texts() if MERGE.search(text)] == []


def test_lock_files_do_not_say_where_packages_come_from():
    """Versions and hashes do; the index is the machine's own choice."""
    locks = {name: text for name, text in texts() if name.startswith("requirements/")}
    assert len(locks) >= 5
    assert [name for name, text in locks.items() if SOURCE.search(text)] == []


def test_every_design_record_has_a_number_of_its_own():
    """The file's name and its title agree about it, and others refer to it by it."""
    records = sorted((ROOT / "docs" / "design").glob("*.md"))
    numbers = Counter(record.name[:4] for record in records)
    assert [number for number, times in numbers.items() if times > 1] == []
    assert [r.name for r in records if not re.match(rf"# {r.name[:4]} — \S", r.read_text())] == []


@pytest.mark.parametrize("page", ["Makefile", "README.md", "CONTRIBUTING.md", "docs/start.md", "docs/performance.md"])
def test_every_make_target_that_is_named_can_be_made(page):
    """`make -n` finds a rule for it and for all that it needs."""
    named = sorted(set(NAMED_TARGET.findall((ROOT / page).read_text())))
    assert named
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    for target in named:
        made = subprocess.run(
            ["make", "-n", target], cwd=ROOT, env=environment, check=False, capture_output=True, text=True
        )
        assert made.returncode == 0, made.stderr
