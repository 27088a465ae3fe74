"""kube-scheduler's serving flags as the server's options."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from scheduler.config.flags import Flags
from scheduler.serving.options import RequestHeaderOptions, ServingError, ServingOptions

__all__ = ["openssl_ciphers", "serving_options"]

# Go's names of TLS 1.2 suites → OpenSSL's; those of TLS 1.3 are always on in both and need no choice.
_CIPHERS: Final = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
    "TLS_RSA_WITH_AES_256_CBC_SHA": "AES256-SHA",
    "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
}
_ALWAYS_ON: Final = {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}


def openssl_ciphers(names: Iterable[str]) -> str:
    """Return OpenSSL's cipher list for Go's suite names; "" for none.

    Raises:
        ServingError: a name is unknown, or too weak to be served.
    """
    chosen = []
    for name in names:
        if name in _ALWAYS_ON:
            continue
        if name not in _CIPHERS:
            msg = f"--tls-cipher-suites: Cipher suite {name} not supported or doesn't exist"
            raise ServingError(msg)
        chosen.append(_CIPHERS[name])
    return ":".join(chosen)


def serving_options(flags: Flags) -> ServingOptions:
    """Return the options.

    Raises:
        ServingError: a cipher suite is unknown.
    """
    request_header = RequestHeaderOptions(
        _path(flags["requestheader-client-ca-file"]),
        tuple(flags["requestheader-allowed-names"]),
        tuple(flags["requestheader-username-headers"]),
        tuple(flags["requestheader-uid-headers"]),
        tuple(flags["requestheader-group-headers"]),
        tuple(flags["requestheader-extra-headers-prefix"]),
    )
    cert_file, key_file = _pair(flags)
    return ServingOptions(
        bind_address=flags["bind-address"],
        port=flags["secure-port"],
        cert_file=cert_file,
        key_file=key_file,
        # differs: 1.0 and 1.1 are raised to 1.2; nobody should serve less.
        min_version="VersionTLS13" if flags["tls-min-version"] == "VersionTLS13" else "VersionTLS12",
        ciphers=openssl_ciphers(flags["tls-cipher-suites"]),
        client_ca_file=_path(flags["client-ca-file"]),
        request_header=request_header,
        always_allow_paths=tuple(flags["authorization-always-allow-paths"]),
        skip_lookup=flags["authentication-skip-lookup"],
        tolerate_lookup_failure=flags["authentication-tolerate-lookup-failure"],
        reuse_port=flags["permit-port-sharing"],
    )


def _path(text: str) -> Path | None:
    return Path(text) if text else None


def _pair(flags: Flags) -> tuple[Path | None, Path | None]:
    """Return certificate and key: from their flags, else an existing pair in ``--cert-dir``.

    # differs: upstream writes its self-signed pair into --cert-dir; ours stays in memory.
    """
    cert_file, key_file = _path(flags["tls-cert-file"]), _path(flags["tls-private-key-file"])
    directory = _path(flags["cert-dir"])
    if cert_file is None and key_file is None and directory is not None:
        pair = directory / "kube-scheduler.crt", directory / "kube-scheduler.key"
        if all(path.is_file() for path in pair):
            return pair
    return cert_file, key_file
