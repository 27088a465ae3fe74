"""Impersonation: header lines as the API server reads them, on every request."""

import asyncio

import pytest
from aiohttp import web

from scheduler.kube.errors import CredentialsError
from scheduler.kube.impersonation import impersonation_fields
from tests.unit.kube.http_servers import TIMEOUT_S, connected_to, serving

ACCOUNT = "system:serviceaccount:kube-system:podium"


def test_nobody_is_impersonated_without_a_name():
    assert impersonation_fields("") == ""


def test_a_user_and_groups():
    fields = impersonation_fields("alice", ["dev", "ops"])
    assert fields == "Impersonate-User: alice\r\nImpersonate-Group: dev\r\nImpersonate-Group: ops\r\n"


@pytest.mark.parametrize("name", ["a\r\nX: y", "a\nb", "jürgen", " a", "a ", "\x7f"])
def test_a_name_that_cannot_stand_in_a_header(name):
    """It must not become a header of its own."""
    with pytest.raises(CredentialsError, match="nobody can be impersonated"):
        impersonation_fields(name)
    with pytest.raises(CredentialsError, match="nobody can be impersonated"):
        impersonation_fields("alice", ["dev", name])


def test_an_empty_group_is_refused():
    with pytest.raises(CredentialsError, match="nobody can be impersonated"):
        impersonation_fields("alice", [""])


def test_every_request_has_them():
    """Beside the token, whichever media types are asked for."""
    seen = []

    async def handler(request):
        seen.append((request.headers.getall("Impersonate-User"), request.headers.getall("Impersonate-Group")))
        seen.append(request.headers["Authorization"])
        return web.json_response({})

    async def talk():
        fields = impersonation_fields(ACCOUNT, ["dev", "ops"])
        async with serving(handler) as port, connected_to(f"http://127.0.0.1:{port}", "t", extra_fields=fields) as api:
            await api.request("GET", "/a", timeout_s=TIMEOUT_S)
            await api.request("POST", "/b", body=b"{}", accept="application/x", timeout_s=TIMEOUT_S)
            async with api.stream("/c", connect_timeout_s=TIMEOUT_S):
                pass

    asyncio.run(talk())
    assert seen == [([ACCOUNT], ["dev", "ops"]), "Bearer t"] * 3
