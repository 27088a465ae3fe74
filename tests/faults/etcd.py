"""What tests do to etcd: spoken to through its HTTP gateway, and its files copied and put back."""

from __future__ import annotations

import base64
import json
import shutil
import signal
import socket
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from pathlib import Path
from typing import Any, BinaryIO

from tests.controlplane.cluster import ControlPlane

TIMEOUT_S = 30.0
CONNECTIONS = 4
PIPELINED = 25
"""Requests on their way at a time, on each connection."""


class Etcd:
    """The etcd of one control plane."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._data = plane.directory / "etcd"

    def call(self, path: str, **body: Any) -> Any:
        """Call a method of the gateway, e.g. ``kv/compaction``.

        Raises:
            OSError: it cannot be reached, or refuses.
        """
        data = json.dumps(body).encode()
        request = urllib.request.Request(f"{self._plane.etcd_url}/v3/{path}", data=data)
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
            return json.loads(response.read())

    def revision(self) -> int:
        """Return the newest revision, which is also the newest resourceVersion."""
        return int(self.call("maintenance/status")["header"]["revision"])

    def alarms(self) -> list[str]:
        return [alarm["alarm"] for alarm in self._alarms()]

    def _alarms(self) -> list[Any]:
        return self.call("maintenance/alarm", action="GET").get("alarms", [])

    def free(self) -> None:
        """Forget the past, give the room back, and take writes again: what an operator does about a full etcd."""
        self.call("kv/compaction", revision=str(self.revision()), physical=True)
        self.call("maintenance/defragment")
        for alarm in self._alarms():
            self.call("maintenance/alarm", action="DEACTIVATE", **alarm)

    def put(self, values: Mapping[str, bytes]) -> None:
        """Write values as they are, by key: objects that thus appear at the API server as if it had stored them itself.

        It reads JSON in etcd as well as its own encoding, and makes up for fields that are missing as it does for requests.
        """
        self._each("kv/put", [{"key": _b64(key.encode()), "value": _b64(value)} for key, value in values.items()])

    def delete(self, keys: Iterable[str]) -> None:
        """Delete keys, however objects are guarded at the API server."""
        self._each("kv/deleterange", [{"key": _b64(key.encode())} for key in keys])

    def _each(self, path: str, bodies: Sequence[Any]) -> None:
        """Make many calls, each of which is a revision of its own.

        In one transaction they would be one revision, and a client whose watch is cut within would miss the rest of it.
        """
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            list(pool.map(lambda start: self._some(path, bodies[start::CONNECTIONS]), range(CONNECTIONS)))

    def _some(self, path: str, bodies: Sequence[Any]) -> None:
        """Send a few calls before the first of their answers is read: to wait for each is what takes the time."""
        host, _, port = self._plane.etcd_url.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port)), TIMEOUT_S) as connection, connection.makefile("rb") as answers:
            for start in range(0, len(bodies), PIPELINED):
                some = bodies[start : start + PIPELINED]
                connection.sendall(b"".join(_request(path, body) for body in some))
                for _ in some:
                    status, answer = _answer(answers)
                    if status != HTTPStatus.OK:
                        raise OSError(f"{path}: {status} {answer!r}")

    def freeze(self) -> None:
        self._plane.etcd.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._plane.etcd.send_signal(signal.SIGCONT)

    def copy(self, directory: Path) -> None:
        """Copy the files as they are at one moment."""
        self.freeze()
        try:
            shutil.copytree(self._data, directory)
        finally:
            self.thaw()

    def restore(self, directory: Path) -> None:
        """Put a copy in the place of the files and start etcd on them; the API server must be down."""
        self._plane.etcd.kill()
        shutil.rmtree(self._data)
        shutil.copytree(directory, self._data)
        self._plane.start_etcd()


def _request(path: str, body: Any) -> bytes:
    data = json.dumps(body).encode()
    return f"POST /v3/{path} HTTP/1.1\r\nHost: etcd\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data


def _answer(answers: BinaryIO) -> tuple[int, bytes]:
    """Read the next of the answers that follow one another: its status and its body, whose length the gateway says.

    Raises:
        OSError: the connection has ended before.
    """
    first, length = answers.readline(), 0
    while (line := answers.readline()) not in (b"\r\n", b""):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    body = answers.read(length)
    if not line or len(body) < length:
        raise OSError("etcd has closed the connection before its answer was whole")
    return int(first.split()[1]), body


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()
