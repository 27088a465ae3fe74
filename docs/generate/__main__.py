"""Writes every generated page of the documentation."""

from docs.generate.pages import PAGES, REFERENCE

for name, page in PAGES.items():
    (REFERENCE / name).write_text(page())
