"""Forwards a port of this machine to another one: `forward.py FROM TO`, until it is stopped."""

from __future__ import annotations

import asyncio
import contextlib
import sys

HOST = "127.0.0.1"


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until the end."""
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


async def main() -> None:
    """Serve."""
    listen, to = int(sys.argv[1]), int(sys.argv[2])

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(HOST, to)
        await asyncio.gather(pump(reader, back), pump(there, writer))

    async with await asyncio.start_server(accept, HOST, listen) as server:
        await server.serve_forever()


asyncio.run(main())
