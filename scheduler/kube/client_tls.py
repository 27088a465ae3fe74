"""Client TLS: the ``ssl.SSLContext`` that credentials stand for.

parity: as in Go, only the given authorities are trusted, or the system's if none are given; and each certificate in
the CA file is an authority of its own, be it self-signed or not.
"""

from __future__ import annotations

import contextlib
import os
import re
import ssl
import tempfile
from collections.abc import Iterator

from scheduler.kube.credentials import TlsMaterial
from scheduler.kube.errors import CredentialsError

__all__ = ["client_context"]

_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


def client_context(tls: TlsMaterial) -> ssl.SSLContext:
    """Return the context for connections to the API server: TLS 1.2 or newer, HTTP/1.1.

    Raises:
        CredentialsError: certificates or key cannot be used; the message has nothing of their content.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.set_alpn_protocols(["http/1.1"])
    if tls.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        _trust(context, tls.ca_pem)
    if tls.client_pem is not None:
        _identify(context, tls.client_pem)
    return context


def _trust(context: ssl.SSLContext, ca_pem: bytes | None) -> None:
    if ca_pem is None:
        context.load_default_certs()
        return
    certificates = _CERTIFICATE.findall(ca_pem)
    if not certificates:
        raise CredentialsError("certificates to trust cannot be used: there is none in the CA file")
    try:
        context.load_verify_locations(cadata=b"\n".join(certificates).decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        raise CredentialsError(f"certificates to trust cannot be used: {_reason(error)}") from None


def _identify(context: ssl.SSLContext, client_pem: bytes) -> None:
    try:
        with _as_file(client_pem) as path:
            # An encrypted key must not make OpenSSL ask for a password on the terminal.
            context.load_cert_chain(path, password=lambda: b"")
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError; there may be no descriptor left for the file
        raise CredentialsError(f"client certificate and key cannot be used: {_reason(error)}") from None


@contextlib.contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """Yield a path to read ``content`` from, since OpenSSL takes keys from files only; in memory where that exists."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("podium-client")
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            yield f"/proc/self/fd/{descriptor}"
    else:
        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            yield file.name


def _reason(error: Exception) -> str:
    return getattr(error, "reason", None) or getattr(error, "strerror", None) or type(error).__name__
