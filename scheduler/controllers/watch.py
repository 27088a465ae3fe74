"""kopf at work: it watches the SchedulerProfile objects and says when something changed.

kopf runs on a thread and a loop of its own. On a shared loop it would cancel every task that began after it, its own or
not, whenever its operator ends; and in the main thread it would take over SIGTERM. It writes nothing: no events, no
annotations, no finalizers, no peering.

    stopped ─start▶ running ──ends, fails──▶ pause (1 s … 60 s) ──▶ running …

What changed is not taken from kopf's event: the controller lists the objects, which are few. So it does not matter in
which order events come, whether a deletion is missed while a stream is down, or if kopf falls silent.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from scheduler.controllers.kopf_import import import_kopf
from scheduler.controllers.objects import GROUP, PLURAL, VERSION
from scheduler.kube.credentials import Credentials, TlsMaterial
from scheduler.telemetry.logging import get_logger, verbosity

if TYPE_CHECKING:
    import kopf

__all__ = ["ProfileWatch", "ssl_context"]

_log = get_logger(__name__)

_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 60.0
_HEALTHY_S = 60.0
"""After having run for so long a failure is a new one, and the pauses begin again."""
_JOIN_S = 1.0
_REQUEST_TIMEOUT_S = 30.0
_RETRIES_S = (1.0, 2.0, 4.0)
_IDENTITY: Any = "podium"
"""For peering, which is off. Without one kopf asks for the user's name, and the user of a container may have none."""
_VERBOSE = 5  # from here on dependencies may say what they do


class ProfileWatch:
    """kopf's operator, supervised.

    Attributes:
        restarts: how often it had to be started again.
        problem: why it last ended; "" while it runs.
    """

    def __init__(
        self, credentials: Credentials, *, on_change: Callable[[], None], on_failure: Callable[[], None]
    ) -> None:
        """Prepare; nothing is imported yet.

        Args:
            credentials: of the API server.
            on_change: called when an object was listed, changed or deleted; on the watch's own thread.
            on_failure: called when kopf has ended without having been asked to; on that thread, too.
        """
        self._credentials = credentials
        self._on_change = on_change
        self._on_failure = on_failure
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._again = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop_kopf: asyncio.Event | None = None
        self._seen: dict[str, tuple[int, bool]] = {}
        self._login_problem: Exception | None = None
        self.restarts = 0
        self.problem = ""

    @property
    def is_running(self) -> bool:
        """Say whether kopf is at work."""
        return self._thread is not None and self._thread.is_alive() and not self.problem

    def start(self) -> None:
        """Begin; if it has begun and waits before it tries again, let it try now."""
        self._again.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="live-profiles", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Ask for the end and wait a moment for it."""
        self._stopping.set()
        self._again.set()
        loop, stop = self._loop, self._stop_kopf
        if loop is not None and stop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(stop.set)
        if self._thread is not None:
            self._thread.join(_JOIN_S)

    # --- the watch's thread ------------------------------------------------------------------------------------------

    def _run(self) -> None:
        pause_s = _FIRST_PAUSE_S
        while not self._stopping.is_set():
            began_s = time.monotonic()
            problem = "it ended"
            try:
                asyncio.run(self._operate())
            except Exception as error:  # noqa: BLE001  supervisor: whatever ends kopf, it is started again
                problem = f"{type(error).__name__}: {error}"
            if self._stopping.is_set():
                return
            self.problem = problem
            self.restarts += 1
            self._on_failure()
            if time.monotonic() - began_s > _HEALTHY_S:
                pause_s = _FIRST_PAUSE_S
            _log.warning("watch of live profiles ended, starting it again", err=problem, pause_s=pause_s)
            self._again.clear()
            self._again.wait(pause_s)
            pause_s = min(pause_s * 2.0, _LONGEST_PAUSE_S)

    async def _operate(self) -> None:
        import_kopf()  # costs time and memory only where live profiles are wanted
        import kopf  # noqa: PLC0415

        _quieten()
        registry = kopf.OperatorRegistry()
        kopf.on.login(registry=registry, id="podium", errors=kopf.ErrorsMode.PERMANENT)(self._log_in)
        kopf.on.event(GROUP, VERSION, PLURAL, registry=registry, id="podium")(self._note)
        self._loop, self._stop_kopf = asyncio.get_running_loop(), asyncio.Event()
        if self._stopping.is_set():
            return
        self._seen.clear()
        self.problem = ""
        self._login_problem = None
        await kopf.operator(
            registry=registry,
            settings=_settings(kopf.OperatorSettings()),
            standalone=True,
            clusterwide=True,
            identity=_IDENTITY,
            stop_flag=self._stop_kopf,
        )
        if self._login_problem is not None:
            raise self._login_problem

    async def _log_in(self, **_: Any) -> kopf.AiohttpSession:
        """Give kopf a session with the identity that we have now; it asks again after a 401.

        Without a session kopf would wait for ever, so it is ended, and started again later.
        """
        try:
            return self._make_session()
        except Exception as error:
            self._login_problem = error
            assert self._stop_kopf is not None
            self._stop_kopf.set()
            raise

    def _make_session(self) -> kopf.AiohttpSession:
        import aiohttp  # noqa: PLC0415
        import kopf  # noqa: PLC0415

        self._credentials.recheck()
        token = self._credentials.token()
        headers = {"User-Agent": "podium"} | ({"Authorization": f"Bearer {token}"} if token else {})
        connector = aiohttp.TCPConnector(limit=0, ssl=ssl_context(self._credentials.tls()))
        session = aiohttp.ClientSession(connector=connector, headers=headers)
        return kopf.AiohttpSession(server=self._credentials.server, aiohttp_session=session)

    async def _note(self, event: Mapping[str, Any], **_: Any) -> None:
        """Pass on what is news: not the status that we wrote ourselves."""
        metadata = event["object"].get("metadata", {})
        uid = metadata.get("uid", "")
        news = (metadata.get("generation", 0), event["type"] == "DELETED")
        if self._seen.get(uid) == news:
            return
        if news[1]:
            self._seen.pop(uid, None)
        else:
            self._seen[uid] = news
        self._on_change()


def _settings(settings: kopf.OperatorSettings) -> kopf.OperatorSettings:
    settings.posting.enabled = False
    settings.scanning.disabled = True  # no rights on CustomResourceDefinitions; whether ours is there, the list shows
    settings.process.ultimate_exiting_timeout = None  # it would end this process with SIGKILL
    settings.networking.request_timeout = _REQUEST_TIMEOUT_S
    settings.networking.error_backoffs = _RETRIES_S
    return settings


def _quieten() -> None:
    """Keep kopf's running commentary out of the log unless it is asked for; warnings stay, but for two kinds.

    It warns that it leaves the signals alone when it is not in the main thread, which is what we want; and it calls
    every request that fails an error, four lines each 7 s during an outage that others report better.
    """
    is_verbose = verbosity() >= _VERBOSE
    logging.getLogger("kopf").setLevel(logging.NOTSET if is_verbose else logging.WARNING)
    for name in ("kopf._core.reactor.running", "kopf._cogs.clients"):
        logging.getLogger(name).setLevel(logging.NOTSET if is_verbose else logging.CRITICAL)


def ssl_context(tls: TlsMaterial) -> ssl.SSLContext:
    """Return a TLS context for these credentials.

    Raises:
        OSError: a certificate cannot be read.
        ssl.SSLError: likewise.
    """
    context = ssl.create_default_context(cadata=tls.ca_pem.decode() if tls.ca_pem is not None else None)
    if tls.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if tls.client_pem is not None:
        with _as_file(tls.client_pem) as path:
            context.load_cert_chain(path)
    return context


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """Show bytes as a file, in memory where the system can: the root of a container may be read-only."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("podium")
        try:
            os.write(descriptor, content)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
    else:
        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            yield file.name
