"""The memory limit of the control group."""

import pytest

from scheduler.telemetry.memory import memory_limit_bytes


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({"memory.max": "536870912\n"}, 536870912, id="version 2"),
        pytest.param({"memory.max": "max\n"}, None, id="version 2 without a limit"),
        pytest.param({"memory/memory.limit_in_bytes": "1073741824\n"}, 1073741824, id="version 1"),
        pytest.param({"memory/memory.limit_in_bytes": "9223372036854771712\n"}, None, id="version 1 without a limit"),
        pytest.param({}, None, id="no control groups"),
    ],
)
def test_limit(tmp_path, files, expected):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert memory_limit_bytes(tmp_path) == expected
