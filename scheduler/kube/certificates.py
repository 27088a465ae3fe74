"""When certificates expire."""

from __future__ import annotations

from functools import lru_cache

from cryptography import x509

__all__ = ["expires_s"]


@lru_cache(maxsize=8)
def expires_s(pem: bytes) -> float | None:
    """Return the earliest end of the certificates in a PEM text, in seconds since 1970.

    None if there is none in it, or one that cannot be read: whether it can be used is decided where it is used.
    """
    try:
        certificates = x509.load_pem_x509_certificates(pem)
    except ValueError:
        return None
    return min(certificate.not_valid_after_utc.timestamp() for certificate in certificates)
