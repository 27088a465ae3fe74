"""Relay of one watch: lines from the server to the client, through the rules that stand over them.

Lines keep their order except where an action changes it: what is held back holds back all behind it.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator

from tests.faults.proxy.http import LAST_CHUNK, ProtocolError, as_chunk
from tests.faults.proxy.http_actions import Rewrite, RewriteText
from tests.faults.proxy.lines import Line
from tests.faults.proxy.record import Seen
from tests.faults.proxy.rules import Handle, Subject
from tests.faults.proxy.watch_actions import CutMidLine, ErrorLine, LineAction, Memory, StreamAction
from tests.faults.proxy.wire import Wire

__all__ = ["BOOKMARK", "WatchRelay"]

_GRACE_S = 0.2
"""For so long a cut waits for a line to be cut; longer quiet gets a bookmark that nobody sent."""

BOOKMARK = b'{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"1"}}}'


class WatchRelay:
    """One open watch.

    Args:
        subject: the request.
        wire: to the client.
        seen: counts the lines.
    """

    def __init__(self, subject: Subject, wire: Wire, seen: Seen) -> None:
        self._subject = subject
        self._book = subject.book
        self._wire = wire
        self._seen = seen
        self._queue: deque[Line] = deque()
        self._memories: dict[Handle, Memory] = {}
        self._rest = b""
        self._has_ended = False
        self._is_broken = False
        self._news = asyncio.Event()

    async def run(self, pieces: AsyncIterator[bytes]) -> bool:
        """Relay to the end; tells whether the answer is whole, so that the connection may be used again.

        Raises:
            ConnectionError: the client has gone.
        """
        reading = asyncio.create_task(self._read(pieces))
        try:
            while True:
                now_s = time.monotonic()
                await self._send_due(now_s)
                ending = next((h for h in self._subject.standing(StreamAction) if self._due_s(h) <= now_s), None)
                if ending is not None:
                    return await self._end(ending)
                if self._has_ended and not self._queue and not any(m.kept for m in self._memories.values()):
                    return await self._finish()
                await self._wait(now_s)
        finally:
            reading.cancel()

    # --- from the server ---------------------------------------------------------------------------------------------

    async def _read(self, pieces: AsyncIterator[bytes]) -> None:
        try:
            async for piece in pieces:
                *whole, self._rest = (self._rest + piece).split(b"\n")
                now_s = time.monotonic()
                for raw in whole:
                    self._queue.extend(self._changed(Line(raw, now_s), now_s))
                self._news.set()
        except (ProtocolError, ConnectionError):
            self._is_broken = True
        self._has_ended = True
        self._news.set()

    def _changed(self, line: Line, now_s: float) -> list[Line]:
        lines = [line]
        for handle in self._line_rules():
            lines = [after for before in lines for after in self._apply(handle, before, now_s)]
        return lines

    def _line_rules(self) -> Iterator[Handle]:
        for handle in self._book.active():
            is_about_lines = isinstance(handle.action, LineAction | Rewrite | RewriteText)
            if is_about_lines and handle.rule.match.fits(self._subject.request):
                yield handle

    def _apply(self, handle: Handle, line: Line, now_s: float) -> list[Line]:
        action = handle.action
        if isinstance(action, LineAction):
            memory = self._memories.setdefault(handle, Memory())
            if not (action.lines.fits(line) and handle.picks()):
                return action.passes(line, memory)
            handle.hit(self._subject.request, str(line))
            after = action.apply(line, memory, now_s)
            if line.due_s > now_s:
                line.held_by = handle
            return after
        changed = self._rewritten(action, line)
        if changed.raw == line.raw or not handle.picks():
            return [line]
        handle.hit(self._subject.request, str(line))
        return [changed]

    @staticmethod
    def _rewritten(action: object, line: Line) -> Line:
        if isinstance(action, RewriteText):
            return line.with_raw(line.raw.replace(action.old, action.new))
        assert isinstance(action, Rewrite)
        if line.type not in ("ADDED", "MODIFIED", "DELETED"):
            return line
        return line.with_event(object=action.edit(Line(line.raw).event["object"]))

    # --- to the client -----------------------------------------------------------------------------------------------

    async def _send_due(self, now_s: float) -> None:
        self._let_go(now_s)
        due: list[bytes] = []
        while self._queue and self._line_due_s(self._queue[0]) <= now_s:
            due += (self._queue.popleft().raw, b"\n")
            self._seen.lines += 1
        await self._wire.send(as_chunk(b"".join(due)))

    def _let_go(self, now_s: float) -> None:
        """Give back what an action has kept for too long, or had kept when its rule ended."""
        for memory in self._memories.values():
            for key, line in list(memory.kept.items()):
                if self._line_due_s(line) <= now_s:
                    self._queue.append(memory.kept.pop(key))

    @staticmethod
    def _line_due_s(line: Line) -> float:
        if line.held_by is not None and not line.held_by.is_active(time.monotonic()):
            return 0.0
        return line.due_s

    async def _wait(self, now_s: float) -> None:
        """Wait for a line, a change of the rules, or the time at which something is due."""
        times = [self._due_s(handle) for handle in self._subject.standing(StreamAction)]
        times += [self._line_due_s(line) for memory in self._memories.values() for line in memory.kept.values()]
        if self._queue:
            times.append(self._line_due_s(self._queue[0]))
        news = asyncio.create_task(self._news.wait())
        change = asyncio.create_task(self._book.until_change(max(0.0, min(times, default=float("inf")) - now_s)))
        try:
            await asyncio.wait({news, change}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            news.cancel()
            change.cancel()
        self._news.clear()

    # --- the end -----------------------------------------------------------------------------------------------------

    def _due_s(self, handle: Handle) -> float:
        action = handle.action
        assert isinstance(action, StreamAction)
        return max(self._subject.began_s, handle.added_s + handle.rule.match.window_s[0]) + action.after_s

    async def _finish(self) -> bool:
        if self._is_broken:
            return False
        await self._wire.send(LAST_CHUNK)
        return True

    async def _end(self, handle: Handle) -> bool:
        """Carry out an action that ends the watch."""
        action = handle.action
        if isinstance(action, CutMidLine):
            raw = (await self._next_line() or Line(BOOKMARK)).raw
            handle.hit(self._subject.request, f"after {len(raw) // 2} bytes of {raw[:80]!r}")
            await self._wire.send(as_chunk(raw[: len(raw) // 2]))
            return False
        if isinstance(action, ErrorLine):
            await self._wire.send(as_chunk(action.line().raw + b"\n"))
        handle.hit(self._subject.request)
        await self._wire.send(LAST_CHUNK)
        return False  # the server goes on with the watch, so its connection is of no use

    async def _next_line(self) -> Line | None:
        deadline_s = time.monotonic() + _GRACE_S
        while not self._queue and (left_s := deadline_s - time.monotonic()) > 0.0 and not self._has_ended:
            self._news.clear()
            try:
                async with asyncio.timeout(left_s):
                    await self._news.wait()
            except TimeoutError:
                break
        return self._queue.popleft() if self._queue else None
