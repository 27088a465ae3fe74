"""The search for secrets finds them, so that a suite in which it finds none says something."""

import base64

import pytest

from tests.controlplane.pki import Authority, write_pair
from tests.leaks import LeakError, broken_lines, check_logs, leaks

EVENT = '{"ts":"2026-01-31T08:15:00.123Z","level":"info","msg":"bound a pod","logger":"scheduler"}'
LINE = "2026-01-31T08:15:00.123Z INFO    bound a pod  [scheduler]"


@pytest.mark.parametrize(
    "line",
    [
        "-----BEGIN EC PRIVATE KEY-----",
        "token=eyJhbGciOiJSUzI1NiIsImtpZCI6IjEifQ.eyJpc3MiOiJrdWJlcm5ldGVzIn0x.c2lnbmF0dXJlLXNpZ25hdHVyZQ",
        "authorization: Bearer 0123456789abcdef0123",
        "the test's own: correct-horse-battery-staple",
        f"in base64: {base64.b64encode(b'correct-horse-battery-staple').decode()}",
    ],
)
def test_a_secret_is_found(line):
    first, *_ = leaks(f"{LINE}\n{line}\n", ["correct-horse-battery-staple"])
    assert first.startswith("line 2 has a")


def test_ordinary_lines_have_none():
    assert not list(leaks(f"{LINE}\n{EVENT}\nbearer of bad news\n", ["correct-horse-battery-staple"]))


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("\x1b[31m" + LINE, id="terminal escape"),
        pytest.param(LINE + "\r", id="carriage return"),
        pytest.param(LINE + " \u202e", id="text direction"),
        pytest.param('{"msg": "cut', id="half an event"),
        pytest.param('{"forged": true}', id="not our event"),
        pytest.param("2026-01-31 forged", id="not our line"),
    ],
)
def test_a_line_that_broke_out_is_found(line):
    assert list(broken_lines(f"{EVENT}\n{line}\n"))
    assert not list(broken_lines(f"{EVENT}\n{LINE}\n"))
    assert not list(broken_lines(f'{EVENT}\n{{"ts":"20')), "a killed process's last words"


def test_keys_beside_the_logs_are_looked_for_in_them(tmp_path):
    """A piece of a private key is found; the message does not repeat it."""
    _, key = write_pair(Authority().client("somebody"), tmp_path, "somebody")
    log = tmp_path / "podium-1.log"
    log.write_text(f"{LINE}\n")
    assert check_logs(tmp_path) == 1
    piece = key.read_text().splitlines()[1]
    log.write_text(f"{LINE} key={piece}\n")
    with pytest.raises(LeakError, match=r"podium-1\.log: line 1 has a secret of the test") as caught:
        check_logs(tmp_path)
    assert piece[:48] not in str(caught.value)
