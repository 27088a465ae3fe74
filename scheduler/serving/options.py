"""Settings of the HTTPS server, as values; ``app`` fills them from kube-scheduler's flags of the same names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

__all__ = ["RequestHeaderOptions", "ServingError", "ServingOptions"]

TlsVersion = Literal["VersionTLS12", "VersionTLS13"]


class ServingError(Exception):
    """The server cannot be set up: a file, a certificate, an address. The message names it."""


@dataclass(frozen=True, slots=True)
class RequestHeaderOptions:
    """``--requestheader-*``: how a front proxy tells us for whom it asks."""

    client_ca_file: Path | None = None
    allowed_names: tuple[str, ...] = ()
    username_headers: tuple[str, ...] = ("x-remote-user",)
    uid_headers: tuple[str, ...] = ()
    group_headers: tuple[str, ...] = ("x-remote-group",)
    extra_headers_prefix: tuple[str, ...] = ("x-remote-extra-",)


@dataclass(frozen=True, slots=True)
class ServingOptions:
    """All of them; the defaults are kube-scheduler's.

    Attributes:
        bind_address: address to listen on.
        port: ``--secure-port``; the caller does not start a server for 0.
        cert_file: ``--tls-cert-file``, with the chain; None for a self-signed certificate in memory.
        key_file: ``--tls-private-key-file``.
        min_version: ``--tls-min-version``; nothing below 1.2 is ever accepted.
        ciphers: OpenSSL's names for ``--tls-cipher-suites``; empty for OpenSSL's choice.
        client_ca_file: ``--client-ca-file``.
        request_header: ``--requestheader-*``.
        always_allow_paths: ``--authorization-always-allow-paths``; a trailing ``*`` makes a prefix.
        skip_lookup: ``--authentication-skip-lookup``: do not read the ConfigMap extension-apiserver-authentication.
        tolerate_lookup_failure: ``--authentication-tolerate-lookup-failure``.
        reuse_port: ``--permit-port-sharing``.
        debug_flags: serve ``PUT /debug/flags/v``.
    """

    bind_address: str = "0.0.0.0"  # noqa: S104  parity: --bind-address; TLS and authorisation guard it
    port: int = 10259
    cert_file: Path | None = None
    key_file: Path | None = None
    min_version: TlsVersion = "VersionTLS12"
    ciphers: str = ""
    client_ca_file: Path | None = None
    request_header: RequestHeaderOptions = RequestHeaderOptions()
    always_allow_paths: tuple[str, ...] = ("/healthz", "/readyz", "/livez")
    skip_lookup: bool = False
    tolerate_lookup_failure: bool = True
    reuse_port: bool = False
    debug_flags: bool = True
