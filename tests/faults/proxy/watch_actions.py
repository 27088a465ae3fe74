"""Watch actions: faults of whole streams, and of their lines.

Actions on streams are carried out once for each stream that a rule picks, and end it. Actions on lines look at each
line of the streams that fit, and their ``lines`` say which ones they are for; ``nth`` and ``probability`` of the match
count lines here, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from tests.faults.proxy.lines import Line
from tests.faults.proxy.rules import Action

__all__ = [
    "CutMidLine",
    "DropLines",
    "DuplicateLines",
    "EndWatch",
    "ErrorLine",
    "HoldLines",
    "LineAction",
    "Lines",
    "MergeRecreated",
    "StreamAction",
    "SwapLines",
    "suppress_bookmarks",
]

BOOKMARK = "BOOKMARK"


# --- whole streams ---------------------------------------------------------------------------------------------------


class StreamAction(Action):
    """Ends a watch, ``after_s`` after it was opened (or the rule was added, if that was later)."""

    after_s: float


@dataclass(frozen=True, slots=True)
class EndWatch(StreamAction):
    """The server closes the watch, as it does every five to ten minutes."""

    after_s: float = 0.0


@dataclass(frozen=True, slots=True)
class CutMidLine(StreamAction):
    """The connection is closed in the middle of a line: of the next one, or of a bookmark if none comes soon."""

    after_s: float = 0.0


@dataclass(frozen=True, slots=True)
class ErrorLine(StreamAction):
    """An ERROR event with a Status, and the end of the watch: 410 Expired, or 500."""

    code: int = 410
    reason: str = "Expired"
    message: str = "too old resource version: 1 (2)"
    after_s: float = 0.0

    def line(self) -> Line:
        status: dict[str, object] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        status |= {"message": self.message, "reason": self.reason, "code": self.code}
        return Line(json.dumps({"type": "ERROR", "object": status}).encode())


# --- lines -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Lines:
    """Which lines an action is for.

    Attributes:
        types: of the events; none given: all.
        name: regular expression for namespace/name of the object.
        where: anything else.
    """

    types: Collection[str] = ()
    name: str | None = None
    where: Callable[[Line], bool] | None = None

    def fits(self, line: Line) -> bool:
        return (
            (not self.types or line.type in self.types)
            and (self.name is None or re.search(self.name, "/".join(line.key)) is not None)
            and (self.where is None or self.where(line))
        )


@dataclass(slots=True)
class Memory:
    """What an action remembers of one stream: lines that it keeps back, by object."""

    kept: dict[tuple[str, str], Line] = field(default_factory=dict)


class LineAction(Action):
    """Turns a line into none, one or several."""

    lines: Lines

    def apply(self, line: Line, memory: Memory, now_s: float) -> list[Line]:
        """Return what goes on instead of a line that was picked."""
        raise NotImplementedError

    def passes(self, line: Line, memory: Memory) -> list[Line]:
        """Return what goes on when a line passes that was not picked."""
        return [line]


@dataclass(frozen=True, slots=True)
class DropLines(LineAction):
    """They are lost."""

    lines: Lines = field(default_factory=Lines)

    def apply(self, line: Line, memory: Memory, now_s: float) -> list[Line]:
        return []


def suppress_bookmarks() -> DropLines:
    """Return the action that lets no bookmark pass."""
    return DropLines(Lines(types=(BOOKMARK,)))


@dataclass(frozen=True, slots=True)
class DuplicateLines(LineAction):
    """They come twice, one right after the other."""

    lines: Lines = field(default_factory=Lines)

    def apply(self, line: Line, memory: Memory, now_s: float) -> list[Line]:
        return [line, line]


@dataclass(frozen=True, slots=True)
class HoldLines(LineAction):
    """They, and all lines of the stream behind them, come later by ``for_s``; None: when the rule is removed."""

    for_s: float | None = None
    lines: Lines = field(default_factory=Lines)

    def apply(self, line: Line, memory: Memory, now_s: float) -> list[Line]:
        line.due_s = float("inf") if self.for_s is None else max(line.due_s, now_s + self.for_s)
        return [line]


@dataclass(frozen=True, slots=True)
class SwapLines(LineAction):
    """Neighbours about different objects change places, two and two; never across a bookmark.

    A line waits for its partner until the rule is removed, or ``at_most_s``.
    """

    at_most_s: float = 0.2
    lines: Lines = field(default_factory=lambda: Lines(types=("ADDED", "MODIFIED", "DELETED")))

    def apply(self, line: Line, memory: Memory, now_s: float) -> list[Line]:
        if not memory.kept:
            line.due_s = now_s + self.at_most_s
            memory.kept[line.key] = line
            return []
        ((key, first),) = memory.kept.items()
        memory.kept.clear()
        first.due_s = line.due_s
        return [first, line] if key == line.key else [line, first]

    def passes(self, line: Line, memory: Memory) -> list[Line]:
        first = list(memory.kept.values())
        memory.kept.clear()
        for each in first:
            each.due_s = line.due_s
        return [*first, line]


@dataclass(frozen=True, slots=True)
class MergeRecreated(LineAction):
    """An object that is deleted and created again under its name seems to be modified: one line, with the new UID."""

    lines: Lines = field(default_factory=lambda: Lines(types=("DELETED", "ADDED")))

    def apply(self, line: Line, memory: Memory, now_s: float) -> list[Line]:
        if line.type == "DELETED":
            line.due_s = float("inf")
            memory.kept[line.key] = line
            return []
        return [line.with_event(type="MODIFIED") if memory.kept.pop(line.key, None) is not None else line]
