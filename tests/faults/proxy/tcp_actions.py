"""TCP actions: faults of the connection, whatever it carries. Names as in toxiproxy.

With a match that is about requests they begin with such a request and end with its answer; otherwise they concern whole
connections, those that stand already too. Both directions are meant unless it says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.faults.proxy.rules import Action

__all__ = ["Bandwidth", "Blackhole", "Down", "Latency", "LimitData", "ResetPeer", "Slicer", "SlowClose", "TcpAction"]


class TcpAction(Action):
    """A fault of a connection."""

    __slots__ = ()

    @property
    def is_about_connections(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Latency(TcpAction):
    """Everything comes later by ``latency_s`` ± ``jitter_s``, in its order."""

    latency_s: float
    jitter_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Bandwidth(TcpAction):
    """So many bytes a second at most, for each direction of each connection."""

    bytes_per_s: float


@dataclass(frozen=True, slots=True)
class SlowClose(TcpAction):
    """The client learns of the end of the connection so much later."""

    delay_s: float


@dataclass(frozen=True, slots=True)
class Blackhole(TcpAction):
    """Nothing passes, not even the end; the kernels go on answering for the living connection (toxiproxy: timeout).

    When it is over, what was on its way arrives, as TCP sends it again; unless the sender has closed meanwhile.
    New connections are accepted and hang in their TLS handshake. With ``close_after_s`` it ends with a reset.
    """

    close_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class ResetPeer(TcpAction):
    """The client gets a reset (RST) after so long; the server's side is closed."""

    after_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Slicer(TcpAction):
    """Bytes come in pieces of ``average_bytes`` ± ``variation_bytes``, with pauses in between."""

    average_bytes: int
    variation_bytes: int = 0
    pause_s: float = 0.0


@dataclass(frozen=True, slots=True)
class LimitData(TcpAction):
    """The connection is closed once so many bytes have gone to the client."""

    max_bytes: int


@dataclass(frozen=True, slots=True)
class Down(TcpAction):
    """Nobody listens: new connections are refused, those that stand are reset. Meant for ``Match()``, or a window."""
