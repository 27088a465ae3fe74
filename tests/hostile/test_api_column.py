"""The table's column `api`, asked of a real API server: what it accepts can reach us from a tenant, what it refuses cannot.

Every object is created as a dry run, by an administrator, through all of the server's defaults, validation and admission.
"""

from __future__ import annotations

import json

import pytest

from scheduler.model.kinds import KINDS, kind_named
from tests.controlplane.cluster import ControlPlane
from tests.hostile import cluster_objects, pods
from tests.hostile.table import ACCEPTED, REFUSED, WIRE, Json
from tests.integration.api import Client

pytestmark = pytest.mark.integration

ROWS = [row for row in (*pods.ROWS, *cluster_objects.ROWS) if row.api != WIRE]
REFUSALS = (400, 403, 413, 422)


def path_of(kind: str) -> str:
    info = KINDS[kind_named(kind)]
    return info.path.replace(f"/{info.plural}", f"/namespaces/default/{info.plural}") if info.namespaced else info.path


def as_written(manifest: Json) -> Json:
    """Return the manifest without what only the server says."""
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict):
        return manifest
    kept = {key: value for key, value in metadata.items() if key not in ("uid", "resourceVersion")}
    return {**manifest, "metadata": kept}


@pytest.mark.timeout(300)
def test_the_server_says_what_the_table_says(control_plane: ControlPlane) -> None:
    """One request for each row, over one connection."""
    client = Client(control_plane)
    wrong: list[str] = []
    for row in ROWS:
        assert isinstance(row.made, dict), row
        status, answer = client.call("POST", f"{path_of(row.kind)}?dryRun=All", as_written(row.made))
        assert status == 201 or status in REFUSALS, (str(row), status, answer)
        said = ACCEPTED if status == 201 else REFUSED
        if said != row.api:
            wrong.append(f"{row}: {said}, not {row.api}: {json.dumps(answer)[:300]}")
    client.close()
    assert wrong == []
    assert len(ROWS) >= 250
