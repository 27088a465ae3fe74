"""A local extender over HTTP or HTTPS that behaves well or badly, as it is told. It runs in a thread of its own."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from aiohttp import web

__all__ = ["MISBEHAVIOURS", "ExtenderServer"]

Handler = Callable[[web.Request, Any], Awaitable[web.StreamResponse]]


async def _good(request: web.Request, question: Any) -> web.StreamResponse:
    if request.path.endswith("filter"):
        return web.json_response({"NodeNames": question["NodeNames"], "Error": ""})
    if request.path.endswith("rank"):
        return web.json_response([{"Host": name, "Score": 1} for name in question["NodeNames"]])
    return web.json_response({"Error": ""})


async def _slow(request: web.Request, question: Any) -> web.StreamResponse:
    await asyncio.sleep(10.0)
    return await _good(request, question)


async def _fails(_request: web.Request, _question: Any) -> web.StreamResponse:
    return web.Response(status=500, text="no")


async def _html(_request: web.Request, _question: Any) -> web.StreamResponse:
    return web.Response(text="<html>Welcome</html>", content_type="text/html")


async def _bad_utf8(_request: web.Request, _question: Any) -> web.StreamResponse:
    return web.Response(body=b'{"NodeNames":["\xff\xfe"],"Error":""}', content_type="application/json")


async def _endless(request: web.Request, _question: Any) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    for _ in range(1024):
        if request.transport is None or request.transport.is_closing():
            break  # nobody reads any more; writing on would keep the next caller waiting
        await response.write(b" " * (1 << 20))
        await asyncio.sleep(0)  # a write that need not wait lets nobody else have a turn
    return response


async def _drips(request: web.Request, _question: Any) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    for _ in range(1000):
        await response.write(b" ")
        await asyncio.sleep(0.05)
    return response


async def _unknown_node(_request: web.Request, _question: Any) -> web.StreamResponse:
    return web.json_response({"NodeNames": ["elsewhere"], "Error": ""})


async def _redirects(_request: web.Request, _question: Any) -> web.StreamResponse:
    raise web.HTTPTemporaryRedirect("/trap")


async def _out_of_range(request: web.Request, question: Any) -> web.StreamResponse:
    if request.path.endswith("rank"):
        return web.json_response([{"Host": name, "Score": 10**30} for name in question["NodeNames"]])
    return await _good(request, question)


async def _too_deep(_request: web.Request, _question: Any) -> web.StreamResponse:
    return web.Response(body=b'{"NodeNames":' + b"[" * 200_000, content_type="application/json")


async def _reports_error(_request: web.Request, _question: Any) -> web.StreamResponse:
    return web.json_response({"NodeNames": None, "Error": "no device left"})


async def _hangs_up(request: web.Request, _question: Any) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.close()
    return web.Response()


MISBEHAVIOURS: dict[str, Handler] = {
    "ten seconds slow": _slow,
    "status 500": _fails,
    "HTML": _html,
    "invalid UTF-8": _bad_utf8,
    "1 GB body": _endless,
    "slow loris": _drips,
    "unknown node": _unknown_node,
    "redirect": _redirects,
    "score out of range": _out_of_range,
    "nested too deeply": _too_deep,
    "reports an error": _reports_error,
    "hangs up": _hangs_up,
}


class ExtenderServer:
    """Serves until ``close``.

    Attributes:
        behaviour: how calls are answered.
        asked: (path, question) of every call.
        url: where.
    """

    def __init__(self, ssl_context: ssl.SSLContext | None = None) -> None:
        self.behaviour: Handler = _good
        self.asked: list[tuple[str, Any]] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        scheme = "http" if ssl_context is None else "https"
        self._ssl_context = ssl_context
        self._port = 0
        self._run(self._serve())
        self.url = f"{scheme}://127.0.0.1:{self._port}/ext"

    def behave(self, name: str = "") -> None:
        """Behave badly from now on, or well again."""
        self.behaviour = MISBEHAVIOURS[name] if name else _good

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Refuse connections while the block runs: nobody listens, and none is left from before."""
        self._run(self._stop_listening())
        try:
            yield
        finally:
            self._run(self._listen())

    def close(self) -> None:
        """Stop serving."""
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _serve(self) -> None:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        await self._listen()

    async def _listen(self) -> None:
        self._site = web.TCPSite(self._runner, "127.0.0.1", self._port, ssl_context=self._ssl_context)
        await self._site.start()
        self._port = self._runner.addresses[0][1]

    async def _stop_listening(self) -> None:
        await self._site.stop()
        self._hang_up()

    def _hang_up(self) -> None:
        for connection in self._runner.server.connections if self._runner.server is not None else ():
            if connection.transport is not None:
                connection.transport.abort()  # a TLS connection that is closed politely waits for its peer

    async def _end(self) -> None:
        self._hang_up()
        await self._runner.cleanup()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.sleep(0.1)  # transports take a few turns to close

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        question = json.loads(await request.read() or b"null")
        self.asked.append((request.path, question))
        return await self.behaviour(request, question)

    def _run(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(10.0)
