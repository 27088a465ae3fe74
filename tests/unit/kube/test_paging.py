"""Paging: the next page is under way while one is used, and nothing stays under way when nobody reads on."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from dataclasses import dataclass

import pytest

from scheduler.kube.errors import ApiError, TransportError
from scheduler.kube.paging import all_pages
from scheduler.model.decode import peek_continue_token


@dataclass(frozen=True)
class Page:
    continue_token: str


class Server:
    """Answers ``read`` from a script; a list of what was asked, answered and given up."""

    def __init__(self, *answers, hangs_from=99):
        self.answers = list(answers)
        self.asked = []
        self.given_up = 0
        self._hangs_from = hangs_from

    async def read(self, limit, token):
        self.asked.append((limit, token))
        if len(self.asked) >= self._hangs_from:
            try:
                await asyncio.Event().wait()
            finally:
                self.given_up += 1
        await asyncio.sleep(0)
        answer = self.answers[len(self.asked) - 1]
        if isinstance(answer, Exception):
            raise answer
        return Page(answer)


async def _used(server, until=99):
    """Read the list and note, for each page, what had been asked by the time its use was over."""
    seen = []
    async with aclosing(all_pages(server.read, 2)) as pages:
        async for is_first, page in pages:
            await asyncio.sleep(0)
            seen.append((is_first, page.continue_token, len(server.asked)))
            if len(seen) == until:
                break
    return seen


def test_the_next_page_is_asked_for_while_one_is_used():
    server = Server("a", "b", "")
    assert asyncio.run(_used(server)) == [(True, "a", 2), (False, "b", 3), (False, "", 3)]
    assert server.asked == [(2, ""), (2, "a"), (2, "b")]


def test_an_expired_page_that_was_asked_for_ahead_starts_a_whole_list():
    server = Server("a", ApiError(410, message="gone"), "")
    assert asyncio.run(_used(server)) == [(True, "a", 2), (True, "", 3)]
    assert server.asked == [(2, ""), (2, "a"), (0, "")]


def test_a_page_that_failed_ahead_is_an_error_after_the_page_before_it():
    server, seen = Server("a", TransportError("cut", sent=True)), []

    async def read():
        async for _, page in all_pages(server.read, 2):
            while len(server.asked) < 2:  # noqa: ASYNC110  a plain list
                await asyncio.sleep(0)
            seen.append(page.continue_token)

    with pytest.raises(TransportError):
        asyncio.run(read())
    assert seen == ["a"]


def test_who_stops_reading_leaves_nothing_under_way():
    server = Server("a", hangs_from=2)
    assert asyncio.run(_used(server, until=1)) == [(True, "a", 2)]
    assert server.given_up == 1


@pytest.mark.parametrize(
    ("answer", "token"),
    [
        ({"metadata": {"resourceVersion": "1", "continue": "t"}, "items": [{"metadata": {"name": 1}}]}, "t"),
        ({"items": [], "metadata": {"continue": "t", "remainingItemCount": 7}}, "t"),
        ({"metadata": {"resourceVersion": "1"}, "items": []}, ""),
        ({"metadata": {"continue": None}, "items": None}, ""),
        ({"metadata": None}, ""),
        ({"kind": "Status"}, ""),
    ],
)
def test_the_token_is_read_without_the_items(answer, token):
    assert peek_continue_token(json.dumps(answer).encode()) == token


@pytest.mark.parametrize(
    "text", [b"", b"<html>", b'{"metadata":{"continue":"t"},"items":[', b'{"metadata":{"continue":3}}']
)
def test_what_is_no_list_has_no_token(text):
    assert peek_continue_token(text) == ""
