"""Make a directory that, on PYTHONPATH, is an installed distribution with the plugins of `gatekeepers.py`."""

from __future__ import annotations

import shutil
from pathlib import Path

SOURCE = Path(__file__).parent / "gatekeepers.py"
MODULE = "podium_test_gatekeepers"
PLUGINS = ("HoldPreBind", "GangPermit", "WantsVolumes", "Faulty", "HangingFilter")


def install(directory: Path) -> dict[str, str]:
    """Install into `directory`; returns the environment under which a daemon finds the plugins."""
    directory.mkdir(parents=True, exist_ok=True)
    shutil.copy(SOURCE, directory / f"{MODULE}.py")
    info = directory / f"{MODULE}-1.0.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {MODULE.replace('_', '-')}\nVersion: 1.0\n")
    lines = [f"{name} = {MODULE}:{name}" for name in PLUGINS]
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
