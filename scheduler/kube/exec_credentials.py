"""Credentials from exec plugins and auth providers, through the official client.

Importing that client takes more than half a second, so only kubeconfigs that need it import this module. A plugin runs
in a thread at the start and again after a 401, once for all requests that met it.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from kubernetes.client import Configuration
from kubernetes.config import ConfigException, load_kube_config

from scheduler.kube.credentials import FileContent, TlsMaterial
from scheduler.kube.errors import CredentialsError

__all__ = ["ExecCredentials"]


class ExecCredentials:
    """The identity that a program hands out.

    Raises:
        CredentialsError: the program failed, or gave neither a token nor a certificate.
    """

    def __init__(self, path: str, context: str, server: str, *, ca: FileContent | None) -> None:
        self._path = path
        self._context = context
        self._server = server.rstrip("/")
        self._ca = ca
        self._lock = asyncio.Lock()
        self._token: str | None = None
        self._client_pem: bytes | None = None
        self._insecure = False
        self._server_name: str | None = None
        self._last_tls = TlsMaterial()
        self._load()

    @property
    def server(self) -> str:
        return self._server

    def tls(self) -> TlsMaterial:
        ca = None if self._ca is None else self._ca.get()
        tls = TlsMaterial(ca, self._client_pem, self._insecure, self._server_name)
        if tls != self._last_tls:
            self._last_tls = tls
        return self._last_tls

    def token(self) -> str | None:
        return self._token

    def recheck(self) -> None:
        if self._ca is not None:
            self._ca.recheck()

    async def renew(self) -> None:
        before = (self._token, self._client_pem)
        async with self._lock:
            if (self._token, self._client_pem) == before:
                await asyncio.to_thread(self._load)

    def _load(self) -> None:
        configuration = Configuration()
        try:
            load_kube_config(  # type: ignore[no-untyped-call]
                self._path, context=self._context, client_configuration=configuration, persist_config=False
            )
        except (ConfigException, OSError, ValueError) as error:
            raise CredentialsError(f"{self._path}: the credential plugin of {self._context} failed: {error}") from error
        header = configuration.api_key.get("BearerToken", "")
        self._token = header.removeprefix("Bearer ").strip() or None
        self._client_pem = _client_pem(configuration)
        self._insecure = not configuration.verify_ssl
        self._server_name = configuration.tls_server_name or None
        if self._token is None and self._client_pem is None:
            raise CredentialsError(f"{self._path}: the credential plugin of {self._context} gave no credentials")


def _client_pem(configuration: Configuration) -> bytes | None:
    if not configuration.cert_file or not configuration.key_file:
        return None
    return Path(configuration.key_file).read_bytes() + b"\n" + Path(configuration.cert_file).read_bytes()
