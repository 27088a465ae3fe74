"""Paging: a full list, in pages small enough not to stall the loop or fill the memory.

While a page is being used, the next one is under way, so that the server's work and ours overlap. One page ahead is
enough: the token of a page is known only when the one before it has come.

All pages of a list show the same moment, which the ``continue`` token pins. If the server has meanwhile compacted that
moment away (410), the list starts again, this time whole, so that a slow reader cannot be driven round for ever
(parity: client-go's pager).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from scheduler.kube.errors import ApiError, ProtocolError
from scheduler.kube.originals import Originals
from scheduler.kube.paths import list_path
from scheduler.kube.transport import Transport, raise_for_status
from scheduler.model.decode import DecodedList, decode_list, peek_continue_token
from scheduler.model.kinds import KINDS
from scheduler.model.meta import KubeObject

__all__ = ["LIST_TIMEOUT_S", "PAGE_SIZE", "Page", "all_pages", "pages"]

K = TypeVar("K", bound=KubeObject)
P = TypeVar("P", bound="Page")

PAGE_SIZE = 500
LIST_TIMEOUT_S = 60.0


class Page(Protocol):
    """One page of a list."""

    @property
    def continue_token(self) -> str:
        """Return what asks for the next page, "" on the last one."""


@dataclass(frozen=True, slots=True)
class _Body:
    """A page as it came. Its token is read before all else, because decoding takes as long as the next page does."""

    body: bytes
    continue_token: str


async def pages(
    transport: Transport, kind: type[K], *, page_size: int, originals: Originals | None = None
) -> AsyncGenerator[tuple[bool, DecodedList[K]], None]:
    """Yield the pages of one full list, each with whether it is the first page of a list (again).

    Args:
        transport: to the API server.
        kind: a key of ``KINDS``.
        page_size: objects in a page.
        originals: keeps the text of the objects, where somebody needs it.

    Raises:
        ApiError: the server refused.
        TransportError: a page did not arrive.
        ProtocolError: an answer is not a list.
    """

    async def read(limit: int, token: str) -> _Body:
        path = list_path(KINDS[kind], limit=limit, continue_token=token)
        body = raise_for_status(await transport.request("GET", path, timeout_s=LIST_TIMEOUT_S)).body
        return _Body(body, peek_continue_token(body))

    async with aclosing(all_pages(read, page_size)) as found:
        async for is_first, page in found:
            yield is_first, _decode(kind, page.body, originals)


async def all_pages(
    read: Callable[[int, str], Coroutine[Any, Any, P]], page_size: int
) -> AsyncGenerator[tuple[bool, P], None]:
    """Yield the pages that ``read`` gets for a limit and a continue token; see ``pages``.

    To be closed by who does not read it to its end (``contextlib.aclosing``), so that nothing stays under way.
    """
    limit, token = page_size, ""
    ahead = asyncio.ensure_future(read(limit, token))
    try:
        while True:
            try:
                page = await ahead
            except ApiError as error:
                if not (error.is_expired and token):
                    raise
                limit, token = 0, ""
                ahead = asyncio.ensure_future(read(limit, token))
                continue
            is_first, token = not token, page.continue_token
            if token:
                ahead = asyncio.ensure_future(read(limit, token))
            yield is_first, page
            if not token:
                return
    finally:
        ahead.cancel()
        await asyncio.gather(ahead, return_exceptions=True)


def _decode(kind: type[K], body: bytes, originals: Originals | None) -> DecodedList[K]:
    page = decode_list(kind, body)
    if page.problem or not page.resource_version:
        raise ProtocolError(f"not a list of {KINDS[kind].plural}: {page.problem or 'it has no resourceVersion'}")
    if originals is not None:
        originals.of_page(page.items, body)
    return page
