"""The log writer: a thread that alone waits for the log's output.

A full pipe or a full disk blocks whoever writes to it. So lines go into a bounded queue and one daemon thread writes
them; when the queue is full a line is dropped and counted, never waited for. When the output takes lines again, one
line says how many were lost.

States::

    idle ──start──▶ running ──stop──▶ stopping ──(queue written, or time-out)──▶ idle

While idle, lines are written at once by the caller: good enough for tools and tests.
"""

from __future__ import annotations

import queue
import threading
from typing import Protocol

__all__ = ["LogWriter", "TextStream"]

_CAPACITY = 10_000
_BATCH = 500


class TextStream(Protocol):
    """The part of a text stream that the writer uses."""

    def write(self, text: str, /) -> object: ...
    def flush(self) -> object: ...


class LogWriter:
    """Writes lines to a stream without ever making the caller wait.

    Attributes:
        dropped: lines lost so far, because the queue was full or the stream refused them.
    """

    def __init__(self, stream: TextStream, *, capacity: int = _CAPACITY) -> None:
        self.dropped = 0
        self._stream = stream
        self._capacity = capacity
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._told = 0

    def write(self, line: str) -> None:
        """Take one line (without its newline); any thread, never blocks while started."""
        if self._thread is None:
            self._put([line])
        elif self._lines.qsize() < self._capacity:
            self._lines.put(line)
        else:
            self.dropped += 1

    def start(self) -> None:
        """Start the thread."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="log-writer", daemon=True)
            self._thread.start()

    def stop(self, timeout_s: float = 2.0) -> None:
        """Write what is queued, for at most ``timeout_s``, then end the thread."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._lines.put(None)
            thread.join(timeout_s)

    def _run(self) -> None:
        while True:
            line = self._lines.get()
            batch: list[str] = []
            while line is not None:
                batch.append(line)
                if len(batch) >= _BATCH or self._lines.empty():
                    break
                line = self._lines.get()
            self._put(batch)
            if line is None:
                return

    def _put(self, batch: list[str]) -> None:
        lost = self.dropped - self._told
        lines = [*batch, f"log lines lost: {lost}"] if lost > 0 else batch
        if not lines:
            return
        try:
            self._stream.write("\n".join(lines) + "\n")
            self._stream.flush()
        except (OSError, ValueError):  # disk full, closed pipe, closed stream
            self.dropped += len(batch)
        else:  # only what has been written has been told
            self._told += max(lost, 0)
