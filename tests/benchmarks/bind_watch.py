"""Sees bindings arrive: a raw watch on one namespace, as light as possible, with a time stamp for each pod.

The field selector ``spec.nodeName!=`` makes a pod appear (ADDED) in the moment in which it is bound, and asking for
metadata only keeps the events short, so the watching costs the measured machine little.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Callable
from contextlib import suppress
from time import perf_counter

_ACCEPT = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_NAME = re.compile(rb'"name":"([^"]+)"')
_ADDED = b'{"type":"ADDED"'
_LIMIT_BYTES = 1 << 22


class WatchBrokeError(RuntimeError):
    """The watch was refused or cut; the run is void."""


class BindWatch:
    """The times at which pods whose name begins with ``prefix`` were seen bound.

    Attributes:
        bound_s: pod name -> perf counter at the arrival of the event.
    """

    def __init__(self, port: int, tls: ssl.SSLContext, namespace: str, prefix: str, wanted: int) -> None:
        self._port = port
        self._tls = tls
        self._namespace = namespace
        self._prefix = prefix.encode()
        self._wanted = wanted
        self._task: asyncio.Task[None] | None = None
        self.bound_s: dict[str, float] = {}
        self.on_first: Callable[[], None] = lambda: None
        self.on_last: Callable[[], None] = lambda: None
        self.all_bound = asyncio.Event()

    async def start(self, resource_version: str) -> None:
        """Open the watch; events after ``resource_version`` will be seen."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, ssl=self._tls, limit=_LIMIT_BYTES)
        query = f"watch=1&fieldSelector=spec.nodeName!%3D&resourceVersion={resource_version}&timeoutSeconds=3600"
        head = (
            f"GET /api/v1/namespaces/{self._namespace}/pods?{query} HTTP/1.1\r\n"
            f"Host: 127.0.0.1\r\nAccept: {_ACCEPT}\r\nUser-Agent: podium-bench\r\n\r\n"
        )
        writer.write(head.encode())
        answer = await reader.readuntil(b"\r\n\r\n")
        if not answer.startswith(b"HTTP/1.1 200"):
            raise WatchBrokeError(f"the watch was refused: {answer[:200]!r}")
        self._task = asyncio.create_task(self._read(reader, writer))

    async def stop(self) -> None:
        """Close the watch."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def wait(self, timeout_s: float) -> bool:
        """Wait until all wanted pods are bound; False if the time is over first.

        Raises:
            WatchBrokeError: the stream was cut.
        """
        assert self._task is not None
        waiting = asyncio.create_task(self.all_bound.wait())
        done, _ = await asyncio.wait([waiting, self._task], timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if self._task in done:
            self._task.result()
            raise WatchBrokeError("the watch ended")
        return self.all_bound.is_set()

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        rest = b""
        try:
            while size := int(await reader.readline(), 16):
                chunk = await reader.readexactly(size + 2)
                now_s = perf_counter()
                *lines, rest = (rest + chunk[:-2]).split(b"\n")
                for line in lines:
                    self._note(line, now_s)
        finally:
            writer.close()

    def _note(self, line: bytes, now_s: float) -> None:
        if not line.startswith(_ADDED):
            return
        match = _NAME.search(line)
        if match is None or not match[1].startswith(self._prefix):
            return
        if not self.bound_s:
            self.on_first()
        self.bound_s.setdefault(match[1].decode(), now_s)
        if len(self.bound_s) == self._wanted:
            self.on_last()
            self.all_bound.set()
