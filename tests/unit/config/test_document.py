"""Text to plain values: as kube-scheduler's YAML library reads it, strictly, with bounded cost."""

import pytest

from scheduler.config.document import MAX_BYTES, parse_document, resolve_plain
from scheduler.config.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("yes", True, id="yes is true"),
        pytest.param("y", True, id="y is true"),
        pytest.param("Off", False, id="Off is false"),
        pytest.param("yEs", "yEs", id="odd capitals are a text"),
        pytest.param("~", None, id="tilde is null"),
        pytest.param("Null", None, id="Null is null"),
        pytest.param("0x10", 16, id="hexadecimal"),
        pytest.param("010", 8, id="leading zero is octal"),
        pytest.param("0o10", 8, id="0o is octal"),
        pytest.param("0b11", 3, id="binary"),
        pytest.param("08", 8.0, id="08 is no octal number, but a float"),
        pytest.param("1_000", 1000, id="underscores are left out"),
        pytest.param("-5", -5, id="negative"),
        pytest.param("+5", 5, id="plus sign"),
        pytest.param("18446744073709551615", 2**64 - 1, id="up to uint64"),
        pytest.param("18446744073709551616", float(2**64), id="beyond that a float"),
        pytest.param("1e1", 10.0, id="exponent"),
        pytest.param(".5", 0.5, id="leading point"),
        pytest.param("1:30", "1:30", id="no base 60"),
        pytest.param("2001-01-01", "2001-01-01", id="a date is a text"),
        pytest.param("15s", "15s", id="a duration is a text"),
        pytest.param("-", "-", id="a lone sign"),
        pytest.param("9" * 500, "9" * 500, id="a number without end is a text"),
    ],
)
def test_plain_scalars_mean_what_go_yaml_reads(text, value):
    """The value and its type."""
    found = resolve_plain(text)

    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("text", [".inf", "-.Inf", ".NAN"])
def test_numbers_that_json_lacks_are_refused(text):
    """JSON cannot carry them, so nothing can mean them."""
    with pytest.raises(ConfigError, match="unsupported value"):
        resolve_plain(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("a: 'yes'\n", {"a": "yes"}, id="quoted text stays text"),
        pytest.param("1: a\ntrue: b\n0.5: c\n", {"1": "a", "true": "b", "0.5": "c"}, id="keys become texts"),
        pytest.param("a: !!str 5\nb: !!int '5'\nc: !!float 5\n", {"a": "5", "b": 5, "c": 5.0}, id="explicit tags"),
        pytest.param("a: &x [1, {b: 2}]\nc: *x\n", {"a": [1, {"b": 2}], "c": [1, {"b": 2}]}, id="aliases"),
        pytest.param("a: &x {b: 1, c: 2}\nd: {<<: *x, c: 3}\n", {"a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 3}}, id="merge keys"),
        pytest.param("d: {<<: [{b: 1}, {b: 2, c: 3}]}\n", {"d": {"b": 1, "c": 3}}, id="merge of several, first wins"),
        pytest.param('{"a": [1, 2.0, true, null, "\\u00e9"]}', {"a": [1, 2.0, True, None, "é"]}, id="JSON"),
        pytest.param('{\n\t"a": 1\n}', {"a": 1}, id="JSON with tabs"),
        pytest.param("{a: 1}", {"a": 1}, id="YAML in flow style"),
        pytest.param("\ufeffa: 1\n", {"a": 1}, id="byte order mark"),
        pytest.param("a: |\n  yes\n", {"a": "yes\n"}, id="block text"),
        pytest.param("", None, id="nothing"),
    ],
)  # fmt: skip
def test_documents(text, value):
    """Collections, tags, anchors, and JSON."""
    document = parse_document(text.encode())

    assert (document.value, document.problems, document.is_followed) == (value, (), False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a: 1\nb:\n- c: 1\n  c: 2\n", [("b[0].c", 'strict decoding error: yaml: line 4: key "c" already set in map')], id="YAML"),
        pytest.param("1: a\n0x1: b\n", [("1", 'strict decoding error: yaml: line 2: key "1" already set in map')], id="keys that mean the same"),
        pytest.param('{"b": [{"c": 1, "c": 2}]}', [("b[0].c", 'strict decoding error: duplicate field "b[0].c"')], id="JSON"),
    ],
)  # fmt: skip
def test_duplicate_keys_are_problems(text, expected):
    """They are reported with path and line; the last value is kept for further checks."""
    document = parse_document(text.encode())

    assert [(problem.path, problem.text) for _, problem in document.problems] == expected


def test_second_document_is_seen():
    """Only the first document counts, as upstream has it."""
    document = parse_document(b"a: 1\n---\nb: 2\n")

    assert (document.value, document.is_followed) == ({"a": 1}, True)


_BOMB = b"a: &a [x, x, x, x, x, x, x, x, x]\n" + b"".join(
    b"%c: &%c [%s]\n" % (98 + i, 98 + i, b", ".join([b"*%c" % (97 + i)] * 9)) for i in range(9)
)


@pytest.mark.parametrize(
    ("data", "match"),
    [
        pytest.param(b"x" * (MAX_BYTES + 1), "more than the 1048576", id="too large"),
        pytest.param(b"\xff", "invalid UTF-8 at byte 0", id="not UTF-8"),
        pytest.param(b"[" * 500_000, "depth", id="deep YAML"),
        pytest.param(b"- " * 5000, "depth", id="deep block sequences"),
        pytest.param(b'{"a":' * 100_000, "depth", id="deep JSON without end"),
        pytest.param(b'{"a":' * 500 + b"1" + b"}" * 500, "exceeded max depth of 100", id="deep JSON"),
        pytest.param(_BOMB, "excessive aliasing", id="billion laughs"),
        pytest.param(b"a: &a [*a]\n", "contains itself", id="an alias to itself"),
        pytest.param(b"a: *b\n", "unknown anchor", id="an alias to nothing"),
        pytest.param(b"? [a]\n: 1\n", "mapping key must be", id="a list as key"),
        pytest.param(b"~: 1\n", "mapping key must be", id="null as key"),
        pytest.param(b"a: {<<: 1}\n", "map merge requires", id="merging a number"),
        pytest.param(b"a: !!python/object:os.system x\n", "cannot read", id="a foreign tag"),
        pytest.param(b"a: !!int x\n", "cannot read", id="a tag that does not fit"),
    ],
)
def test_hostile_documents_are_refused(data, match):
    """Quickly, and without harm."""
    with pytest.raises(ConfigError, match=match):
        parse_document(data)
