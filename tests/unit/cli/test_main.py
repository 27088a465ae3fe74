"""The command line's outermost layer: which sub-command, which exit code, and an end without a tear-down."""

import subprocess
import sys

import pytest

from scheduler import __version__
from scheduler.cli.main import main


@pytest.mark.parametrize(
    ("argv", "code", "out", "err"),
    [
        pytest.param(["--version"], 0, f"podium {__version__}", "", id="version"),
        pytest.param(["help"], 0, "usage: podium COMMAND", "", id="help"),
        pytest.param([], 2, "", "usage: podium COMMAND", id="nothing"),
        pytest.param(["dance"], 2, "", 'unknown command "dance"', id="unknown command"),
    ],
)
def test_commands(argv, code, out, err, capsys):
    """Help and version are answers; everything else that is no command is usage."""
    assert main(argv) == code
    printed = capsys.readouterr()
    assert out in printed.out
    assert err in printed.err


def test_process_ends_with_its_code_although_threads_run():
    """Regression: Rust threads that called into Python during the tear-down made SIGTERM end in an abort.

    A Python thread that never ends stands for them; output that waits in a pipe's buffer is not lost.
    """
    script = """
import sys, threading, time
import scheduler.cli.main as cli

def run(argv=None):
    threading.Thread(target=time.sleep, args=(3600,)).start()
    print("the last word")
    return 7

cli.main = run
cli.entry()
"""
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (7, "the last word\n", "")
