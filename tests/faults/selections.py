"""How many tests each command of the bench's page selects: one that selects none shows nothing.

python -m tests.faults.selections     prints them as JSON; the tests are collected once, and none is run
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = Path(__file__).with_name("README.md")
_COMMAND = re.compile(r"(?:`|^ {4})(pytest tests/[^`#\n]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Command:
    """One call of pytest.

    Attributes:
        text: as it stands.
        paths: that it names.
        keywords: of ``-k``; "" if all tests are meant.
        has_faults: whether fault tests without a star are meant, too.
    """

    text: str
    paths: tuple[str, ...]
    keywords: str
    has_faults: bool

    @classmethod
    def parse(cls, text: str) -> Command:
        """Read what selects tests; an option that the page does not use so far is refused."""
        parser = argparse.ArgumentParser(exit_on_error=False)
        parser.add_argument("paths", nargs="+")
        parser.add_argument("-k", default="")
        parser.add_argument("--faults", action="store_true")
        parser.add_argument("--fault-seed", type=int)
        given = parser.parse_args(shlex.split(text)[1:])
        return cls(text, tuple(given.paths), given.k, given.faults)

    def selected(self, items: Sequence[pytest.Item], config: pytest.Config) -> list[pytest.Item]:
        """Return the tests that it selects, by pytest's own judgement of ``-k``."""
        places = [ROOT / path for path in self.paths]
        found = [item for item in items if any(item.path.is_relative_to(place) for place in places)]
        if not self.has_faults:
            marks = {item: item.get_closest_marker("fault") for item in found}
            found = [item for item in found if (mark := marks[item]) is None or mark.kwargs.get("starred")]
        config.option.keyword = self.keywords
        config.pluginmanager.get_plugin("mark").pytest_collection_modifyitems(items=found, config=config)
        return found


def commands(text: str) -> list[Command]:
    """Return the calls of pytest in a page that name a path, each once."""
    return [Command.parse(found.strip()) for found in dict.fromkeys(_COMMAND.findall(text))]


class Counting:
    """A plugin: counts what each command selects."""

    def __init__(self, of: Sequence[Command]) -> None:
        self._commands = of
        self.selected: dict[str, int] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item], config: pytest.Config) -> None:
        for command in self._commands:
            self.selected[command.text] = len(command.selected(items, config))
        items.clear()  # so that nothing is built for them


def main() -> int:
    """Collect what the commands name, and print how many tests each one selects; returns 1 if that cannot be done."""
    counting = Counting(commands(PAGE.read_text()))
    paths = dict.fromkeys(path for command in counting._commands for path in command.paths)
    known = [path for path in paths if (ROOT / path).exists()]
    arguments = ["--collect-only", "-q", "--faults", "-p", "no:cacheprovider", "--rootdir", str(ROOT), *known]
    sys.stdout, stdout = sys.stderr, sys.stdout
    ended = pytest.main(arguments, plugins=[counting])
    sys.stdout = stdout
    print(json.dumps(counting.selected))
    return 0 if ended == pytest.ExitCode.NO_TESTS_COLLECTED else 1


if __name__ == "__main__":
    sys.exit(main())
