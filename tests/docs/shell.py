"""The shell blocks of a page, and a place where they can be run as they stand: tools, a cluster, a kubelet's part."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.chart.renderers.build import binary_dir as renderers_dir
from tests.docs.kubectl.build import binary_dir as kubectl_dir

ROOT = Path(__file__).resolve().parents[2]
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_SHELLS = frozenset({"sh", "bash", "shell"})

# A kubelet's part of kubectl: forwarding a port goes to where the test runs the pod.
_KUBECTL = """#!/bin/sh
case " $* " in
  *" port-forward "*) exec {python} {forward} 10259 "$(cat {port_file})" ;;
  *) exec {kubectl} "$@" ;;
esac
"""


def shell_blocks(page: Path) -> list[str]:
    """Return a page's blocks that a reader would paste into a shell."""
    return [code for language, code in _FENCE.findall(page.read_text()) if language in _SHELLS]


class Shell:
    """Runs blocks one after another in one directory, as a reader's terminal would.

    Args:
        directory: where; a checkout.
        scratch: for the tools' wrappers, and for what the tools remember.
        kubeconfig: of the reader's cluster.
    """

    def __init__(self, directory: Path, scratch: Path, kubeconfig: Path) -> None:
        self._directory = directory
        self._scratch = scratch
        self.port_file = scratch / "port"
        tools = scratch / "tools"
        tools.mkdir(parents=True)
        wrapper = tools / "kubectl"
        forward = Path(__file__).with_name("forward.py")
        wrapper.write_text(
            _KUBECTL.format(
                python=sys.executable, forward=forward, port_file=self.port_file, kubectl=kubectl_dir() / "kubectl"
            )
        )
        wrapper.chmod(0o755)
        path = [str(tools), str(renderers_dir()), str(Path(sys.executable).parent), os.environ["PATH"]]
        # pip keeps the machine's own settings and cache; Helm and kubectl know this cluster alone.
        self._environment = {
            **os.environ,
            "PATH": os.pathsep.join(path),
            "KUBECONFIG": str(kubeconfig),
            "KUBECACHEDIR": str(scratch / "kubectl"),
            "KUBERC": "off",
            **{f"HELM_{kind}_HOME": str(scratch / "helm" / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")},
        }

    def run(self, block: str, timeout_s: float = 240.0) -> str:
        """Run a block; returns what it printed. The test fails if any command of it does."""
        result = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block],
            cwd=self._directory,
            env=self._environment,
            check=False,
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )
        assert result.returncode == 0, f"{block}\n{result.stdout[-3000:]}\n{result.stderr[-3000:]}"
        return result.stdout
