"""TLS of our own server: certificate from files (read again when they change) or self-signed in memory.

A handshake takes the context that is current at that moment (swapped in the server-name callback, which OpenSSL calls
for every handshake), so a new certificate or client CA counts for the next connection and the old ones end in peace.

Client certificates are asked for only while somebody vouches for them; one that nobody vouches for ends the handshake.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import ipaddress
import os
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from scheduler.kube.certificates import expires_s
from scheduler.serving.client_ca import ClientCas
from scheduler.serving.options import ServingError, ServingOptions
from scheduler.telemetry.logging import get_logger

__all__ = ["ServingTls", "self_signed"]

_CHECK_S = 10.0
_VALID = dt.timedelta(days=365)
_BACKDATED = dt.timedelta(hours=1)
_log = get_logger(__name__)


def self_signed(now: dt.datetime) -> tuple[bytes, bytes]:
    """Return certificate and key in PEM for localhost, 127.0.0.1 and ::1, valid for a year from an hour ago."""
    key = ec.generate_private_key(ec.SECP256R1())
    stamp = int(now.timestamp())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"localhost@{stamp}")])
    addresses = [x509.IPAddress(ipaddress.ip_address(address)) for address in ("127.0.0.1", "::1")]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + _VALID)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost"), *addresses]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    key_pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.public_bytes(serialization.Encoding.PEM), key_pem


class ServingTls:
    """Keeps the server's TLS settings current.

    Attributes:
        context: what the listener is given; it stays the same object for ever.
    """

    def __init__(
        self,
        options: ServingOptions,
        *,
        now: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Load the certificate.

        Raises:
            ServingError: the files cannot be used.
        """
        if (options.cert_file is None) != (options.key_file is None):
            raise ServingError("--tls-cert-file and --tls-private-key-file must be given together")
        self._options = options
        self._sleep = sleep
        self._cas = ClientCas()
        self._own = None if options.cert_file is not None else self_signed(now())
        self._certificate = b""
        self._seen = self._stamp()
        self._current = self._build()
        self.context = self._build()
        self.context.sni_callback = self._choose

    @property
    def expires_s(self) -> float | None:
        """Return when the certificate in use expires, in seconds since 1970; None if it cannot be read."""
        return expires_s(self._certificate)

    def trust(self, cas: ClientCas) -> None:
        """Accept client certificates of these authorities from the next connection on."""
        before, self._cas = self._cas, cas
        try:
            self._refresh()
        except ServingError:
            self._cas = before
            raise

    async def run(self) -> None:
        """Look every 10 s whether the certificate's files have changed; a broken pair keeps the old one in use."""
        while True:
            await self._sleep(_CHECK_S)
            self.reload()

    def reload(self) -> None:
        """Take the certificate's files anew if they have changed."""
        stamp = self._stamp()
        if stamp == self._seen:
            return
        try:
            self._refresh()
        except ServingError as error:
            _log.error("serving certificate was not reloaded, the old one stays in use", err=str(error))
            return
        self._seen = stamp
        _log.info("serving certificate was reloaded", file=str(self._options.cert_file))

    def _choose(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = self._current

    def _refresh(self) -> None:
        self._current = self._build()
        # Whether to ask for a client certificate is fixed before the callback runs.
        self.context.verify_mode = self._current.verify_mode

    def _build(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        is_13 = self._options.min_version == "VersionTLS13"
        context.minimum_version = ssl.TLSVersion.TLSv1_3 if is_13 else ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
        context.set_alpn_protocols(["http/1.1"])
        try:
            if self._options.ciphers:
                context.set_ciphers(self._options.ciphers)
            certificate = self._load_pair(context)
            if self._cas.pem:
                context.load_verify_locations(cadata=self._cas.pem)
                context.verify_mode = ssl.CERT_OPTIONAL
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            where = self._options.cert_file or "self-signed certificate"
            msg = f"TLS cannot be set up with {where}: {error}"
            raise ServingError(msg) from error
        self._certificate = certificate
        return context

    def _load_pair(self, context: ssl.SSLContext) -> bytes:
        if self._own is None:
            assert self._options.cert_file is not None
            context.load_cert_chain(self._options.cert_file, self._options.key_file)
            return self._options.cert_file.read_bytes()
        # The ssl module reads pairs from files only; this one lives in memory and has no name.
        descriptor = os.memfd_create("serving-certificate", os.MFD_CLOEXEC)
        with os.fdopen(descriptor, "wb") as file:
            file.write(b"".join(self._own))
            file.flush()
            context.load_cert_chain(f"/proc/self/fd/{descriptor}")
        return self._own[0]

    def _stamp(self) -> tuple[tuple[int, int, int] | None, ...]:
        return tuple(_file_stamp(path) for path in (self._options.cert_file, self._options.key_file))


def _file_stamp(path: Path | None) -> tuple[int, int, int] | None:
    """Return what changes when a file does, mounted Secrets with their swapped links included."""
    if path is None:
        return None
    try:
        status = path.stat()
    except OSError:
        return None
    return (status.st_mtime_ns, status.st_size, status.st_ino)
