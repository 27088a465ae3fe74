"""Rules: which traffic meets which fault.

A rule is decided once for each thing it may stand over: a request (for HTTP and TCP actions and for those on whole
watches), or a line of a watch. Its own chance comes from the proxy's seed and the rule's number, so the n-th thing that
a rule looks at meets the same fate in each run, whatever other rules do.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from tests.faults.proxy.record import Record
from tests.faults.proxy.request import Request

__all__ = ["Action", "Handle", "Match", "Rule", "RuleBook", "Subject"]

ALWAYS = (0.0, float("inf"))


class Action:
    """A fault. The kinds are in the modules that end with ``actions``."""

    __slots__ = ()

    @property
    def is_about_connections(self) -> bool:
        """Tell whether it may be decided for a connection as a whole, instead of each request."""
        return False


@dataclass(frozen=True, slots=True)
class Match:
    """Which requests a rule is about; what is not given does not matter.

    Attributes:
        verb: as in the audit log.
        resource: with its subresource, such as ``pods/binding``.
        path: regular expression, searched for in path and query.
        client: common name of the client's certificate.
        user_agent: regular expression, searched for.
        nth: of those that match otherwise, which (from 1): a number, or several (``range(1, 4)``).
        probability: of those, how many meet the action.
        window_s: from when to when, in seconds since the rule was added.
    """

    verb: str | None = None
    resource: str | None = None
    path: str | None = None
    client: str | None = None
    user_agent: str | None = None
    nth: int | Collection[int] | None = None
    probability: float = 1.0
    window_s: tuple[float, float] = ALWAYS

    @property
    def is_about_requests(self) -> bool:
        """Tell whether the rule needs a request to be decided, instead of a mere connection."""
        return any(each is not None for each in (self.verb, self.resource, self.path, self.user_agent))

    def fits(self, request: Request) -> bool:
        """Tell whether a request is one of those, number and chance aside."""
        return (
            self.verb in (None, request.verb)
            and self.resource in (None, request.resource)
            and self.client in (None, request.client)
            and (self.path is None or re.search(self.path, request.target) is not None)
            and (self.user_agent is None or re.search(self.user_agent, request.user_agent) is not None)
        )


@dataclass(frozen=True, slots=True)
class Rule:
    """What is done to whom."""

    match: Match
    action: Action


@dataclass(eq=False, slots=True)
class Handle:
    """A rule in use.

    Attributes:
        hits: how often its action was carried out.
        looked_at: how many requests (or lines) fitted it.
    """

    rule: Rule
    number: int
    book: RuleBook
    random: random.Random
    added_s: float
    hits: int = 0
    looked_at: int = 0
    is_removed: bool = False

    @property
    def action(self) -> Action:
        return self.rule.action

    def is_active(self, now_s: float) -> bool:
        """Tell whether the rule is in use at that moment."""
        begin_s, end_s = self.rule.match.window_s
        return not self.is_removed and begin_s <= now_s - self.added_s < end_s

    def picks(self) -> bool:
        """Count something that fits, and decide whether the action is for it."""
        return self.chooses(self.rule.match.nth, self.rule.match.probability)

    def chooses(self, nth: int | Collection[int] | None, probability: float) -> bool:
        """Count something, and decide by number and chance."""
        self.looked_at += 1
        if nth is not None and self.looked_at not in ({nth} if isinstance(nth, int) else nth):
            return False
        return probability >= 1.0 or self.random.random() < probability

    def hit(self, request: Request, detail: str = "") -> None:
        """Note that the action is carried out."""
        self.hits += 1
        self.book.record.decided(self.number, str(self.action), request, detail)

    def remove(self) -> None:
        """Take the rule out of use; what it holds back goes on. May be called on any thread."""
        self.book.call(lambda: self.book.drop(self))


@dataclass(slots=True)
class RuleBook:
    """The rules of one proxy, in the order in which they were added. Belongs to the proxy's loop, but for ``call``."""

    seed: int
    record: Record
    loop: asyncio.AbstractEventLoop
    handles: list[Handle] = field(default_factory=list)
    _added: int = 0
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def call(self, change: object) -> object:
        """Make a change on the loop and wait for it, from another thread."""

        async def run() -> object:
            return change()  # type: ignore[operator]

        return asyncio.run_coroutine_threadsafe(run(), self.loop).result(30.0)

    def add(self, rule: Rule) -> Handle:
        self._added += 1
        chance = random.Random(f"{self.seed}/{self._added}")
        handle = Handle(rule, self._added, self, chance, time.monotonic())
        self.handles.append(handle)
        self.tell()
        return handle

    def drop(self, *handles: Handle) -> None:
        for handle in handles:
            handle.is_removed = True
        self.handles = [handle for handle in self.handles if not handle.is_removed]
        self.tell()

    def active(self) -> Iterator[Handle]:
        """Yield the rules in use now."""
        now_s = time.monotonic()
        return (handle for handle in self.handles if handle.is_active(now_s))

    def tell(self) -> None:
        """Wake whoever waits for a change."""
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def until_change(self, timeout_s: float = float("inf")) -> None:
        """Wait until rules are added or removed or a window opens or ends, at most so long."""
        now_s = time.monotonic()
        edges = (handle.added_s + edge_s for handle in self.handles for edge_s in handle.rule.match.window_s)
        timeout_s = min(timeout_s, min((edge_s - now_s for edge_s in edges if edge_s > now_s), default=timeout_s))
        try:
            async with asyncio.timeout(None if timeout_s == float("inf") else max(0.0, timeout_s)):
                await self._news.wait()
        except TimeoutError:
            pass


class Subject:
    """Something that rules stand over for a while: a connection, or (with it as parent) a request on it."""

    def __init__(self, book: RuleBook, request: Request, parent: Subject | None = None) -> None:
        self.book = book
        self.request = request
        self.began_s = time.monotonic()
        self._parent = parent
        self._verdicts: dict[Handle, bool] = {}

    def standing(self, *kinds: type[Action]) -> list[Handle]:
        """Return the rules with an action of these kinds that are in use over it now."""
        return [each for each in self.book.active() if isinstance(each.action, kinds) and self.is_under(each)]

    def is_under(self, handle: Handle) -> bool:
        """Tell whether a rule was decided to stand over it; decides it at the first time."""
        if self._parent is not None and handle.action.is_about_connections and not handle.rule.match.is_about_requests:
            return self._parent.is_under(handle)
        verdict = self._verdicts.get(handle)
        if verdict is None:
            match = handle.rule.match
            verdict = self._verdicts[handle] = match.fits(self.request) and handle.picks()
        return verdict
