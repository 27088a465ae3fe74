"""The README's Python runs as it stands there: a newcomer copies it."""

import re
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"


def python_blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


def test_the_rule_and_its_trial_run():
    """The plugin of the README filters, and the harness example places its pod."""
    namespace: dict[str, object] = {"__name__": "readme"}
    assert len(python_blocks()) == 2
    for block in python_blocks():
        exec(compile(block, str(README), "exec"), namespace)
