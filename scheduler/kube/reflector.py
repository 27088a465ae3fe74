"""Reflector: one kind of the API server, told to intake without gaps.

It lists, then watches from the list's version, and keeps watching for ever. What it emits is whole (see ``Known``):
whatever breaks on the way, intake hears of every object that exists and of every one that is gone.

           start
             │
             ▼   complete: deletions synthesised, Synced
        ┌─ LIST ────────────────────────────────────────┐
        │    ▲ │ refused, cut, 429, 5xx: back-off        ▼
        │    │ └──────▶ LIST                          WATCH ◀─┐ closed by the server (every 5-10 min), cut,
        │    │                                         │ │ │  │ silent for 90 s, or an error: open again
        │    └── 410, version too large, rewound ──────┘ │ └──┘ from the last version, without a list
        ▼                                                ▼
   UNAVAILABLE ◀──────── 403, 404 ───────────────────────┘
        └──▶ LIST, ever more slowly for optional kinds

* The first list is a quorum read, in pages; with ``streamed`` it is the beginning of the watch stream instead.
* Back-off is 0.2-5 s with jitter. While the server cannot be reached or has only just started, it is tried again
  within 0.5 s (1 s) during the first 30 s; and a version that has expired meanwhile is answered by a list at once.
* A server that was unreachable may come back with an older state (etcd restored). Watching it from a version of its
  future would be silent for ever, so after an outage or a silent stream the version is compared first.
* ``Synced`` comes after the first complete list, and again after each ``Unavailable``.

Everything runs on one loop, on which ``emit`` is called; it must not block.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass

from scheduler.api.handle import Clock, Random
from scheduler.failpoints import async_failpoint, failpoint
from scheduler.kube.backoff import MAX_S, Backoff
from scheduler.kube.errors import ApiError, KubeError, TransportError
from scheduler.kube.framing import LineSplitter
from scheduler.kube.known import Known, is_older
from scheduler.kube.originals import Originals
from scheduler.kube.paging import LIST_TIMEOUT_S, PAGE_SIZE, pages
from scheduler.kube.paths import initial_stream_path, version_path, watch_path
from scheduler.kube.reflector_metrics import NullReflectorMetrics, ReflectorMetrics, ReflectorStats
from scheduler.kube.starting import STARTING
from scheduler.kube.transport import Transport, raise_for_status
from scheduler.model.decode import BOOKMARK, DELETED, ERROR, WatchLine, decode_list, decode_watch_line
from scheduler.model.delta import Delta, Rejected, Synced, Unavailable
from scheduler.model.kinds import KINDS, KindInfo
from scheduler.model.meta import KubeObject
from scheduler.telemetry.logging import get_logger

__all__ = ["FORBIDDEN", "NOT_SERVED", "Reflector", "ReflectorSettings", "list_again"]

NOT_SERVED = "the API server does not serve {kind} ({group_version})"
FORBIDDEN = "not allowed to list and watch {kind}: grant the verbs list and watch on {plural}"

_INITIAL_EVENTS_END = b"k8s.io/initial-events-end"
_LINES_PER_TURN = 100
_HEALTHY_S = 1.0
_SILENCE_TOLERANCE = 0.01
_LOOK_AT_LIST_S = 0.05
"""By what part a stream may be found silent too early: by less than a second of 90."""

_OPEN_S = 30.0
"""A server that accepts a watch says so at once, events or not; it may be busy for a while before."""

_SLOW_RETRY_S = 60.0

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ReflectorSettings:
    """How to watch.

    Attributes:
        optional: the scheduler can live without the kind: retry ever more slowly while it cannot be read.
        streamed: get the initial objects as a stream; falls back to pages if the server refuses.
        page_size: objects in a page of a list.
        idle_limit_s: a stream without a byte for so long is dead; bookmarks come about once a minute.
        min_watch_s: a watch is asked to end after this to twice this, at random (parity: client-go).
    """

    optional: bool = False
    streamed: bool = False
    page_size: int = PAGE_SIZE
    idle_limit_s: float = 90.0
    min_watch_s: float = 300.0


class Reflector:
    """Watches one kind.

    Args:
        kind: a key of ``KINDS``.
        transport: the API server.
        emit: receives the deltas, on the loop that runs ``run``.
        clock: for staleness and outages.
        random: for jitter.
        sleep: waits; handed in for tests.
        settings: how to watch.
        metrics: told what happens.
        originals: keeps the text of the objects, where somebody needs it.
    """

    def __init__(
        self,
        kind: type[KubeObject],
        transport: Transport,
        emit: Callable[[Delta], None],
        *,
        clock: Clock,
        random: Random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        settings: ReflectorSettings = ReflectorSettings(),
        metrics: ReflectorMetrics | None = None,
        originals: Originals | None = None,
    ) -> None:
        self.kind = kind
        self._originals = originals
        self.stats = ReflectorStats()
        self._info: KindInfo = KINDS[kind]
        self._transport = transport
        self._emit = emit
        self._clock = clock
        self._random = random
        self._sleep = sleep
        self._settings = settings
        self._metrics = metrics or NullReflectorMetrics()
        self._known = Known(emit)
        self._backoff = Backoff(random)
        self._slow_backoff = Backoff(random, initial_s=1.0, max_s=_SLOW_RETRY_S)
        self._streamed = settings.streamed
        self._must_list = True
        self._list_began_s = 0.0
        self._listed_s = -MAX_S
        self._may_be_rewound = False
        self._relist_requested = ""
        self._relist_ticket = 0
        self._listing_ticket = 0
        self._silence: asyncio.Timeout | None = None
        self._heard_s = self._opened_s = clock.now()
        self._down_since_s: float | None = None

    @property
    def staleness_s(self) -> float:
        """Return the seconds since the server last told us something, be it only a bookmark."""
        return max(0.0, self._clock.now() - self._heard_s)

    @property
    def stream_age_s(self) -> float:
        """Return the seconds for which the present stream has been open; 0 if there is none."""
        return self._clock.now() - self._opened_s if self.is_streaming else 0.0

    @property
    def num_objects(self) -> int:
        """Return how many objects are known."""
        return len(self._known)

    @property
    def is_streaming(self) -> bool:
        """Tell whether a stream is open now."""
        return self._silence is not None

    @property
    def is_synced(self) -> bool:
        """Tell whether every object that existed has been delivered, and the kind can still be read."""
        return self.stats.is_synced

    def is_rejected(self, key: str) -> bool:
        """Tell whether the newest version under ``namespace/name`` could not be understood."""
        return self._known.is_rejected(key)

    def request_relist(self, cause: str = "requested") -> int:
        """Compare everything with a fresh list soon; to be called on the reflector's loop.

        Args:
            cause: why, for the count of lists.

        Returns:
            A ticket: a list that began after this call is complete once ``stats.relists_served`` has reached it.
        """
        self._relist_ticket += 1
        self._relist_requested = cause
        if self._silence is not None and not self._silence.expired():
            self._silence.reschedule(0.0)
        return self._relist_ticket

    async def read_version(self, timeout_s: float) -> str:
        """Return the newest version that the server has of the collection: a quorum read of its first object.

        Raises:
            ApiError: the server refused.
            TransportError: no answer within ``timeout_s``.
        """
        response = await self._transport.request("GET", version_path(self._info), timeout_s=timeout_s)
        return decode_list(self.kind, raise_for_status(response).body).resource_version

    async def run(self) -> None:
        """List and watch until cancelled."""
        while True:
            try:
                await self._step()
            except KubeError as error:
                await self._sleep(self._delay_after(error))

    async def _step(self) -> None:
        self._listing_ticket = self._relist_ticket
        if self._relist_requested:
            self._need_list(self._relist_requested)
            self._relist_requested = ""
        if not self._must_list and self._may_be_rewound:
            await self._compare_version()
        if not self._must_list:
            await self._stream(watch_path(self._info, self.stats.last_resource_version, self._watch_timeout_s()))
        elif self._streamed:
            self._begin_list()
            await self._stream(initial_stream_path(self._info, self._watch_timeout_s()))
        else:
            await self._list()

    # Listing.

    async def _list(self) -> None:
        version = ""
        found = pages(self._transport, self.kind, page_size=self._settings.page_size, originals=self._originals)
        async with aclosing(found):
            async for is_first, page in found:
                self._heard()
                if is_first:
                    self._begin_list()
                for item in page.items:
                    self._take_object(item)
                version = page.resource_version
                await async_failpoint("relist.page", self._info.kind)
                await self._sleep(0.0)
        self._complete_list(version)

    def _begin_list(self) -> None:
        self._list_began_s = self._clock.now()
        self._known.begin_list()

    def _complete_list(self, version: str) -> None:
        failpoint("relist.swap", self._info.kind)
        stats = self.stats
        stats.stale_deletions += self._known.finish_list()
        stats.lists += 1
        stats.relists_served = self._listing_ticket
        stats.objects = len(self._known)
        stats.last_resource_version = version
        self._must_list = self._may_be_rewound = False
        self._listed_s = self._clock.now()
        self._metrics.listed(self._info.kind, stats.objects, self._listed_s - self._list_began_s)
        if not stats.is_synced:
            stats.is_synced, stats.unavailable_reason = True, ""
            self._slow_backoff.reset()
            self._emit(Synced(self.kind))
        _log.debug("listed", kind=self._info.kind, objects=stats.objects, resource_version=version)

    def _need_list(self, cause: str) -> None:
        if not self._must_list:
            self._must_list = True
            self.stats.relists += 1
            self._metrics.relisting(self._info.kind, cause)
            _log.info("listing again", kind=self._info.kind, cause=cause)

    async def _compare_version(self) -> None:
        """Relist if the server is older than what we know from it."""
        newest = await self.read_version(LIST_TIMEOUT_S)
        self._heard_from_server()  # which says nothing of the watch: something between may swallow it alone
        self._may_be_rewound = False
        if is_older(newest, self.stats.last_resource_version):
            self._need_list("rewound")

    # Watching.

    def _watch_timeout_s(self) -> int:
        return int(self._settings.min_watch_s * (1.0 + self._random.random()))

    async def _stream(self, path: str) -> None:
        opened_s, events = self._clock.now(), self.stats.events
        async with self._transport.stream(path, connect_timeout_s=min(_OPEN_S, self._settings.idle_limit_s)) as chunks:
            self._heard()
            self._opened_s = self._clock.now()
            self.stats.watches_opened += 1
            self._metrics.watch_opened(self._info.kind)
            cause = "error"
            try:
                cause = await self._read(chunks)
            finally:
                self.stats.objects = len(self._known)
                self._metrics.watch_ended(self._info.kind, cause)
        await self._pause_after_stream(self._clock.now() - opened_s, self.stats.events > events)

    async def _read(self, chunks: AsyncIterator[bytes]) -> str:
        """Apply a stream to its end and return how it ended."""
        splitter = LineSplitter()
        patience_s = 0.0 if self._relist_requested else self._settings.idle_limit_s
        try:
            async with asyncio.timeout(patience_s) as self._silence:
                async for chunk in chunks:
                    self._heard()
                    await self._take_lines(splitter.feed(chunk))
                    if self._relist_requested:
                        return "closed"
                    self._expect_more(self._silence)
                return self._count_cut() if splitter.has_partial_line else "closed"
        except TimeoutError:
            return "closed" if self._relist_requested else self._count_silent()
        except TransportError:
            return self._count_cut()
        finally:
            self._silence = None

    def _expect_more(self, silence: asyncio.Timeout) -> None:
        """Give the stream its whole time again; not for each of many chunks, because setting a timer costs as much."""
        limit_s = self._settings.idle_limit_s
        due_s = asyncio.get_running_loop().time() + limit_s
        when_s = silence.when()
        if when_s is None or due_s - when_s > limit_s * _SILENCE_TOLERANCE:
            silence.reschedule(due_s)

    async def _take_lines(self, lines: list[bytes]) -> None:
        for number, line in enumerate(lines, 1):
            self._take_line(decode_watch_line(self.kind, line), line)
            if number % _LINES_PER_TURN == 0:
                await self._sleep(0.0)
        if lines:
            self.stats.events += len(lines)
            self._metrics.events(self._info.kind, len(lines))

    def _take_line(self, line: WatchLine[KubeObject], raw: bytes) -> None:
        if self._originals is not None:
            self._originals.of_line(line.obj, raw)
        if line.obj is None:
            self._take_control_line(line, raw)
        elif line.type == DELETED:
            self._count_news(self._known.remove(line.obj))
        else:
            self._count_news(self._take_object(line.obj))
        if line.resource_version and not self._must_list:
            self.stats.last_resource_version = line.resource_version

    def _take_object(self, obj: KubeObject | Rejected) -> bool:
        if not isinstance(obj, Rejected):
            return self._known.put(obj)
        is_news = self._known.reject(obj)
        if is_news:
            self._count_rejected(obj)
        return is_news

    def _take_control_line(self, line: WatchLine[KubeObject], raw: bytes) -> None:
        if line.type == BOOKMARK:
            if self._must_list and _INITIAL_EVENTS_END in raw:
                self._complete_list(line.resource_version)
        elif line.type == ERROR and line.code:
            raise ApiError(line.code, message=line.message)
        else:
            reason = line.message or f"watch line of unknown type {line.type[:32]!r}"
            rejected = Rejected(self.kind, "", "", "", "", reason)
            self._emit(rejected)
            self._count_rejected(rejected)

    async def _pause_after_stream(self, lived_s: float, has_events: bool) -> None:
        if lived_s >= _HEALTHY_S or has_events:
            self._backoff.reset()
        if lived_s < _HEALTHY_S:  # whatever closes our streams at once must not make us spin
            await self._sleep(self._backoff.next_s(self._clock.now()))

    # Failures.

    def _delay_after(self, error: KubeError) -> float:
        """Note a failure and return the seconds to wait before the next step."""
        self.stats.failures += 1
        if isinstance(error, ApiError):
            return self._delay_after_refusal(error)
        self._may_be_rewound = True
        now_s = self._clock.now()
        if self._down_since_s is None:
            self._down_since_s = now_s
            _log.warning("lost the api server", kind=self._info.kind, error=str(error))
        return self._backoff.next_s(now_s, is_away=isinstance(error, TransportError) and not error.sent)

    def _delay_after_refusal(self, error: ApiError) -> float:
        self._heard_from_server()
        if self._streamed and self._must_list and error.status in {400, 422}:
            self._streamed = False  # the server is too old for streamed lists
            return 0.0
        if error.status in {403, 404}:
            return self._delay_while_unavailable(error)
        if error.is_expired or error.is_version_too_large:
            return self._delay_before_relist(error)
        is_starting = error.message == STARTING
        if is_starting:
            _log.debug("api server is starting", kind=self._info.kind)
        else:
            _log.warning("request was refused", kind=self._info.kind, error=str(error))
        return max(self._backoff.next_s(self._clock.now(), is_away=is_starting), error.retry_after_s or 0.0)

    def _delay_before_relist(self, error: ApiError) -> float:
        """Note that our version is of no use and return the seconds to wait before the list.

        None, because an outage that made the back-off long is often what made the version useless, and until the list
        we decide by what was true before it. Only a server that refuses the version of a list it has just given is
        not asked for lists faster and faster.
        """
        retry_after_s = error.retry_after_s or 0.0
        now_s = self._clock.now()
        is_first = not self._must_list and now_s - self._listed_s > MAX_S
        self._need_list("expired" if error.is_expired else "rewound")
        return retry_after_s if is_first else max(self._backoff.next_s(now_s), retry_after_s)

    def _delay_while_unavailable(self, error: ApiError) -> float:
        info = self._info
        template = NOT_SERVED if error.status == 404 else FORBIDDEN
        reason = template.format(kind=info.kind, group_version=info.api_version, plural=info.plural)
        self._must_list = True
        if reason != self.stats.unavailable_reason:
            self.stats.is_synced, self.stats.unavailable_reason = False, reason
            self._emit(Unavailable(self.kind, reason))
            _log.warning("kind is unavailable", kind=info.kind, reason=reason, error=str(error))
        backoff = self._slow_backoff if self._settings.optional else self._backoff
        return backoff.next_s(self._clock.now())

    def _heard(self) -> None:
        self._heard_s = self._clock.now()
        self._heard_from_server()

    def _heard_from_server(self) -> None:
        if self._down_since_s is not None:
            down_s = self._clock.now() - self._down_since_s
            self._down_since_s = None
            _log.info("reached the api server again", kind=self._info.kind, down_s=round(down_s, 1))

    def _count_rejected(self, rejected: Rejected) -> None:
        self.stats.rejected += 1
        self._metrics.rejected(self._info.kind)
        name = f"{rejected.namespace}/{rejected.name}".lstrip("/")
        _log.warning("rejected an object", kind=self._info.kind, object=name, reason=rejected.reason)

    def _count_news(self, is_news: bool) -> None:
        if not is_news:
            self.stats.duplicates += 1

    def _count_cut(self) -> str:
        self.stats.streams_cut += 1
        return "cut"

    def _count_silent(self) -> str:
        self.stats.streams_silent += 1
        self._may_be_rewound = True
        _log.warning("stream was silent", kind=self._info.kind, limit_s=self._settings.idle_limit_s)
        return "silent"


async def list_again(reflector: Reflector, cause: str, sleep: Callable[[float], Awaitable[None]]) -> None:
    """Wait for a list that begins after this call; to be called on the reflector's loop."""
    ticket = reflector.request_relist(cause)
    while reflector.stats.relists_served < ticket:
        await sleep(_LOOK_AT_LIST_S)
