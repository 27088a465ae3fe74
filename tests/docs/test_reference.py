"""The pages of ``docs/reference`` that restate the code say what the code says."""

import pytest

from docs.generate.pages import PAGES, REFERENCE


@pytest.mark.parametrize("name", sorted(PAGES))
def test_is_current(name):
    """`make docs-reference` would change nothing."""
    assert (REFERENCE / name).read_text() == PAGES[name](), f"docs/reference/{name}: run `make docs-reference`"
