"""Lines come out whole, however the stream was cut into chunks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.kube import framing
from scheduler.kube.errors import ProtocolError
from scheduler.kube.framing import LineSplitter


@given(st.lists(st.binary(max_size=8).map(lambda b: b.replace(b"\n", b"")), max_size=12), st.data())
def test_chunking_does_not_matter(lines, data):
    """Any cutting of the same bytes gives the same non-empty lines."""
    stream = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    splitter = LineSplitter()
    found = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += splitter.feed(stream[start:end])
    assert found == [line for line in lines if line]
    assert not splitter.has_partial_line


def test_unfinished_line_is_noticed():
    """A stream that ends inside a line was cut."""
    splitter = LineSplitter()
    assert splitter.feed(b"one\ntw") == [b"one"]
    assert splitter.has_partial_line


def test_endless_line_is_refused(monkeypatch):
    """A stream without newlines does not fill the memory."""
    monkeypatch.setattr(framing, "MAX_LINE_BYTES", 10)
    splitter = LineSplitter()
    splitter.feed(b"x" * 10)
    with pytest.raises(ProtocolError, match="exceeds 10 bytes"):
        splitter.feed(b"x")
