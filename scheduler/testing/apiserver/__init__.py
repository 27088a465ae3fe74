"""An API server in memory, for tests of plugins and for `podium demo`.

Real HTTP on loopback, no etcd, no Go: nodes, pods, events, leases and every other kind that a scheduler watches, with
list and watch, selectors, optimistic concurrency and the bind call's compare-and-set. One contract suite
(tests/contract) runs the same scripts against it and against kube-apiserver; where they differ, this one is wrong.
What it does not have: identities and authorisation, field ownership of server-side apply, garbage collection,
controllers, and validation of fields that no scheduler reads.

    with EmbeddedApiServer.in_thread() as server:
        server.create(node("n1").capacity(cpu="4").manifest())
        ... point a client at server.url, or write server.kubeconfig() to a file
"""

from __future__ import annotations

from scheduler.testing.apiserver.server import EmbeddedApiServer
from scheduler.testing.apiserver.status import ApiStatusError

__all__ = ["ApiStatusError", "EmbeddedApiServer"]
