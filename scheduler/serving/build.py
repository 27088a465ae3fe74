"""Wiring of the HTTPS server, and its life: start, keep certificates and authorities current, stop."""

from __future__ import annotations

import asyncio
import socket

from scheduler.kube.reviews import AccessReviewer, TokenReviewer
from scheduler.kube.transport import Transport
from scheduler.serving.authn import Authenticator
from scheduler.serving.authz import Authorizer
from scheduler.serving.client_ca import TrustSource
from scheduler.serving.connections import DEFAULT_LIMITS, Limits
from scheduler.serving.endpoints import Endpoints, routes
from scheduler.serving.options import ServingOptions
from scheduler.serving.server import HttpsServer
from scheduler.serving.tls import ServingTls

__all__ = ["Serving"]


class Serving:
    """The HTTPS server with all that belongs to it; lives on one loop.

    Args:
        options: settings.
        endpoints: what to show. The checks must have been added before.
        transport: for reviews and the authentication ConfigMap; None: no delegation, so only the always-allowed paths
            and client certificates of ``system:masters`` get an answer.
        token_ttl_s: ``--authentication-token-webhook-cache-ttl``.
        allowed_ttl_s: ``--authorization-webhook-cache-authorized-ttl``.
        denied_ttl_s: ``--authorization-webhook-cache-unauthorized-ttl``.
        limits: what callers may take.

    Attributes:
        server: for more routes.
        tls: the certificate in use.

    Raises:
        ServingError: the certificate cannot be used.
    """

    def __init__(
        self,
        options: ServingOptions,
        endpoints: Endpoints,
        transport: Transport | None,
        *,
        token_ttl_s: float = 10.0,
        allowed_ttl_s: float = 10.0,
        denied_ttl_s: float = 10.0,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.tls = ServingTls(options)
        self._trust = TrustSource(options, transport, self.tls.trust)
        tokens = access = None
        if transport is not None:
            tokens = TokenReviewer(transport, ttl_s=token_ttl_s)
            access = AccessReviewer(transport, allowed_ttl_s=allowed_ttl_s, denied_ttl_s=denied_ttl_s)
        self.server = HttpsServer(
            options,
            self.tls,
            Authenticator(lambda: self._trust.current, tokens),
            Authorizer(options.always_allow_paths, access),
            routes(endpoints),
            limits=limits,
        )

    async def start(self, sock: socket.socket | None = None) -> None:
        """Read the client authorities and listen.

        Raises:
            ServingError: an authority's file or the address cannot be used.
        """
        await self._trust.load()
        await self.server.start(sock)

    async def run(self) -> None:
        """Keep certificate and authorities current until cancelled; the server itself runs without it."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.tls.run())
            tasks.create_task(self._trust.run())

    async def stop(self) -> None:
        """Stop listening and close all connections within 5 s."""
        await self.server.stop()
