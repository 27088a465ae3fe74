"""Exchange: one request of a client, its way to the server, and the answer's way back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from tests.faults.proxy.http import LAST_CHUNK, Head, as_chunk, body_pieces, read_head
from tests.faults.proxy.http_actions import Answer, DelayRequest, HttpAction, Rewrite, RewriteText
from tests.faults.proxy.record import Seen
from tests.faults.proxy.rules import Handle, Subject
from tests.faults.proxy.streams import Reader
from tests.faults.proxy.watch import WatchRelay
from tests.faults.proxy.wire import Wire

__all__ = ["Exchange", "Sides"]


@dataclass(frozen=True, slots=True)
class Sides:
    """The two ends of a connection through the proxy."""

    client: Reader
    server: Reader
    to_server: Wire
    to_client: Wire


class Exchange:
    """See the module.

    Args:
        subject: the request, and what stands over it.
        sides: where bytes come from and go to.
        seen: its record.
    """

    def __init__(self, subject: Subject, sides: Sides, seen: Seen) -> None:
        self._subject = subject
        self._sides = sides
        self._seen = seen

    async def run(self, head: Head, body: bytes) -> bool:
        """Carry it out; tells whether the connection may be used again.

        Raises:
            ConnectionError, ProtocolError: a side has gone, or a rule has closed the connection.
        """
        faults = self._subject.standing(HttpAction)
        is_forwarded = all(_action(fault).forwards for fault in faults)
        if (delay_s := sum(_action(fault).request_delay_s for fault in faults)) > 0.0:
            await asyncio.sleep(delay_s)
        if not is_forwarded:
            return await self._answer(Answer(Head("HTTP/1.1 502 Not Forwarded")), faults, keep=True)
        await self._forward(head, body)
        answer_head = await read_head(self._sides.server)
        if answer_head is None:
            raise ConnectionResetError("the server closed the connection")
        self._seen.server_status = answer_head.status
        pieces = body_pieces(self._sides.server, answer_head, is_answer=True)
        if self._subject.request.verb == "watch" and answer_head.status == 200:
            if not _are_for_answers(faults):
                return await self._watch(answer_head, pieces)
            return await self._answer(Answer(answer_head).with_body(b""), faults, keep=False)
        whole = b"".join([piece async for piece in pieces])
        answer = Answer(answer_head).with_body(whole)
        return await self._answer(answer, faults, keep=answer_head.is_kept_alive)

    async def _forward(self, head: Head, body: bytes) -> None:
        await self._sides.to_server.passable()
        if self._sides.client.ended.is_set():
            raise ConnectionResetError("the client gave up in a black hole")
        self._seen.is_forwarded = True
        if head.is_chunked:  # it has been read as a whole
            head = head.with_field("Transfer-Encoding", None).with_field("Content-Length", str(len(body)))
        await self._sides.to_server.send(head.to_bytes() + body)

    async def _watch(self, head: Head, pieces: AsyncIterator[bytes]) -> bool:
        self._seen.status = head.status
        await self._sides.to_client.send(head.to_bytes())
        return await WatchRelay(self._subject, self._sides.to_client, self._seen).run(pieces)

    async def _answer(self, answer: Answer | None, faults: list[Handle], *, keep: bool) -> bool:
        for fault in faults:
            if answer is not None:
                fault.hit(self._subject.request)
                answer = _action(fault).change(answer)
        if answer is None:
            return False
        if answer.is_silent:
            await asyncio.Event().wait()  # until the client gives up, or a rule ends the connection
        await self._send(answer)
        return keep and answer.cut_at_bytes is None

    async def _send(self, answer: Answer) -> None:
        wire, status = self._sides.to_client, answer.head.status
        head = answer.head.with_field("Content-Length", None).with_field("Transfer-Encoding", None)
        is_bodiless = status in (204, 304)
        if answer.length_bytes is None and not is_bodiless:
            head = head.with_field("Transfer-Encoding", "chunked")
        elif not is_bodiless:
            head = head.with_field("Content-Length", str(answer.length_bytes))
        data = head.to_bytes()
        self._seen.status = status
        if answer.body_delay_s:
            await wire.send(data)
            data = b""
            await asyncio.sleep(answer.body_delay_s)
        left = answer.cut_at_bytes
        for piece in answer.body:
            cut = piece if left is None else piece[:left]
            data += cut if answer.length_bytes is not None else as_chunk(cut)
            await wire.send(data)
            data = b""
            if left is not None and not (left := left - len(cut)):
                return
        if answer.length_bytes is None and not is_bodiless:
            data += LAST_CHUNK
        await wire.send(data)


def _action(handle: Handle) -> HttpAction:
    assert isinstance(handle.action, HttpAction)
    return handle.action


def _are_for_answers(faults: list[Handle]) -> bool:
    """Tell whether an action wants an answer as a whole, so that a watch is none any more."""
    return any(not isinstance(fault.action, Rewrite | RewriteText | DelayRequest) for fault in faults)
