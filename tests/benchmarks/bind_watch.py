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
_VERSION = re.compile(rb'"resourceVersion":"([0-9]+)"')
_ERROR = b'{"type":"ERROR"'
_LIMIT_BYTES = 1 << 22


class WatchBrokeError(RuntimeError):
    """The watch was refused or cut; the run is void."""


class BindWatch:
    """The times at which pods whose name begins with ``prefix`` were seen bound.

    Attributes:
        bound_s: pod name -> perf counter at the arrival of the event.
        num_reopened: how often the server ended the watch; it was opened again where it had ended.
    """

    def __init__(self, port: int, tls: ssl.SSLContext | None, namespace: str, prefix: str, wanted: int) -> None:
        self._port = port
        self._tls = tls
        self._namespace = namespace
        self._prefix = prefix.encode()
        self._wanted = wanted
        self._task: asyncio.Task[None] | None = None
        self.bound_s: dict[str, float] = {}
        self.num_reopened = 0
        self._version = ""
        self.on_first: Callable[[], None] = lambda: None
        self.on_last: Callable[[], None] = lambda: None
        self.all_bound = asyncio.Event()

    async def start(self, resource_version: str) -> None:
        """Open the watch; events after ``resource_version`` will be seen."""
        self._version = resource_version
        self._task = asyncio.create_task(self._follow(*await self._open()))

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, ssl=self._tls, limit=_LIMIT_BYTES)
        query = f"watch=1&fieldSelector=spec.nodeName!%3D&resourceVersion={self._version}&timeoutSeconds=3600"
        head = (
            f"GET /api/v1/namespaces/{self._namespace}/pods?{query} HTTP/1.1\r\n"
            f"Host: 127.0.0.1\r\nAccept: {_ACCEPT}\r\nUser-Agent: podium-bench\r\n\r\n"
        )
        writer.write(head.encode())
        answer = await reader.readuntil(b"\r\n\r\n")
        if not answer.startswith(b"HTTP/1.1 200"):
            raise WatchBrokeError(f"the watch was refused: {answer[:200]!r}")
        return reader, writer

    async def _follow(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read for ever; on a busy machine the server ends the watches that do not keep up, so open them again."""
        while True:
            with suppress(asyncio.IncompleteReadError):
                await self._read(reader, writer)
            self.num_reopened += 1
            reader, writer = await self._open()

    async def stop(self) -> None:
        """Close the watch."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def wait(self, timeout_s: float) -> bool:
        """Wait until all wanted pods are bound; False if the time is over first.

        Raises:
            WatchBrokeError: the watch was refused or answered an error.
        """
        assert self._task is not None
        waiting = asyncio.create_task(self.all_bound.wait())
        done, _ = await asyncio.wait([waiting, self._task], timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if self._task in done:
            self._task.result()  # it ends with an error only
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
        if line.startswith(_ERROR):
            raise WatchBrokeError(f"the watch said {line[:300]!r}")
        if not line.startswith(_ADDED):
            return
        version, match = _VERSION.search(line), _NAME.search(line)
        if version is not None:
            self._version = version[1].decode()
        if match is None or not match[1].startswith(self._prefix):
            return
        if not self.bound_s:
            self.on_first()
        self.bound_s.setdefault(match[1].decode(), now_s)
        if len(self.bound_s) == self._wanted:
            self.on_last()
            self.all_bound.set()
