"""Credentials: which server, whom we trust, who we are. Everything that can rotate is read again while we run.

* Files (bearer token, CA, client certificate and key) are looked at every 10 s and read again when they changed; a
  token also every 60 s, and everything at once after a 401 or a failed TLS handshake.
* The last good content is kept while a file is missing or empty, as happens in the middle of a rotation.
* Nothing here is ever logged but paths.

``kube.kubeconfig`` reads kubeconfig files; ``in_cluster`` uses the pod's service account. Reading is synchronous on
purpose: these are tiny local files.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from scheduler.kube.errors import CredentialsError
from scheduler.telemetry.logging import get_logger

__all__ = [
    "CHECK_EVERY_S",
    "READ_EVERY_S",
    "SERVICE_ACCOUNT_DIRECTORY",
    "Credentials",
    "FileContent",
    "FileCredentials",
    "TlsMaterial",
    "in_cluster",
]

CHECK_EVERY_S = 10.0
READ_EVERY_S = 60.0
SERVICE_ACCOUNT_DIRECTORY = Path("/var/run/secrets/kubernetes.io/serviceaccount")

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class TlsMaterial:
    """What a TLS client is built from; equal values mean that connections may stay.

    Attributes:
        ca_pem: certificates to trust, or None for the system's.
        client_pem: private key and certificate chain, or None.
        insecure: do not verify the server (``insecure-skip-tls-verify``).
        server_name: name expected in the server's certificate, or None for the URL's host.
    """

    ca_pem: bytes | None = None
    client_pem: bytes | None = None
    insecure: bool = False
    server_name: str | None = None

    def __repr__(self) -> str:
        """Keep the key out of logs and tracebacks."""
        return f"TlsMaterial(insecure={self.insecure}, server_name={self.server_name!r})"


class Credentials(Protocol):
    """Server and identity, always current."""

    @property
    def server(self) -> str:
        """Return the base URL without a slash at its end."""

    def tls(self) -> TlsMaterial:
        """Return the TLS material; the same value until something changed."""

    def token(self) -> str | None:
        """Return the bearer token, or None."""

    def recheck(self) -> None:
        """Look at every file at the next use: the server did not like, or could not prove, an identity."""

    async def renew(self) -> None:
        """Get a new identity after a 401; at the least ``recheck``."""


class FileContent:
    """The content of a file that may be replaced while we run, or fixed bytes."""

    __slots__ = ("_checked_s", "_content", "_monotonic", "_path", "_read_s", "_signature")

    def __init__(
        self, path: Path | None, content: bytes = b"", *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._path = path
        self._content = content
        self._monotonic = monotonic
        self._signature: tuple[int, int, int] | None = None
        self._checked_s = self._read_s = float("-inf")

    def get(self) -> bytes:
        """Return the content.

        Raises:
            CredentialsError: the file cannot be read, and never could.
        """
        if self._path is not None:
            now_s = self._monotonic()
            if now_s - self._checked_s >= CHECK_EVERY_S:
                self._checked_s = now_s
                self._check(self._path, now_s)
        return self._content

    def recheck(self) -> None:
        """Read the file again at the next use."""
        self._checked_s = self._read_s = float("-inf")

    def _check(self, path: Path, now_s: float) -> None:
        try:
            stat = path.stat()
            signature = (stat.st_mtime_ns, stat.st_ino, stat.st_size)
            if signature == self._signature and now_s - self._read_s < READ_EVERY_S:
                return
            content = path.read_bytes()
        except (OSError, ValueError) as error:  # ValueError: the name holds a NUL
            self._keep_last(path, str(error))
            return
        if not content.strip():
            self._keep_last(path, "it is empty")
            return
        self._signature, self._read_s = signature, now_s
        if content != self._content:
            self._content = content

    def _keep_last(self, path: Path, problem: str) -> None:
        if self._signature is None:
            self._checked_s = float("-inf")
            raise CredentialsError(f"cannot read {path}: {problem}")
        _log.warning("kept the last content of an unreadable file", path=str(path), problem=problem)


class FileCredentials:
    """Credentials made of fixed values and files.

    Args:
        server: base URL.
        ca: certificates to trust, or None for the system's.
        client_certificate: PEM chain, or None.
        client_key: PEM key, or None.
        token: bearer token, or None.
        insecure: do not verify the server.
        server_name: name expected in the server's certificate.
    """

    def __init__(
        self,
        server: str,
        *,
        ca: FileContent | None = None,
        client_certificate: FileContent | None = None,
        client_key: FileContent | None = None,
        token: FileContent | None = None,
        insecure: bool = False,
        server_name: str | None = None,
    ) -> None:
        self._server = server.rstrip("/")
        self._ca = ca
        self._client_certificate = client_certificate
        self._client_key = client_key
        self._token = token
        self._insecure = insecure
        self._server_name = server_name
        self._last_raw: tuple[bytes | None, ...] | None = None
        self._last_tls = TlsMaterial()
        self._last_token: tuple[bytes, str] = (b"", "")

    @property
    def server(self) -> str:
        return self._server

    def tls(self) -> TlsMaterial:
        raw = (_content(self._ca), _content(self._client_certificate), _content(self._client_key))
        if raw != self._last_raw:
            ca, certificate, key = self._last_raw = raw
            client = key + b"\n" + certificate if key and certificate else None
            self._last_tls = TlsMaterial(ca, client, self._insecure, self._server_name)
        return self._last_tls

    def token(self) -> str | None:
        if self._token is None:
            return None
        raw = self._token.get()
        if raw is not self._last_token[0]:
            self._last_token = (raw, _token_text(raw))
        return self._last_token[1]

    def recheck(self) -> None:
        for content in (self._ca, self._client_certificate, self._client_key, self._token):
            if content is not None:
                content.recheck()

    async def renew(self) -> None:
        self.recheck()


def in_cluster(
    environment: Mapping[str, str] = os.environ, directory: Path = SERVICE_ACCOUNT_DIRECTORY
) -> FileCredentials:
    """Return the credentials of the pod we run in.

    Raises:
        CredentialsError: we do not run in a pod, or its service account is not mounted.
    """
    host, port = environment.get("KUBERNETES_SERVICE_HOST", ""), environment.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise CredentialsError("not running in a pod (KUBERNETES_SERVICE_HOST is not set): name a kubeconfig")
    token = FileContent(directory / "token")
    token.get()
    ca_path = directory / "ca.crt"
    ca = FileContent(ca_path) if ca_path.exists() else None  # parity: without it, the system's certificates
    return FileCredentials(f"https://{f'[{host}]' if ':' in host else host}:{port}", ca=ca, token=token)


def _content(source: FileContent | None) -> bytes | None:
    return None if source is None else source.get()


def _token_text(raw: bytes) -> str:
    try:
        text = raw.decode("ascii").strip()
    except UnicodeDecodeError:
        text = ""
    if not text or not text.isprintable():
        raise CredentialsError("the bearer token is not a line of printable ASCII")
    return text
