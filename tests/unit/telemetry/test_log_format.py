"""Log lines: nothing breaks out of its line, nothing secret gets in."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.telemetry.log_format import (
    MAX_TEXT_CHARS,
    REDACTED,
    cut_texts,
    redact,
    render_json,
    render_text,
    timestamp,
)

HEAD = {"ts": "2026-01-31T08:15:00.123Z", "level": "info", "msg": "pod bound", "logger": "scheduler.x"}
JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzeXN0ZW0ifQ.c2lnbmF0dXJl"


def test_timestamp_is_rfc3339_in_utc():
    assert timestamp(1769847300.123) == "2026-01-31T08:15:00.123Z"


def test_text_line():
    line = render_text({**HEAD, "pod": "shop/web", "note": "two words", "duration_s": 0.123456789})
    assert (
        line
        == '2026-01-31T08:15:00.123Z INFO    pod bound  [scheduler.x] pod=shop/web note="two words" duration_s=0.123457'
    )


def test_json_line_has_its_fixed_keys_first():
    line = render_json({"pod": "shop/web", **HEAD})
    assert list(json.loads(line)) == ["ts", "level", "msg", "logger", "pod"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("\x1b[31mred", id="terminal escape"),
        pytest.param("a\nINFO forged", id="newline"),
        pytest.param("\x9b31m", id="C1 control sequence introducer"),
        pytest.param("\u202egnp.exe", id="right-to-left override"),
        pytest.param("\U000e0001", id="tag beyond the basic plane"),
    ],
)
@pytest.mark.parametrize("render", [render_text, render_json])
def test_control_characters_are_escaped(render, text):
    line = render({**HEAD, "note": text})
    assert line.isprintable()


@given(st.text(), st.text())
def test_every_text_makes_one_printable_line_and_json_gives_it_back(msg, note):
    """Law: one line, printable; JSON is lossless."""
    assert render_text({**HEAD, "msg": msg, "note": note}).isprintable()
    line = render_json({**HEAD, "msg": msg, "note": note})
    assert line.isprintable()
    assert json.loads(line)["note"] == note


@pytest.mark.parametrize(
    "value",
    [
        pytest.param({1: object()}, id="odd keys"),
        pytest.param("\ud800", id="lone surrogate"),
        pytest.param(2**80, id="huge int"),
    ],
)
def test_json_never_fails(value):
    assert json.loads(render_json({**HEAD, "value": value}))["msg"] == "pod bound"


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        pytest.param({"token": "abc"}, {"token": REDACTED}, id="secret key"),
        pytest.param({"Authorization": "Basic x"}, {"Authorization": REDACTED}, id="secret key in capitals"),
        pytest.param({"err": f"bad header Bearer {JWT}"}, {"err": f"bad header {REDACTED}"}, id="bearer in a text"),
        pytest.param({"err": f"got {JWT} there"}, {"err": f"got {REDACTED} there"}, id="bare web token"),
        pytest.param(
            {"a": {"password": "x", "b": [f"x {JWT}"]}},
            {"a": {"password": REDACTED, "b": [f"x {REDACTED}"]}},
            id="nested",
        ),
        pytest.param({"err": ValueError(f"Bearer {JWT}")}, {"err": REDACTED}, id="exception"),
        pytest.param(
            {"pem": "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----"}, {"pem": REDACTED}, id="private key"
        ),
        pytest.param({"pod": "shop/token-server"}, {"pod": "shop/token-server"}, id="harmless word in a value"),
        pytest.param({"err": KeyError()}, {"err": "KeyError"}, id="exception without a text"),
    ],
)
def test_secrets_are_replaced(event, expected):
    assert redact(event) == expected


def test_long_texts_are_cut_and_tracebacks_keep_their_end():
    event = cut_texts({"note": "x" * (MAX_TEXT_CHARS + 5), "exception": "a" * 20_000 + "END"})
    assert event["note"] == "x" * MAX_TEXT_CHARS + "… (5 more)"
    assert event["exception"].endswith("END")
    assert len(event["exception"]) == 4 * MAX_TEXT_CHARS + 1
