"""Interruption: doing one thing until something else ends it, be it a side that closes or a rule."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from tests.faults.proxy.rules import Action, Handle, Subject
from tests.faults.proxy.streams import is_closed, reset_on_close
from tests.faults.proxy.tcp_actions import Blackhole, Down, ResetPeer, TcpAction

__all__ = ["before_reading", "unless", "unless_reset"]

T = TypeVar("T")
_TURN_S = 0.2
"""The subject changes with each request; a reset that is about requests comes so late at most."""


async def unless(work: Coroutine[Any, Any, T], interruption: Awaitable[object]) -> T | None:
    """Return what the work comes to, or None if the interruption came first; what is left is cancelled."""
    working, waiting = asyncio.ensure_future(work), asyncio.ensure_future(interruption)
    try:
        await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        for task in (working, waiting):
            task.cancel()
        await asyncio.gather(working, waiting, return_exceptions=True)


async def unless_reset(work: Coroutine[Any, Any, bool], subject: Callable[[], Subject], sock: socket.socket) -> None:
    """Do the work unless a rule resets the connection first.

    Raises:
        ConnectionResetError: a rule did.
    """
    if await unless(work, _until_reset(subject)) is None:
        reset_on_close(sock)
        raise ConnectionResetError("reset by a rule")


async def before_reading(subject: Subject, sock: socket.socket) -> None:
    """Meet the rules about a new connection, before a byte of it is read.

    Raises:
        ConnectionResetError: it is reset, or the client has given up in a black hole.
    """
    told: set[Handle] = set()
    while True:
        if (
            ending := next((h for h in subject.standing(TcpAction) if _reset_after_s(h.action) == 0.0), None)
        ) is not None:
            ending.hit(subject.request)
            raise ConnectionResetError("reset by a rule")
        hole = next(iter(subject.standing(Blackhole)), None)
        if hole is None:
            break
        if hole not in told:
            told.add(hole)
            hole.hit(subject.request)
        await subject.book.until_change()
    if told and is_closed(sock):
        raise ConnectionResetError("the client gave up")


async def _until_reset(subject: Callable[[], Subject]) -> None:
    while True:
        now_s, current, wait_s = time.monotonic(), subject(), _TURN_S
        for handle in current.standing(TcpAction):
            after_s = _reset_after_s(handle.action)
            if after_s is None:
                continue
            due_s = max(current.began_s, handle.added_s + handle.rule.match.window_s[0]) + after_s
            if due_s <= now_s:
                handle.hit(current.request)
                return
            wait_s = min(wait_s, due_s - now_s)
        await current.book.until_change(wait_s)


def _reset_after_s(action: Action) -> float | None:
    """Return after how long an action resets the connection; None for never."""
    if isinstance(action, ResetPeer):
        return action.after_s
    if isinstance(action, Blackhole):
        return action.close_after_s
    return 0.0 if isinstance(action, Down) else None
