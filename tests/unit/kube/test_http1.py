"""HTTP/1.1 on the wire: where an answer ends, however it is cut into pieces, and what is not taken for an answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.kube.http1 import HttpSyntaxError, ResponseParser, is_request_target, request_bytes

HEAD = b"HTTP/1.1 200 OK\r\n"


def parse(*pieces, closed=False):
    parser = ResponseParser()
    body = b"".join(parser.feed(piece) for piece in pieces)
    if closed:
        parser.end()
    return parser, body


@pytest.mark.parametrize(
    ("answer", "status", "body", "reusable"),
    [
        pytest.param(HEAD + b"Content-Length: 3\r\n\r\nabc", 200, b"abc", True, id="length"),
        pytest.param(HEAD + b"content-length:3\r\n\r\nabc", 200, b"abc", True, id="names in lower case"),
        pytest.param(HEAD + b"Content-Length: 0\r\n\r\n", 200, b"", True, id="empty"),
        pytest.param(b"HTTP/1.1 204 No Content\r\n\r\n", 204, b"", True, id="no body"),
        pytest.param(b"HTTP/1.1 304\r\n\r\n", 304, b"", True, id="no reason phrase"),
        pytest.param(
            HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=1\r\n0123456789\r\n0\r\n\r\n",
            200, b"abc0123456789", True, id="chunks",
        ),
        pytest.param(
            HEAD + b"Transfer-Encoding: Chunked\r\n\r\n1 \r\na\r\n000\r\nA: b\r\nC: d\r\n\r\n",
            200, b"a", True, id="trailers",
        ),
        pytest.param(
            b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + HEAD + b"Content-Length: 1\r\n\r\nx",
            200, b"x", True, id="interim answers",
        ),
        pytest.param(HEAD + b"Connection: close\r\nContent-Length: 1\r\n\r\nx", 200, b"x", False, id="server will close"),
        pytest.param(b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", 200, b"x", False, id="HTTP/1.0"),
        pytest.param(HEAD + b"Content-Length: 1\r\n\r\nxHTTP/1.1 200", 200, b"x", False, id="bytes behind the answer"),
        pytest.param(
            HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nx", 200, b"", False, id="bytes behind the chunks"
        ),
        pytest.param(
            HEAD + b"Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
            200, b"x", False, id="chunks win over a length",
        ),
    ],
)  # fmt: skip
class TestWholeAnswers:
    def test_at_once(self, answer, status, body, reusable):
        parser, got = parse(answer)
        assert (parser.status, got, parser.is_complete, parser.is_reusable) == (status, body, True, reusable)

    def test_byte_by_byte(self, answer, status, body, reusable):
        parser, got = parse(*(answer[i : i + 1] for i in range(len(answer))))
        assert (parser.status, got, parser.is_complete, parser.is_reusable) == (status, body, True, reusable)

    @given(data=st.data())
    def test_in_any_pieces(self, answer, status, body, reusable, data):
        cuts = sorted(data.draw(st.lists(st.integers(0, len(answer)))))
        parser, got = parse(*(answer[a:b] for a, b in zip([0, *cuts], [*cuts, len(answer)], strict=True)))
        assert (parser.status, got, parser.is_complete, parser.is_reusable) == (status, body, True, reusable)


def test_answer_without_a_length_ends_with_the_connection():
    parser, body = parse(HEAD + b"\r\nabc", b"def")
    assert (body, parser.is_complete) == (b"abcdef", False)
    parser.end()
    assert (parser.is_complete, parser.is_reusable) == (True, False)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(HEAD, id="in the head"),
        pytest.param(HEAD + b"Content-Length: 3\r\n\r\nab", id="in the body"),
        pytest.param(HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nab", id="in a chunk"),
        pytest.param(HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", id="before the last chunk"),
        pytest.param(HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", id="before the end of the trailers"),
    ],
)
def test_cut_answer_is_none(answer):
    with pytest.raises(HttpSyntaxError, match="closed"):
        parse(answer, closed=True)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"nonsense\r\n\r\n", id="not HTTP"),
        pytest.param(b"HTTP/2 200 OK\r\n\r\n", id="another version"),
        pytest.param(b"HTTP/1.1 999 X\r\n\r\n", id="not a status"),
        pytest.param(b"HTTP/1.1 101 Switching Protocols\r\n\r\n", id="another protocol"),
        pytest.param(HEAD + b"no colon\r\n\r\n", id="not a header"),
        pytest.param(HEAD + b"Content-Length : 1\r\n\r\nx", id="space before the colon"),
        pytest.param(HEAD + b"A: b\r\n folded\r\n\r\n", id="folded header"),
        pytest.param(HEAD + b"Content-Length: +1\r\n\r\nx", id="signed length"),
        pytest.param(HEAD + b"Content-Length: 1_0\r\n\r\nx", id="Python's digits"),
        pytest.param(HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nx", id="two lengths"),
        pytest.param(HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n", id="unknown coding"),
        pytest.param(HEAD + b"Transfer-Encoding: chunked\r\n\r\n0x1\r\nx\r\n", id="prefixed size"),
        pytest.param(HEAD + b"Transfer-Encoding: chunked\r\n\r\n-1\r\nx\r\n", id="negative size"),
        pytest.param(HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n", id="chunk longer than its size"),
        pytest.param(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1" * 5_000, id="endless size"),
        pytest.param(HEAD + b"A: " + b"x" * 70_000, id="endless head"),
        pytest.param(HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"A: b\r\n" * 20_000, id="endless trailers"),
    ],
)
def test_nonsense_is_refused(answer):
    with pytest.raises(HttpSyntaxError):
        parse(answer)


@given(st.lists(st.binary(max_size=40), max_size=8))
def test_any_bytes_are_an_answer_or_refused(pieces):
    """Nothing else may come out of the parser, because its errors end a connection and all others end the loop."""
    try:
        parser, body = parse(*pieces)
    except HttpSyntaxError:
        return
    assert not parser.is_complete or len(body) <= sum(map(len, pieces))


def test_of_repeated_headers_the_first_counts():
    parser, _ = parse(HEAD + b"X-A:  one \r\nx-a: two\r\nContent-Length: 0\r\n\r\n")
    assert parser.headers == {"x-a": "one", "content-length": "0"}


def test_request_with_and_without_a_body():
    assert request_bytes("GET", "/a?b=c", "Host: h\r\n", None, "x") == b"GET /a?b=c HTTP/1.1\r\nHost: h\r\n\r\n"
    assert request_bytes("POST", "/", "Host: h\r\n", None, "x").endswith(b"Content-Length: 0\r\n\r\n")
    assert request_bytes("POST", "/", "Host: h\r\n", b"{}", "text/x") == (
        b"POST / HTTP/1.1\r\nHost: h\r\nContent-Type: text/x\r\nContent-Length: 2\r\n\r\n{}"
    )


@pytest.mark.parametrize("path", ["/a b", "/a\r\nX: y", "/a\x00", "/ü", "/a\tb"])
def test_path_that_would_change_the_request_is_none(path):
    assert not is_request_target(path)
    assert is_request_target("/api/v1/pods?fieldSelector=status.phase%21%3DFailed")
