"""Framing: chunks of a watch stream to whole lines.

A watch sends one JSON document a line; chunks end anywhere. Pieces of an unfinished line are kept apart and joined
once, so a large object that arrives in many chunks costs linear time.
"""

from __future__ import annotations

from scheduler.kube.errors import ProtocolError

__all__ = ["MAX_LINE_BYTES", "LineSplitter"]

MAX_LINE_BYTES = 64 * 1024 * 1024
"""No Kubernetes object comes near this (etcd's limit is 1.5 MiB): more without a newline is not a watch."""


class LineSplitter:
    """Cuts one stream into lines."""

    __slots__ = ("_pending", "_pending_bytes")

    def __init__(self) -> None:
        self._pending: list[bytes] = []
        self._pending_bytes = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that ``chunk`` completes, without their newlines and without empty ones.

        Raises:
            ProtocolError: a line longer than ``MAX_LINE_BYTES``.
        """
        first, newline, rest = chunk.partition(b"\n")
        if not newline:
            self._keep(chunk)
            return []
        if self._pending:
            self._pending.append(first)
            first = b"".join(self._pending)
            self._pending = []
            self._pending_bytes = 0
        lines = rest.split(b"\n")
        self._keep(lines.pop())
        lines.insert(0, first)
        return [line for line in lines if line]

    @property
    def has_partial_line(self) -> bool:
        """Tell whether the stream, if it ended now, was cut inside a line."""
        return self._pending_bytes > 0

    def _keep(self, piece: bytes) -> None:
        if not piece:
            return
        self._pending.append(piece)
        self._pending_bytes += len(piece)
        if self._pending_bytes > MAX_LINE_BYTES:
            raise ProtocolError(f"a watch line exceeds {MAX_LINE_BYTES} bytes")
