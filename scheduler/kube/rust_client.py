"""Rust client: the settings of the blocking HTTP clients that call extenders, and what their errors mean.

Its exception classes do not tell phases apart: a connection that closes **after** the request was sent is a
``ConnectError``, and a total time-out while the server is silent a ``ConnectTimeoutError``. Only the causes tell the
truth, so ``error_text`` reads those.
"""

from __future__ import annotations

import re
import socket
from datetime import timedelta
from typing import TypeVar
from urllib.parse import urlsplit

from pyreqwest.client import BaseClientBuilder

from scheduler.kube.credentials import TlsMaterial
from scheduler.kube.errors import CredentialsError, cut
from scheduler.kube.transport import JSON

__all__ = ["Resolve", "base_url", "configured", "error_text"]

Resolve = tuple[str, str, int]
"""A host name with the address and port that it stands for."""

_CONNECT_TIMEOUT_S = 2.0
_KEEP_IDLE_S = 55.0  # shorter than the server's 90 s, so that it is rarely the server who closes
_DEAD_PEER_S = 30.0
_SEE_ALSO = re.compile(r":? https?://docs\.rs/\S*")
_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)

B = TypeVar("B", bound=BaseClientBuilder)


def configured(builder: B, user_agent: str, tls: TlsMaterial, resolve: Resolve | None) -> B:
    """Return the builder with what all clients have in common: HTTP/1.1, no redirects, no proxy, no compression."""
    builder = (
        builder.http1_only()
        .user_agent(user_agent)
        .default_headers({"Accept": JSON})
        .gzip(False)
        .brotli(False)
        .zstd(False)
        .deflate(False)
        .follow_redirects(False)
        .referer(False)
        .no_proxy()
        .connect_timeout(timedelta(seconds=_CONNECT_TIMEOUT_S))
        .pool_idle_timeout(timedelta(seconds=_KEEP_IDLE_S))
        .tcp_keepalive(timedelta(seconds=_DEAD_PEER_S / 2))
        .tcp_keepalive_interval(timedelta(seconds=_DEAD_PEER_S / 6))
        .tcp_keepalive_retries(3)
        .tcp_user_timeout(timedelta(seconds=_DEAD_PEER_S))
        .min_tls_version("TLSv1.2")
        .danger_accept_invalid_certs(tls.insecure)
    )
    for certificate in _CERTIFICATE.findall(tls.ca_pem or b""):
        builder = builder.add_root_certificate_pem(certificate)
    if tls.client_pem is not None:
        builder = builder.identity_pem(tls.client_pem)
    return builder if resolve is None else builder.resolve(*resolve)


def base_url(server: str, server_name: str | None) -> tuple[str, Resolve | None]:
    """Return the base URL, and how to resolve its host if the certificate bears another name than the server's.

    Raises:
        CredentialsError: the server's host cannot be resolved.
    """
    url = urlsplit(server)
    if server_name is None or url.hostname in {None, server_name}:
        return server, None
    port = url.port or (443 if url.scheme == "https" else 80)
    try:
        address = socket.getaddrinfo(url.hostname, port, type=socket.SOCK_STREAM)[0][4][0]
    except OSError as error:
        raise CredentialsError(f"cannot resolve {url.hostname}: {error.strerror}") from error
    return f"{url.scheme}://{server_name}:{port}{url.path}", (server_name, str(address), port)


def error_text(error: Exception) -> str:
    """Return what happened; the head of the chain names the wrong phase, the innermost causes tell."""
    causes = [_SEE_ALSO.sub("", cause) for cause in _causes(error)[-2:]]
    return cut(": ".join(causes or [getattr(error, "message", str(error))]))


def _causes(error: Exception) -> list[str]:
    return [cause["message"] for cause in getattr(error, "details", {}).get("causes") or ()]
