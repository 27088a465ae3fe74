"""Make a directory that, on PYTHONPATH, is an installed distribution with plugins: those of `gatekeepers.py`, or others."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

SOURCE = Path(__file__).parent / "gatekeepers.py"
PLUGINS = ("HoldPreBind", "GangPermit", "WantsVolumes", "Faulty", "HangingFilter")


def install(directory: Path, source: Path = SOURCE, plugins: Sequence[str] = PLUGINS) -> dict[str, str]:
    """Install into `directory`; returns the environment under which a daemon finds the plugins."""
    directory.mkdir(parents=True, exist_ok=True)
    module = f"podium_test_{source.stem}"
    shutil.copy(source, directory / f"{module}.py")
    info = directory / f"{module}-1.0.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module.replace('_', '-')}\nVersion: 1.0\n")
    lines = [f"{name} = {module}:{name}" for name in plugins]
    (info / "entry_points.txt").write_text("\n".join(["[podium.plugins]", *lines, ""]))
    return {"PYTHONPATH": str(directory)}


def profile_with(scheduler_name: str, plugin: str, args: dict[str, object] | None = None) -> dict[str, object]:
    """Return a profile with one of the plugins added at all its points."""
    profile: dict[str, object] = {
        "schedulerName": scheduler_name,
        "plugins": {"multiPoint": {"enabled": [{"name": plugin}]}},
    }
    if args is not None:
        profile["pluginConfig"] = [{"name": plugin, "args": args}]
    return profile
