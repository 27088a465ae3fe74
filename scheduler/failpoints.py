"""Failpoints: names for the moments between two steps at which a test may stop, break or kill the process.

Both functions do nothing, and nothing in this package makes them do anything: no variable, no option, no file. The
tests have a start program of their own, which is not part of a release. It puts other functions in their place before
anything else of the package is imported. Design record 0016.

A name is ``area.moment``. ``about`` says what the moment is about, e.g. the pod, so that a test can wait for that one.
"""

from __future__ import annotations

__all__ = ["async_failpoint", "failpoint"]


def failpoint(name: str, about: object = None) -> None:
    """Pass a moment in which nothing else happens on this thread."""


async def async_failpoint(name: str, about: object = None) -> None:
    """Pass a moment of one task; others go on meanwhile."""
