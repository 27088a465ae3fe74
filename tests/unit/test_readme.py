"""The README's Python runs as it stands there: a newcomer copies it."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"


def python_blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


def test_the_rule_and_its_trial_run():
    """The plugin of the README filters, and the harness example places its pod."""
    namespace: dict[str, object] = {"__name__": "readme"}
    assert len(python_blocks()) == 2
    for block in python_blocks():
        exec(compile(block, str(README), "exec"), namespace)


def test_the_conformance_figures_are_those_of_the_last_run():
    """`fresh.py --update-docs random` writes them into docs/conformance.md; the README repeats them."""
    page = (ROOT / "docs" / "conformance.md").read_text()
    report = page.partition("<!-- fresh.py --update-docs random -->")[2].partition("<!-- end of random -->")[0]
    (run,) = re.findall(r"([\d,]+) cases with ([\d,]+) pods: \*\*([\d,]+) differ\*\*", report)
    (excluded,) = re.findall(r"\*\*all cases\*\* .* ([\d,]+) \|$", report, re.MULTILINE)
    text = " ".join(README.read_text().split())
    said = r"([\d,]+) fresh random cases with ([\d,]+) pods .* ([\d,]+) differ in .* exclude ([\d,]+) of them"
    assert re.findall(said, text) == [(*run, excluded)]
