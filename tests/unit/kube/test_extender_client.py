"""Calls to an extender: deadlines, limits and texts; on loopback, as they are properties of the HTTP library."""

import ssl

import pytest
import trustme

from scheduler.api import ExtenderError
from scheduler.kube.credentials import TlsMaterial
from scheduler.kube.errors import CredentialsError
from scheduler.kube.extender_client import ExtenderClient
from tests.contract.extender.server import ExtenderServer


@pytest.fixture(scope="module")
def server():
    made = ExtenderServer()
    yield made
    made.close()


def client(server, timeout_s=5.0, tls=TlsMaterial(), **options):  # noqa: B008  frozen
    return ExtenderClient(server.url, timeout_s=timeout_s, tls=tls, **options)


def ask(server, made):
    return made(f"{server.url}/filter", "filter", b'{"NodeNames":["a"]}')


def test_answer(server):
    """The body goes out as JSON, and the body of the answer comes back."""
    server.behave()
    server.asked.clear()
    assert ask(server, client(server)) == b'{"NodeNames": ["a"], "Error": ""}'
    assert server.asked == [("/ext/filter", {"NodeNames": ["a"]})]


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [
        pytest.param("status 500", {}, "failed filter with extender at URL {}/filter, code 500", id="not 200"),
        pytest.param("redirect", {}, "failed filter with extender at URL {}/filter, code 307", id="redirect"),
        pytest.param("ten seconds slow", {"timeout_s": 0.2}, 'Post "{}/filter": ', id="deadline"),
        pytest.param("slow loris", {"timeout_s": 0.3}, 'Post "{}/filter": ', id="deadline for the whole body"),
        pytest.param("hangs up", {}, 'Post "{}/filter": ', id="no answer"),
        pytest.param(
            "1 GB body", {"max_bytes": 1 << 21}, 'Post "{}/filter": the answer is longer than 2097152 bytes', id="large"
        ),
    ],
)
def test_failures(server, name, options, text):
    """One kind of error, which says what was asked where."""
    server.behave(name)
    with pytest.raises(ExtenderError) as caught:
        ask(server, client(server, **options))
    assert str(caught.value).startswith(text.format(server.url))


def test_left_alone(server):
    """Three slow failures in a row; afterwards nothing is sent until the pause is over. Each call is counted."""
    now_s, ended = [100.0], []

    def later():
        now_s[0] += 1.0  # every look at the clock finds it a second on, so each call lasts one
        return now_s[0]

    made = client(server, monotonic=later, observe=lambda *words: ended.append(words))
    server.behave("hangs up")
    for _ in range(3):
        with pytest.raises(ExtenderError, match="Post"):
            ask(server, made)
    server.behave()
    server.asked.clear()
    with pytest.raises(ExtenderError, match="3 times in a row and is left alone for another 9s"):
        ask(server, made)
    assert server.asked == []
    now_s[0] += 10.0
    assert ask(server, made)
    results = ("failed", "failed", "failed", "skipped", "ok")
    assert ended == [(server.url, "filter", result) for result in results]


def test_certificate_of_another_name():
    """``serverName`` is what the certificate must bear; the connection goes where the URL points."""
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("gpu.example").configure_cert(context)
    server = ExtenderServer(context)
    try:
        tls = TlsMaterial(ca_pem=authority.cert_pem.bytes(), server_name="gpu.example")
        assert ask(server, client(server, tls=tls))
        assert server.asked[0][0] == "/ext/filter"
        with pytest.raises(ExtenderError, match="certificate"):
            ask(server, client(server, tls=TlsMaterial(ca_pem=authority.cert_pem.bytes())))
    finally:
        server.close()


def test_client_certificate():
    """An extender may want to know who asks."""
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    ours = authority.issue_cert("podium")
    server = ExtenderServer(context)
    try:
        ca_pem = authority.cert_pem.bytes()
        tls = TlsMaterial(ca_pem=ca_pem, client_pem=ours.private_key_and_cert_chain_pem.bytes())
        assert ask(server, client(server, tls=tls))
        with pytest.raises(ExtenderError):
            ask(server, client(server, tls=TlsMaterial(ca_pem=ca_pem)))
    finally:
        server.close()


def test_unusable_certificate():
    """Known before the first call."""
    with pytest.raises(CredentialsError, match="certificates for https://x cannot be used"):
        ExtenderClient("https://x", timeout_s=1.0, tls=TlsMaterial(client_pem=b"nonsense"))
