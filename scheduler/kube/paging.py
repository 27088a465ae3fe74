"""Paging: a full list, in pages small enough not to stall the loop or fill the memory.

All pages of a list show the same moment, which the ``continue`` token pins. If the server has meanwhile compacted that
moment away (410), the list starts again, this time whole, so that a slow reader cannot be driven round for ever
(parity: client-go's pager).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol, TypeVar

from scheduler.kube.errors import ApiError, ProtocolError
from scheduler.kube.originals import Originals
from scheduler.kube.paths import list_path
from scheduler.kube.transport import Transport, raise_for_status
from scheduler.model.decode import DecodedList, decode_list
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


def pages(
    transport: Transport, kind: type[K], *, page_size: int, originals: Originals | None = None
) -> AsyncIterator[tuple[bool, DecodedList[K]]]:
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
    return all_pages(lambda limit, token: _page(transport, kind, limit, token, originals), page_size)


async def all_pages(read: Callable[[int, str], Awaitable[P]], page_size: int) -> AsyncIterator[tuple[bool, P]]:
    """Yield the pages that ``read`` gets for a limit and a continue token; see ``pages``."""
    limit, token = page_size, ""
    while True:
        try:
            page = await read(limit, token)
        except ApiError as error:
            if not (error.is_expired and token):
                raise
            limit, token = 0, ""
            continue
        yield not token, page
        token = page.continue_token
        if not token:
            return


async def _page(
    transport: Transport, kind: type[K], limit: int, token: str, originals: Originals | None
) -> DecodedList[K]:
    path = list_path(KINDS[kind], limit=limit, continue_token=token)
    response = raise_for_status(await transport.request("GET", path, timeout_s=LIST_TIMEOUT_S))
    page = decode_list(kind, response.body)
    if page.problem or not page.resource_version:
        raise ProtocolError(f"not a list of {KINDS[kind].plural}: {page.problem or 'it has no resourceVersion'}")
    if originals is not None:
        originals.of_page(page.items, response.body)
    return page
