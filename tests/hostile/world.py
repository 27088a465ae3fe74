"""A small cluster that takes objects as the bytes of a watch: decode, what is known, intake, queue, cycle, binding.

Only the network is left out: a line goes through the splitter and the decoder of the reflector, its `Known`, and the real
core (`scheduler.testing.Harness`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import structlog

from scheduler.kube.framing import LineSplitter
from scheduler.kube.known import Known
from scheduler.model.decode import decode_watch_line
from scheduler.model.delta import Added, Changed, Delta, Rejected, Removed
from scheduler.model.kinds import kind_named
from scheduler.model.pod import POD_SCHEDULED
from scheduler.testing import Harness
from tests.hostile.table import Json, Row, merged

__all__ = ["NEIGHBOUR", "World", "line"]

ZONE = "topology.kubernetes.io/zone"
NEIGHBOUR: Json = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "neighbour", "namespace": "default", "uid": "uid-neighbour", "resourceVersion": "9"},
    "spec": {
        "schedulerName": "default-scheduler",
        "nodeSelector": {"good": "yes"},
        "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "100m", "memory": "100Mi"}}}],
    },
    "status": {"phase": "Pending"},
}


def _good(name: str, zone: str) -> Json:
    room = {"cpu": "4", "memory": "8Gi", "pods": "110", "ephemeral-storage": "10Gi", "example.com/gpu": "4"}
    labels = {"kubernetes.io/hostname": name, ZONE: zone, "cores": "8", "good": "yes"}
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": "1", "labels": labels}
    status = {"allocatable": room, "capacity": room}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {}, "status": status}


NODES = (_good("good-1", "a"), _good("good-2", "b"))


def line(made: Json | bytes, event: str = "ADDED") -> bytes:
    """Return the line of a watch that brings the object."""
    data = made if isinstance(made, bytes) else json.dumps(made).encode()
    return b'{"type":"' + event.encode() + b'","object":' + data + b"}\n"


class World:
    """The cluster.

    Attributes:
        harness: its engine.
        rejected: what could not be understood.
        log: what the scheduler logged.
    """

    def __init__(self, *, nodes: Sequence[Json] = NODES, **options: Any) -> None:
        self.log: list[Mapping[str, Any]] = []
        self.rejected: list[Rejected] = []
        self.harness = Harness(**options)
        self._known: dict[str, Known] = {}
        for each in nodes:
            self.take("Node", each)

    def take(self, kind: str, made: Json | bytes, event: str = "ADDED") -> None:
        """Take what a watch of the kind brings."""
        known = self._known.setdefault(kind, Known(self._emit))
        cls = kind_named(kind)
        with structlog.testing.capture_logs() as log:
            for text in LineSplitter().feed(line(made, event)):
                said = decode_watch_line(cls, text)
                if said.obj is None:
                    self._emit(Rejected(cls, "", "", "", "", said.message or f"watch line of type {said.type!r}"))
                elif isinstance(said.obj, Rejected):
                    known.reject(said.obj)
                elif event == "DELETED":
                    known.remove(said.obj)
                else:
                    known.put(said.obj)
        self.log += log

    def run(self) -> int:
        """Try every pod that is ready, once and again until none is; returns the number of attempts."""
        with structlog.testing.capture_logs() as log:
            attempts = self.harness.run(max_attempts=200)
        self.log += log
        return attempts

    def fate(self, given: Json | bytes, kind: str = "Pod") -> str:
        """Return what became of an object, in the words of the table."""
        if self.rejected and kind == self.rejected[-1].kind.__name__:
            return f"rejected: {self.rejected[-1].reason}"
        if kind != "Pod":
            return "taken"
        manifest = given if not isinstance(given, bytes) else json.loads(given)
        meta = manifest["metadata"]
        return self._fate_of_pod(f"{meta.get('namespace', '')}/{meta.get('name', '')}", manifest)

    def _fate_of_pod(self, key: str, manifest: Json) -> str:
        pod = self.harness.pod(key)
        assert pod is not None, f"{key} is not known"
        if pod.node_name:
            return "assigned" if (manifest.get("spec") or {}).get("nodeName") else "scheduled"
        if pod.spec.scheduler_name not in self.harness.core.profiles:
            return "ignored"
        if pod.is_terminating:
            return "skipped"
        for plugin in self.harness.core.profiles[pod.spec.scheduler_name].queue_profile().pre_enqueue:
            if plugin.pre_enqueue(pod) is not None:
                return f"gated: {plugin.name}"
        said = next((c for c in pod.status.conditions if (c.type, c.status) == (POD_SCHEDULED, "False")), None)
        if said is None:
            return "silent"
        return f"{'pending' if said.reason == 'Unschedulable' else 'error'}: {said.message}"

    def notes(self, name: str) -> list[str]:
        """Return the texts of the events about an object."""
        return [event.note for event in self.harness.events if event.regarding.metadata.name == name]

    def neighbour_is_scheduled(self) -> bool:
        """Let a plain pod come, and say whether it gets a node."""
        self.take("Pod", NEIGHBOUR)
        self.run()
        found = self.harness.pod("default/neighbour")
        return found is not None and found.node_name in {"good-1", "good-2"}

    def broken(self) -> list[Mapping[str, Any]]:
        """Return the lines of the log that tell of an error that nobody had foreseen."""
        return [entry for entry in self.log if "broke" in entry["event"]]

    def _emit(self, delta: Delta) -> None:
        match delta:
            case Added(obj) | Changed(_, obj):
                self.harness.put(obj)
            case Removed(obj):
                self.harness.remove(obj)
            case Rejected():
                self.rejected.append(delta)
                self.harness.core.apply(delta)
                self.harness.advance(0.0)  # carries the event out
            case _:
                raise AssertionError(delta)

    def close(self) -> None:
        """End it."""
        self.harness.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def played(row: Row, world: World) -> tuple[str, str]:
    """Put a row's objects into the world and try its pods; returns what became of the object, and of its pod."""
    for other in row.others:
        world.take(other["kind"], other)
    world.take(row.kind, row.made)
    world.run()
    fate = world.fate(row.made, row.kind)
    then = ""
    if row.pod is not None:
        pod = merged(row.pod, {"metadata": {"name": "user", "uid": "uid-user"}})
        world.rejected.clear()
        world.take("Pod", pod)
        world.run()
        then = world.fate(pod)
    return fate, then
