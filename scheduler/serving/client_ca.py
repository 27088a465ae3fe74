"""Which certificate authorities vouch for callers: from flags, else from the cluster's own ConfigMap.

``kube-system/extension-apiserver-authentication`` is how every API server tells its extensions whose client
certificates to trust; it is read at the start and every minute, and a changed CA counts for new connections at once.
Flags win over the ConfigMap, each for its own part.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature

from scheduler.kube.errors import KubeError
from scheduler.kube.transport import Transport, raise_for_status
from scheduler.serving.options import ServingError, ServingOptions
from scheduler.telemetry.logging import get_logger

__all__ = ["CONFIG_MAP_PATH", "CaBundle", "ClientCas", "RequestHeader", "TrustSource"]

CONFIG_MAP_PATH: Final = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
_REFRESH_S = 60.0
_RETRY_S = 5.0
_TIMEOUT_S = 5.0
_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class CaBundle:
    """Certificates that vouch for others; empty: nobody is vouched for."""

    pem: str = ""
    certificates: tuple[x509.Certificate, ...] = field(default=(), compare=False)

    @classmethod
    def parse(cls, pem: str) -> CaBundle:
        """Return the bundle in a PEM text.

        Raises:
            ValueError: it holds no certificate, or a broken one.
        """
        return cls(pem, tuple(x509.load_pem_x509_certificates(pem.encode())))

    def issued(self, certificate: x509.Certificate) -> bool:
        """Tell whether one of the bundle's authorities signed this certificate itself.

        TLS has checked the chain against all bundles together; this says which bundle it was.
        # differs: client certificates behind an intermediate authority are recognised only if the bundle names it.
        """
        return any(_signed(authority, certificate) for authority in self.certificates)


def _signed(authority: x509.Certificate, certificate: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


@dataclass(frozen=True, slots=True)
class RequestHeader:
    """A front proxy's identity and its headers; header names in lower case."""

    ca: CaBundle = CaBundle()
    allowed_names: tuple[str, ...] = ()
    username_headers: tuple[str, ...] = ()
    uid_headers: tuple[str, ...] = ()
    group_headers: tuple[str, ...] = ()
    extra_prefixes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClientCas:
    """All that vouches for callers."""

    client: CaBundle = CaBundle()
    request_header: RequestHeader = RequestHeader()

    @property
    def pem(self) -> str:
        """Return all authorities together, for the TLS handshake."""
        return "\n".join(part for part in (self.client.pem, self.request_header.ca.pem) if part)


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] = msgspec.field(default_factory=dict)


class TrustSource:
    """Keeps ``current`` up to date.

    Args:
        options: the flags.
        transport: to the API server; None: flags only.
        on_change: called with the new value.
        sleep: ``asyncio.sleep`` or a fake.
    """

    def __init__(
        self,
        options: ServingOptions,
        transport: Transport | None,
        on_change: Callable[[ClientCas], None],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._options = options
        self._transport = None if options.skip_lookup else transport
        self._on_change = on_change
        self._sleep = sleep
        self._data: dict[str, str] = {}
        self._was_read = self._transport is None
        self.current = ClientCas()

    async def load(self) -> None:
        """Read flags' files and the ConfigMap once.

        Raises:
            ServingError: a file is unusable, or the ConfigMap is and may not be missing.
        """
        try:
            await self._lookup()
        except (KubeError, ValueError) as error:
            if not self._options.tolerate_lookup_failure:
                msg = f"authentication configuration could not be read from the cluster ({CONFIG_MAP_PATH}): {error}"
                raise ServingError(msg) from error
            _log.warning("authentication configuration was not found, client certificates may not work", err=str(error))
        self._apply()

    async def run(self) -> None:
        """Read everything again every minute (5 s until it worked once); what cannot be read keeps its last state."""
        while True:
            await self._sleep(_REFRESH_S if self._was_read else _RETRY_S)
            try:
                await self._lookup()
                self._apply()
            except (KubeError, ValueError, ServingError) as error:
                _log.warning("client authorities were not refreshed", err=str(error))

    async def _lookup(self) -> None:
        if self._transport is None:
            return
        answer = raise_for_status(await self._transport.request("GET", CONFIG_MAP_PATH, timeout_s=_TIMEOUT_S))
        data = msgspec.json.decode(answer.body, type=_ConfigMap).data
        _from_cluster(data)  # nothing of an unusable ConfigMap is taken over
        self._data = data
        self._was_read = True

    def _apply(self) -> None:
        cas = ClientCas(self._client(), self._request_header())
        if cas != self.current:
            self._on_change(cas)
            self.current = cas

    def _client(self) -> CaBundle:
        path = self._options.client_ca_file
        return _from_file(path) if path is not None else _from_cluster(self._data).client

    def _request_header(self) -> RequestHeader:
        options = self._options.request_header
        if options.client_ca_file is not None:
            return RequestHeader(
                _from_file(options.client_ca_file),
                options.allowed_names,
                _lower(options.username_headers),
                _lower(options.uid_headers),
                _lower(options.group_headers),
                _lower(options.extra_headers_prefix),
            )
        return _from_cluster(self._data).request_header


def _from_cluster(data: Mapping[str, str]) -> ClientCas:
    """Return what the ConfigMap says.

    Raises:
        ValueError: a certificate or a list in it is broken.
    """

    def names(key: str) -> tuple[str, ...]:
        text = data.get(key, "")
        return msgspec.json.decode(text, type=tuple[str, ...]) if text else ()

    header = RequestHeader(
        _from_text(data.get("requestheader-client-ca-file", "")),
        names("requestheader-allowed-names"),
        _lower(names("requestheader-username-headers")),
        _lower(names("requestheader-uid-headers")),
        _lower(names("requestheader-group-headers")),
        _lower(names("requestheader-extra-headers-prefix")),
    )
    return ClientCas(_from_text(data.get("client-ca-file", "")), header)


def _lower(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.lower() for name in names)


def _from_text(pem: str) -> CaBundle:
    return CaBundle.parse(pem) if pem.strip() else CaBundle()


def _from_file(path: Path) -> CaBundle:
    try:
        return CaBundle.parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        msg = f"client CA file {path} cannot be used: {error}"
        raise ServingError(msg) from error
