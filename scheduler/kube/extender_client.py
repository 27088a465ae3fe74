"""ExtenderClient: makes the HTTP calls to one extender; what they say is ``framework.extender``'s business.

A call blocks its thread, but not the interpreter, for at most the configured time, which covers everything from
connecting to the last byte of the answer. The scheduling cycle waits for it, as upstream's does.

differs: redirects are not followed (they would lead to where the configuration does not point), proxies of the
environment are not used, answers end at 40 MiB, and an extender that times out again and again is left alone for a
while (``patience``).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

from pyreqwest.client import SyncClient, SyncClientBuilder
from pyreqwest.exceptions import PyreqwestError

from scheduler.api.preemption import ExtenderError
from scheduler.kube.credentials import TlsMaterial
from scheduler.kube.errors import CredentialsError
from scheduler.kube.http_transport import USER_AGENT
from scheduler.kube.patience import Patience
from scheduler.kube.rust_client import base_url, configured, error_text
from scheduler.kube.transport import JSON
from scheduler.telemetry.logging import get_logger

__all__ = ["MAX_ANSWER_BYTES", "CallObserver", "ExtenderClient"]

MAX_ANSWER_BYTES = 40 << 20
"""With the array that grows, and what the HTTP client has taken in already, a call needs less than 64 MiB."""

_log = get_logger(__name__)

CallObserver = Callable[[str, str, str], None]
"""Told of each call: the extender's URL prefix, the verb, and ``ok``, ``failed`` or ``skipped`` (left alone)."""


class ExtenderClient:
    """Calls one extender; may be used by any thread."""

    def __init__(
        self,
        url_prefix: str,
        *,
        timeout_s: float,
        tls: TlsMaterial,
        monotonic: Callable[[], float] = time.monotonic,
        max_bytes: int = MAX_ANSWER_BYTES,
        observe: CallObserver | None = None,
    ) -> None:
        """Make a client; nothing is sent yet.

        Args:
            url_prefix: of the extender; all calls go below it.
            timeout_s: for one call as a whole.
            tls: whom to trust and who we are.
            monotonic: measures durations.
            max_bytes: longest answer.
            observe: is told how each call ended; any thread.

        Raises:
            CredentialsError: the TLS material cannot be used.
        """
        self._prefix = url_prefix
        self._timeout = timedelta(seconds=timeout_s)
        self._tls = tls
        self._monotonic = monotonic
        self._max_bytes = max_bytes
        self._observe = observe
        self._patience = Patience()
        self._target: tuple[str, SyncClient] | None = None
        client = self._build(None)
        if tls.server_name is None:
            self._target = url_prefix, client

    def __call__(self, url: str, verb: str, body: bytes, /) -> bytearray:
        """POST ``body`` to ``url`` and return the body of the answer.

        Raises:
            ExtenderError: no complete answer in time, or not 200, or too large; or the extender is left alone.
        """
        began_s = self._monotonic()
        result = "skipped" if self._patience.remaining_s(began_s) > 0.0 else "failed"
        try:
            answer = self._ask(url, verb, body, began_s)
            result = "ok"
        finally:
            if self._observe is not None:
                self._observe(self._prefix, verb, result)
        return answer

    def _ask(self, url: str, verb: str, body: bytes, began_s: float) -> bytearray:
        if (pause_s := self._patience.remaining_s(began_s)) > 0.0:
            raise ExtenderError(
                f"{verb} not asked of extender at URL {url}: it did not answer in time {self._patience.failures} times "
                f"in a row and is left alone for another {pause_s:.0f}s"
            )
        try:
            status, answer = self._post(url, body)
        except (PyreqwestError, CredentialsError) as error:
            self._note_failure(began_s)
            raise ExtenderError(f'Post "{url}": {error_text(error)}') from error
        except ExtenderError:
            self._note_failure(began_s)
            raise
        self._patience.answered()
        if status != 200:
            raise ExtenderError(f"failed {verb} with extender at URL {url}, code {status}")
        return answer

    def _post(self, url: str, body: bytes) -> tuple[int, bytearray]:
        base, client = self._reach()
        request = client.post(base + url.removeprefix(self._prefix)).header("Content-Type", JSON).body_bytes(body)
        answer = bytearray()
        with request.timeout(self._timeout).build_streamed() as response:
            if response.status != 200:
                return response.status, answer
            while (chunk := response.body_reader.read_chunk()) is not None:
                if len(answer) + len(chunk) > self._max_bytes:
                    raise ExtenderError(f'Post "{url}": the answer is longer than {self._max_bytes} bytes')
                answer += chunk
        return response.status, answer

    def _reach(self) -> tuple[str, SyncClient]:
        """Return the base URL and a client that knows the way; a host behind another name is looked up at first use."""
        if self._target is None:
            base, resolve = base_url(self._prefix, self._tls.server_name)
            self._target = base, self._build(resolve)
        return self._target

    def _build(self, resolve: tuple[str, str, int] | None) -> SyncClient:
        try:
            return configured(SyncClientBuilder(), USER_AGENT, self._tls, resolve).build()
        except (PyreqwestError, ValueError) as error:
            raise CredentialsError(f"certificates for {self._prefix} cannot be used: {error_text(error)}") from None

    def _note_failure(self, began_s: float) -> None:
        if self._patience.failed(began_s, self._monotonic()):
            _log.warning("extender does not answer in time, left alone", extender=self._prefix)
