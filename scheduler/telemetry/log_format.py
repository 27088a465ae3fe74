"""How a log event becomes a line: pure functions from a dictionary to text.

JSON: keys ``ts`` (RFC 3339, UTC), ``level``, ``msg``, ``logger``, then the event's own fields.
Text: ``2026-01-31T08:15:00.123Z INFO  message  [logger] key=value``; values with blanks or quotes are quoted.

Nothing that comes from the cluster can break out of its line: control characters (newlines, terminal escapes) are
escaped in both formats, texts are cut to 2,048 characters, and whatever looks like a credential is replaced.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, MutableMapping
from datetime import UTC, datetime
from typing import Any

import msgspec

__all__ = ["MAX_TEXT_CHARS", "REDACTED", "cut_texts", "redact", "render_json", "render_text", "timestamp"]

MAX_TEXT_CHARS = 2_048
REDACTED = "[redacted]"

_SECRET_KEYS = frozenset(
    {
        "access_token",
        "authorization",
        "bearer_token",
        "client_key",
        "client_key_data",
        "cookie",
        "env",
        "environ",
        "headers",
        "id_token",
        "key_data",
        "kubeconfig",
        "password",
        "private_key",
        "refresh_token",
        "secret",
        "token",
    }
)
_SECRET_TEXT = re.compile(
    r"(?i:\bbearer\s+)[A-Za-z0-9._~+/=-]{8,}"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.?[A-Za-z0-9_-]*"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    re.DOTALL,
)
_BARE = re.compile(r"[A-Za-z0-9_.:/@%+,()\[\]{}<>*#~^|&;!?$-]+")
_FIRST = ("ts", "level", "msg", "logger")

EventDict = MutableMapping[str, Any]


def timestamp(epoch_s: float) -> str:
    """Return RFC 3339 in UTC with milliseconds."""
    return datetime.fromtimestamp(epoch_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def redact(event: EventDict) -> EventDict:
    """Replace values under secret keys and credentials inside texts, at any depth of mappings and lists."""
    for key, value in event.items():
        event[key] = REDACTED if key.lower() in _SECRET_KEYS else _redacted(value)
    return event


def _redacted(value: Any) -> Any:
    if isinstance(value, str):
        return _SECRET_TEXT.sub(REDACTED, value)
    if isinstance(value, bytes):
        return _SECRET_TEXT.sub(REDACTED, value.decode("utf-8", "replace"))
    if isinstance(value, Mapping):
        return redact({str(key): item for key, item in value.items()})
    if isinstance(value, list | tuple | set | frozenset):
        return [_redacted(item) for item in value]
    if isinstance(value, BaseException):
        return _SECRET_TEXT.sub(REDACTED, str(value) or type(value).__name__)
    return value


def cut_texts(event: EventDict) -> EventDict:
    """Cut long texts; a traceback keeps its end, which says what happened."""
    for key, value in event.items():
        if isinstance(value, str) and len(value) > MAX_TEXT_CHARS:
            rest = len(value) - MAX_TEXT_CHARS
            shortened = (
                f"…{value[-4 * MAX_TEXT_CHARS :]}" if key == "exception" else f"{value[:MAX_TEXT_CHARS]}… ({rest} more)"
            )
            event[key] = shortened
    return event


def render_json(event: EventDict) -> str:
    """Return one line of JSON; what JSON cannot carry is shown by its repr under ``fields``."""
    head = {key: event.pop(key) for key in _FIRST if key in event}
    try:
        encoded = msgspec.json.encode({**head, **event}, enc_hook=str).decode()
    except (TypeError, ValueError, RecursionError):  # odd keys, lone surrogates, cycles: a log call never fails
        fields = {key: repr(value).encode("ascii", "backslashreplace").decode() for key, value in event.items()}
        encoded = msgspec.json.encode({**{key: str(head[key]) for key in head}, "fields": fields}).decode()
    return encoded if encoded.isprintable() else _escape(encoded)


def render_text(event: EventDict) -> str:
    """Return one line for people."""
    ts, level, msg, logger = (str(event.pop(key, "")) for key in _FIRST)
    fields = "".join(f" {key}={_text_value(value)}" for key, value in event.items())
    return f"{ts} {level.upper():<7} {_escape(msg)}  [{_escape(logger)}]{fields}"


def _text_value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    text = value if isinstance(value, str) else str(value)
    if _BARE.fullmatch(text):
        return text
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{_escape(quoted)}"'


def _escape(text: str) -> str:
    """Escape what is not printable, as JSON would, so that both formats may use it."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    code = ord(char)
    short = {9: "\\t", 10: "\\n", 13: "\\r"}.get(code)
    if short is not None:
        return short
    if code > 0xFFFF:
        code -= 0x10000
        return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
    return f"\\u{code:04x}"
