"""Kubeconfig: from a file to Credentials.

We read the common cases ourselves (certificates, keys, tokens, inline or in files), because importing the official
client takes longer than starting the rest of the scheduler. Exec plugins and auth providers are left to it, and only
where the caller allows that a kubeconfig starts programs.

differs: ``proxy-url`` and ``username``/``password`` are refused with a sentence; kube-scheduler would use the first
and the API server has not known the second since 1.19.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from scheduler.kube.credentials import Credentials, FileContent, FileCredentials, in_cluster
from scheduler.kube.errors import CredentialsError

__all__ = ["load_credentials", "load_kubeconfig"]

_MAX_BYTES = 4 * 1024 * 1024


def load_credentials(
    kubeconfig: str | None, *, context: str | None = None, server: str | None = None, allow_exec: bool = False
) -> Credentials:
    """Return the credentials of a kubeconfig, or of the pod we run in if there is none.

    Args:
        kubeconfig: path, or None/"" for the service account of the pod.
        context: name of a context in the file; None for its current one.
        server: base URL instead of the file's (``--master``).
        allow_exec: a user entry may start a program to get its token.

    Raises:
        CredentialsError: what is missing or wrong, and in which file.
    """
    if kubeconfig:
        return load_kubeconfig(Path(kubeconfig), context=context, server=server, allow_exec=allow_exec)
    return in_cluster() if server is None else FileCredentials(_checked_url(server, "--master"))


def load_kubeconfig(
    path: Path, *, context: str | None = None, server: str | None = None, allow_exec: bool = False
) -> Credentials:
    """Return the credentials that a context of the file ``path`` names; see ``load_credentials``."""
    document = _Entry(_read(path), str(path))
    chosen = context or document.text("current-context")
    if not chosen:
        raise CredentialsError(f"{path}: current-context is not set")
    link = document.named("contexts", chosen, "context")
    cluster = document.named("clusters", link.text("cluster"), "cluster")
    user_name = link.text("user")
    user = document.named("users", user_name, "user") if user_name else _Entry({}, str(path))
    if cluster.text("proxy-url"):
        raise CredentialsError(f"{cluster.where}.proxy-url: proxies are not supported")
    url = _checked_url(server or cluster.text("server"), f"{cluster.where}.server")
    if user.has("exec") or user.has("auth-provider"):
        return _from_plugin(path, chosen, url, user, cluster, allow_exec=allow_exec)
    return _from_fields(url, cluster, user, path.parent)


def _from_fields(url: str, cluster: _Entry, user: _Entry, directory: Path) -> FileCredentials:
    token = user.content("tokenFile", "", directory)  # parity: the file wins over the inline token
    if token is None and user.text("token"):
        token = FileContent(None, user.text("token").encode())
    certificate = user.content("client-certificate", "client-certificate-data", directory)
    key = user.content("client-key", "client-key-data", directory)
    if (certificate is None) != (key is None):
        raise CredentialsError(f"{user.where}: a client certificate and its key must be given together")
    if token is None and certificate is None and user.has("username"):
        raise CredentialsError(f"{user.where}.username: basic authentication is not supported")
    return FileCredentials(
        url,
        ca=cluster.content("certificate-authority", "certificate-authority-data", directory),
        client_certificate=certificate,
        client_key=key,
        token=token,
        insecure=cluster.flag("insecure-skip-tls-verify"),
        server_name=cluster.text("tls-server-name") or None,
    )


def _from_plugin(path: Path, context: str, url: str, user: _Entry, cluster: _Entry, *, allow_exec: bool) -> Credentials:
    if not allow_exec:
        advice = "set allowExecCredentials in the options file to allow it"
        raise CredentialsError(
            f"{user.where}: starting programs for credentials (exec, auth-provider) is not allowed; {advice}"
        )
    try:
        from scheduler.kube.exec_credentials import ExecCredentials  # noqa: PLC0415  costs 0.6 s, wanted by few
    except ModuleNotFoundError as error:
        advice = f"install the package kubernetes ({error}); the container image leaves it out"
        raise CredentialsError(f"{user.where}: no way to start programs for credentials: {advice}") from error

    return ExecCredentials(
        str(path), context, url, ca=cluster.content("certificate-authority", "certificate-authority-data", path.parent)
    )


def _read(path: Path) -> Mapping[str, Any]:
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise CredentialsError(f"cannot read kubeconfig {path}: {error.strerror or error}") from error
    if len(data) > _MAX_BYTES:
        raise CredentialsError(f"{path}: larger than {_MAX_BYTES} bytes")
    try:
        document = yaml.safe_load(data)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1})" if mark is not None else ""
        raise CredentialsError(f"{path}: not valid YAML{where}") from None  # the text may hold secrets
    if not isinstance(document, Mapping):
        raise CredentialsError(f"{path}: not a kubeconfig")
    return document


def _checked_url(url: str, where: str) -> str:
    if not url:
        raise CredentialsError(f"{where}: not set")
    if "://" not in url:
        url = f"http://{url}"  # parity: client-go takes a bare host:port as plain HTTP
    if not url.startswith(("https://", "http://")):
        raise CredentialsError(f"{where}: not an http or https URL")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port  # both are worked out when they are asked for
    except ValueError as error:
        raise CredentialsError(f"{where}: not a URL: {error}") from None
    if not host:
        raise CredentialsError(f"{where}: a URL without a host")
    return url


class _Entry:
    """One mapping of the file, with the words to say where it is."""

    def __init__(self, fields: Mapping[str, Any], where: str) -> None:
        self.where = where
        self._fields = fields

    def has(self, key: str) -> bool:
        return bool(self._fields.get(key))

    def flag(self, key: str) -> bool:
        value = self._fields.get(key, False)
        if not isinstance(value, bool):
            raise CredentialsError(f"{self.where}.{key}: expected true or false")
        return value

    def text(self, key: str) -> str:
        value = self._fields.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise CredentialsError(f"{self.where}.{key}: expected a string")
        return value

    def named(self, section: str, name: str, key: str) -> _Entry:
        entries = self._fields.get(section) or ()
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, Mapping) and entry.get("name") == name:
                fields = entry.get(key) or {}
                if isinstance(fields, Mapping):
                    return _Entry(fields, f"{self.where}: {section}[{name}].{key}")
        raise CredentialsError(f"{self.where}: {section} has no entry named {name!r}")

    def content(self, file_key: str, data_key: str, directory: Path) -> FileContent | None:
        if data_key and (data := self.text(data_key)):  # parity: data wins over the file
            try:
                return FileContent(None, base64.b64decode("".join(data.split()), validate=True))
            except binascii.Error:
                raise CredentialsError(f"{self.where}.{data_key}: not base64") from None
        name = self.text(file_key)
        if not name:
            return None
        content = FileContent(directory / name)
        content.get()
        return content
