"""Who is calling: certificates, front proxies, tokens, nobody."""

import asyncio
from datetime import UTC, datetime

import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from scheduler.kube.reviews import ReviewUnavailableError, User
from scheduler.serving.authn import ANONYMOUS, AUTHENTICATED_GROUP, Authenticator, UnauthorizedError
from scheduler.serving.client_ca import CaBundle, ClientCas, RequestHeader

PROXIED = [
    ("X-Remote-User", "carol"),
    ("X-Remote-Group", "ops"),
    ("X-Remote-Group", "dev"),
    ("X-Remote-Extra-Scopes%2fA", "x"),
]


class Tokens:
    """Knows one token."""

    def __init__(self, error=None):
        self.error = error

    async def user_of(self, token):
        if self.error:
            raise self.error
        return User("tokenuser", groups=("system:serviceaccounts",)) if token == "good" else None


@pytest.fixture
def cas(client_authority, proxy_authority):
    return ClientCas(
        CaBundle.parse(client_authority.pem),
        RequestHeader(
            CaBundle.parse(proxy_authority.pem),
            ("front",),
            ("x-remote-user",),
            ("x-remote-uid",),
            ("x-remote-group",),
            ("x-remote-extra-",),
        ),
    )


def ask(cas, certificate=None, headers=(), tokens=None, now=None):
    authenticator = Authenticator(lambda: cas, tokens, now or (lambda: datetime.now(UTC)))
    return asyncio.run(authenticator.user_of(certificate, CIMultiDictProxy(CIMultiDict(headers))))


def test_nobody_is_anonymous(cas):
    assert ask(cas) == ANONYMOUS


def test_client_certificate_names_user_and_groups(cas, client_authority):
    user = ask(cas, client_authority.der("alice", "dev"))
    assert user == User("alice", groups=("dev", AUTHENTICATED_GROUP))


def test_certificate_of_an_unknown_authority_is_refused(cas, proxy_authority):
    """The proxy's authority vouches for proxies only."""
    with pytest.raises(UnauthorizedError, match="unknown authority"):
        ask(cas, proxy_authority.der("mallory", "system:masters"))


def test_expired_certificate_is_refused_even_on_an_old_connection(cas, client_authority):
    with pytest.raises(UnauthorizedError):
        ask(cas, client_authority.der("alice"), now=lambda: datetime(9000, 1, 1, tzinfo=UTC))


def test_front_proxy_speaks_for_its_user(cas, proxy_authority):
    user = ask(cas, proxy_authority.der("front"), [*PROXIED, ("X-Remote-Uid", "u9")])
    assert user == User("carol", "u9", ("ops", "dev", AUTHENTICATED_GROUP), (("scopes/a", ("x",)),))


@pytest.mark.parametrize("issuer", ["client_authority", "proxy_authority"])
def test_headers_of_others_are_not_believed(cas, issuer, request):
    """Neither a proxy of another name nor an ordinary client may use the headers."""
    authority = request.getfixturevalue(issuer)
    if issuer == "client_authority":
        assert ask(cas, authority.der("front"), PROXIED).name == "front"
    else:
        with pytest.raises(UnauthorizedError):
            ask(cas, authority.der("stranger"), PROXIED)


def test_headers_without_a_certificate_mean_nothing(cas):
    assert ask(cas, headers=PROXIED) == ANONYMOUS


def test_bearer_token_is_reviewed(cas):
    user = ask(cas, headers=[("Authorization", "Bearer good")], tokens=Tokens())
    assert user == User("tokenuser", groups=("system:serviceaccounts", AUTHENTICATED_GROUP))


@pytest.mark.parametrize(
    ("tokens", "match"),
    [
        pytest.param(Tokens(), "not valid", id="wrong token"),
        pytest.param(Tokens(ReviewUnavailableError("down")), "down", id="review unavailable"),
        pytest.param(None, "cannot be checked", id="no reviewer"),
    ],
)
def test_bad_tokens_are_refused_and_never_anonymous(cas, tokens, match):
    with pytest.raises(UnauthorizedError, match=match):
        ask(cas, headers=[("Authorization", "bearer bad")], tokens=tokens)


@pytest.mark.parametrize("header", ["Basic dXNlcg==", "Bearer", "Bearer ", "good"])
def test_other_authorization_headers_are_ignored(cas, header):
    assert ask(cas, headers=[("Authorization", header)], tokens=Tokens()) == ANONYMOUS


def test_token_counts_when_the_certificate_does_not(cas, proxy_authority):
    headers = [("Authorization", "Bearer good")]
    assert ask(cas, proxy_authority.der("front"), headers, Tokens()).name == "tokenuser"


def test_certificate_that_cannot_be_parsed_is_refused(cas):
    with pytest.raises(UnauthorizedError):
        ask(cas, b"\x30\x00")
