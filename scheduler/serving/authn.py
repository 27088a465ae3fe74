"""Who is calling? In upstream's order: front proxy, client certificate, bearer token, else ``system:anonymous``.

A credential that is presented and wrong is refused (401), never treated as anonymous. Every known user also gets the
group ``system:authenticated``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final
from urllib.parse import unquote

from cryptography import x509
from cryptography.x509.oid import NameOID
from multidict import CIMultiDictProxy

from scheduler.kube.reviews import ReviewUnavailableError, TokenReviewer, User
from scheduler.serving.client_ca import ClientCas, RequestHeader

__all__ = ["ANONYMOUS", "AUTHENTICATED_GROUP", "Authenticator", "UnauthorizedError"]

AUTHENTICATED_GROUP: Final = "system:authenticated"
ANONYMOUS: Final = User("system:anonymous", groups=("system:unauthenticated",))

Headers = CIMultiDictProxy[str]


class UnauthorizedError(Exception):
    """The credentials are wrong, or nobody could check them; the text is for the log."""


def _now() -> datetime:
    return datetime.now(UTC)


class Authenticator:
    """Turns credentials into users.

    Args:
        cas: returns who vouches for callers now.
        tokens: checks bearer tokens; None: tokens are refused.
        now: wall clock, for the validity of certificates.
    """

    def __init__(
        self, cas: Callable[[], ClientCas], tokens: TokenReviewer | None, now: Callable[[], datetime] = _now
    ) -> None:
        self._cas = cas
        self._tokens = tokens
        self._now = now

    async def user_of(self, certificate: bytes | None, headers: Headers) -> User:
        """Return the caller.

        Args:
            certificate: the client certificate in DER, as verified by TLS; None if there is none.
            headers: of the request.

        Raises:
            UnauthorizedError: credentials were presented, and they are not good.
        """
        user = self._by_certificate(certificate, headers) if certificate else None
        if isinstance(user, User):
            return _authenticated(user)
        token = _bearer_token(headers)
        if token is not None:
            return _authenticated(await self._by_token(token))
        if certificate:
            raise UnauthorizedError("the client certificate names nobody, or was issued by an unknown authority")
        return ANONYMOUS

    def _by_certificate(self, der: bytes, headers: Headers) -> User | None:
        try:
            certificate = x509.load_der_x509_certificate(der)
        except ValueError:  # OpenSSL is more forgiving than we are
            return None
        if self._now() > certificate.not_valid_after_utc:
            return None
        cas = self._cas()
        proxied = _by_front_proxy(certificate, headers, cas.request_header)
        if proxied is not None:
            return proxied
        return _by_name(certificate) if cas.client.issued(certificate) else None

    async def _by_token(self, token: str) -> User:
        if self._tokens is None:
            raise UnauthorizedError("bearer tokens cannot be checked here")
        try:
            user = await self._tokens.user_of(token)
        except ReviewUnavailableError as error:
            raise UnauthorizedError(str(error)) from error
        if user is None:
            raise UnauthorizedError("the bearer token is not valid")
        return user


def _authenticated(user: User) -> User:
    if AUTHENTICATED_GROUP in user.groups or user.name == ANONYMOUS.name:
        return user
    return replace(user, groups=(*user.groups, AUTHENTICATED_GROUP))


def _texts(certificate: x509.Certificate, oid: x509.ObjectIdentifier) -> tuple[str, ...]:
    return tuple(str(attribute.value) for attribute in certificate.subject.get_attributes_for_oid(oid))


def _by_name(certificate: x509.Certificate) -> User | None:
    """Return the user in the subject: the common name, with the organisations as groups."""
    names = _texts(certificate, NameOID.COMMON_NAME)
    if not names or not names[0]:
        return None
    return User(names[0], groups=_texts(certificate, NameOID.ORGANIZATION_NAME))


def _by_front_proxy(certificate: x509.Certificate, headers: Headers, trust: RequestHeader) -> User | None:
    """Return the user that a trusted front proxy names in its headers."""
    name = next((headers[header] for header in trust.username_headers if headers.get(header)), "")
    if not name or not trust.ca.issued(certificate):
        return None
    names = _texts(certificate, NameOID.COMMON_NAME)
    if trust.allowed_names and not set(names) & set(trust.allowed_names):
        return None
    uid = next((headers[header] for header in trust.uid_headers if headers.get(header)), "")
    groups = tuple(group for header in trust.group_headers for group in headers.getall(header, []))
    return User(name, uid, groups, _extra(headers, trust.extra_prefixes))


def _extra(headers: Headers, prefixes: tuple[str, ...]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    extra: dict[str, tuple[str, ...]] = {}
    for header in {name.lower() for name in headers}:
        for prefix in prefixes:
            if header.startswith(prefix):
                extra[unquote(header[len(prefix) :])] = tuple(headers.getall(header))
    return tuple(sorted(extra.items()))


def _bearer_token(headers: Headers) -> str | None:
    parts = headers.get("Authorization", "").strip().split(" ", 2)
    if len(parts) < 2 or parts[0].lower() != "bearer" or not parts[1]:
        return None
    return parts[1]
