"""Impersonation: asking the API server as somebody else (``kubectl --as``), as far as it lets us."""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.kube.errors import CredentialsError, cut

__all__ = ["impersonation_fields"]


def impersonation_fields(user: str, groups: Sequence[str] = ()) -> str:
    """Return the header lines under which the API server takes a request for one of ``user``; "" without one.

    A service account is named ``system:serviceaccount:NAMESPACE:NAME``; its groups follow from that.

    Raises:
        CredentialsError: a name cannot stand in a header.
    """
    if not user:
        return ""
    fields = [("Impersonate-User", user), *(("Impersonate-Group", group) for group in groups)]
    return "".join(f"{name}: {_checked(value)}\r\n" for name, value in fields)


def _checked(value: str) -> str:
    if not (value and value.isascii() and value.isprintable() and value == value.strip()):
        raise CredentialsError(f"nobody can be impersonated as {cut(ascii(value))}: not a word of printable ASCII")
    return value
