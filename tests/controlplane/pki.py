"""Keys and certificates of one test control plane: a CA, a serving certificate, client identities.

All certificates are X.509 v3 with the extended key usage that Go and rustls ask for; EC keys, because they are made in
a millisecond. Nothing here outlives the test session.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALIDITY = dt.timedelta(days=2)
SKEW = dt.timedelta(days=1)
"""Certificates are valid since then, also for clocks that are wrong."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A PEM certificate with its PEM private key."""

    certificate: bytes
    key: bytes


class Authority:
    """A certificate authority for one control plane; `certificate` is what clients trust."""

    def __init__(self, name: str = "podium-test-ca") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        self._certificate = (
            _builder(self._name, self._name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate = self._certificate.public_bytes(serialization.Encoding.PEM)

    def server(self, names: Sequence[str]) -> KeyPair:
        """Issue a serving certificate for host names and IP addresses."""
        alternatives = x509.SubjectAlternativeName([_general_name(name) for name in names])
        return self._issue(names[0], (), ExtendedKeyUsageOID.SERVER_AUTH, alternatives)

    def client(self, user: str, groups: Sequence[str] = (), *, ended: bool = False) -> KeyPair:
        """Issue a client certificate: the user is the common name, groups are organisations; it may have ended."""
        return self._issue(user, groups, ExtendedKeyUsageOID.CLIENT_AUTH, None, ended=ended)

    def _issue(
        self,
        common_name: str,
        organisations: Sequence[str],
        purpose: x509.ObjectIdentifier,
        alternatives: x509.SubjectAlternativeName | None,
        *,
        ended: bool = False,
    ) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organisations]
        attributes.append(x509.NameAttribute(NameOID.COMMON_NAME, common_name))
        builder = (
            _builder(x509.Name(attributes), self._name, key, ended=ended)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
        )
        if alternatives is not None:
            builder = builder.add_extension(alternatives, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return KeyPair(certificate.public_bytes(serialization.Encoding.PEM), _private_pem(key))


def self_signed(names: Sequence[str]) -> KeyPair:
    """Issue a serving certificate that is its own authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
    alternatives = x509.SubjectAlternativeName([_general_name(name) for name in names])
    certificate = _builder(name, name, key).add_extension(alternatives, critical=False).sign(key, hashes.SHA256())
    return KeyPair(certificate.public_bytes(serialization.Encoding.PEM), _private_pem(key))


def service_account_keys() -> tuple[bytes, bytes]:
    """Return an RSA key pair (private PEM, public PEM) that signs service account tokens."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM,
        serialization.PublicFormat.SubjectPublicKeyInfo,
    )
    return _private_pem(key), public


def write_pair(pair: KeyPair, directory: Path, name: str) -> tuple[Path, Path]:
    """Write NAME.crt and NAME.key (mode 0600) and return their paths."""
    certificate, key = directory / f"{name}.crt", directory / f"{name}.key"
    certificate.write_bytes(pair.certificate)
    key.touch(mode=0o600)
    key.write_bytes(pair.key)
    return certificate, key


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, *, ended: bool = False
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC) - (VALIDITY + dt.timedelta(hours=1) if ended else dt.timedelta(0))
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(now + VALIDITY)
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _private_pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
