"""Write `deploy/all-in-one.yaml` anew: `python -m tests.chart.all_in_one` (or `make all-in-one`)."""

from __future__ import annotations

from tests.chart.rendering import DEPLOY, kustomized

ALL_IN_ONE = DEPLOY / "all-in-one.yaml"
_HEADER = """\
# Podium as a second scheduler, in one file: `kubectl apply -f`. Generated from deploy/overlays/second-scheduler by
# `make all-in-one`; change that, not this.
"""


def all_in_one() -> str:
    """Return what the file must hold."""
    return _HEADER + kustomized("overlays/second-scheduler")


if __name__ == "__main__":
    ALL_IN_ONE.write_text(all_in_one())
