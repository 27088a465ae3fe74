"""Fault proxy: spoils what goes between clients and the API server (or between that and etcd), by rules and with a seed.

    with FaultProxy.start(plane, seed=1, log_file=directory / "proxy.jsonl") as proxy:
        kubeconfig = proxy.kubeconfig(identity)      # for the client that is to suffer
        handle = proxy.add(Rule(Match(verb="create", resource="pods/binding", nth=3), DropAnswer()))
        ...
        assert handle.hits == 1

README.md in the folder above explains the bench; the modules that end with ``actions`` list the faults.
"""

from tests.faults.proxy.http_actions import (
    DelayBody,
    DelayRequest,
    DropAnswer,
    DropRequest,
    GzipBomb,
    Oversize,
    Reply,
    Rewrite,
    RewriteText,
    Truncate,
    WrongContentType,
)
from tests.faults.proxy.lines import Line
from tests.faults.proxy.proxy import FaultProxy, TcpProxy
from tests.faults.proxy.record import Decision, Seen
from tests.faults.proxy.request import Request
from tests.faults.proxy.rules import Handle, Match, Rule
from tests.faults.proxy.tcp_actions import (
    Bandwidth,
    Blackhole,
    Down,
    Latency,
    LimitData,
    ResetPeer,
    Slicer,
    SlowClose,
)
from tests.faults.proxy.watch_actions import (
    CutMidLine,
    DropLines,
    DuplicateLines,
    EndWatch,
    ErrorLine,
    HoldLines,
    Lines,
    MergeRecreated,
    SwapLines,
    suppress_bookmarks,
)

__all__ = [
    "Bandwidth",
    "Blackhole",
    "CutMidLine",
    "Decision",
    "DelayBody",
    "DelayRequest",
    "Down",
    "DropAnswer",
    "DropLines",
    "DropRequest",
    "DuplicateLines",
    "EndWatch",
    "ErrorLine",
    "FaultProxy",
    "GzipBomb",
    "Handle",
    "HoldLines",
    "Latency",
    "LimitData",
    "Line",
    "Lines",
    "Match",
    "MergeRecreated",
    "Oversize",
    "Reply",
    "Request",
    "ResetPeer",
    "Rewrite",
    "RewriteText",
    "Rule",
    "Seen",
    "Slicer",
    "SlowClose",
    "SwapLines",
    "TcpProxy",
    "Truncate",
    "WrongContentType",
    "suppress_bookmarks",
]
