"""Pods of the rendered Deployment, run on the real API server as a kubelet and a container engine would run them.

The image is what the Dockerfile makes (`image`), the root is read-only and holds nothing else, the user is the one of the
security context, configuration and certificates are mounted where the Deployment says, and the identity is the
ServiceAccount's own token, asked for with TokenRequest. Only the port differs, since all pods share one machine.
"""

from __future__ import annotations

import base64
import socket
import ssl
import subprocess
import time
import uuid
from collections.abc import Sequence
from typing import Any

from tests.chart.image import Image
from tests.chart.rendering import Manifest, one
from tests.chart.sandbox import Mount, Sandbox, interpreter_mounts
from tests.controlplane.cluster import HOST, ControlPlane
from tests.controlplane.process import ChildProcess, free_ports
from tests.integration.api import unique
from tests.integration.daemon import Daemon

PORT = "--secure-port=10259"


class InstalledPod(Daemon):
    """One replica of a rendered Deployment."""

    def __init__(self, plane: ControlPlane, manifests: Sequence[Manifest], image: Image) -> None:
        """Start it; the objects must have been applied."""
        deployment = one(manifests, "Deployment")
        self._namespace = deployment["metadata"]["namespace"]
        self._plane = plane
        self._spec = deployment["spec"]["template"]["spec"]
        self.name = unique(deployment["metadata"]["name"])
        self.schedulers: list[str] = []
        self._directory = plane.directory / self.name
        (self.port,) = free_ports(1)
        self.started_s = time.monotonic()
        log = plane.directory / f"{self.name}.log"
        self.process = ChildProcess(self.name, self._command(image), log)

    def exec(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command beside the daemon, as `kubectl exec` does: the same user, files and variables."""
        command = self._sandbox.command(arguments, environment=self._environment)
        return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)

    def get_as(self, token: str, path: str) -> tuple[int, str]:
        """GET as the holder of a token, as a scraper in the cluster would."""
        return self.get(path, anonymous=True, headers={"Authorization": f"Bearer {token}"})

    def answers_with(self, context: ssl.SSLContext) -> bool:
        """Say whether its certificate is one that a TLS context trusts."""
        with (
            socket.create_connection((HOST, self.port), timeout=10) as connection,
            context.wrap_socket(connection, server_hostname=HOST) as secured,
        ):
            return secured.version() is not None

    def _command(self, image: Image) -> list[str]:
        (container,) = self._spec["containers"]
        security = container["securityContext"]
        assert self._spec["securityContext"]["runAsUser"] == image.user, "the image's user is the pod's"
        assert security["readOnlyRootFilesystem"] is True
        assert PORT in container["args"]
        arguments = [f"--secure-port={self.port}" if a == PORT else a for a in container["args"]]
        variables = {entry["name"]: _value(entry) for entry in container.get("env", [])}
        variables |= {"KUBERNETES_SERVICE_HOST": HOST, "KUBERNETES_SERVICE_PORT": str(self._plane.port)}
        mounts = [*interpreter_mounts(), Mount(image.app, "/app/.venv"), *self._volume_mounts(container)]
        (self._directory / "root").mkdir()
        self._sandbox = Sandbox(mounts, self._directory / "root", user=image.user)
        self._environment = {**image.environment, **variables}
        return self._sandbox.command([*image.entrypoint, *arguments], environment=self._environment)

    # --- volumes -----------------------------------------------------------------------------------------------------

    def _volume_mounts(self, container: Manifest) -> list[Mount]:
        volumes = {volume["name"]: volume for volume in self._spec["volumes"]}
        mounts = []
        for mount in container["volumeMounts"]:
            directory = self._directory / mount["name"]
            directory.mkdir(parents=True)
            for name, content in self._files(volumes[mount["name"]]).items():
                (directory / name).write_bytes(content)
            mounts.append(Mount(directory, mount["mountPath"]))
        return mounts

    def _files(self, volume: Manifest) -> dict[str, bytes]:
        if "configMap" in volume:
            return self._config_map(volume["configMap"]["name"])
        if "secret" in volume:
            data = self._read("secrets", volume["secret"]["secretName"])["data"]
            return {name: base64.b64decode(content) for name, content in data.items()}
        files: dict[str, bytes] = {}
        for source in volume["projected"]["sources"]:
            if token := source.get("serviceAccountToken"):
                account = self._spec["serviceAccountName"]
                text = request_token(self._plane, self._namespace, account, token["expirationSeconds"])
                files[token["path"]] = text.encode()
            else:
                data = self._config_map(source["configMap"]["name"])
                files |= {item["path"]: data[item["key"]] for item in source["configMap"]["items"]}
        return files

    def _config_map(self, name: str) -> dict[str, bytes]:
        if name == "kube-root-ca.crt":  # a controller publishes it in every namespace; none runs here
            return {"ca.crt": self._plane.ca_file.read_bytes()}
        return {key: text.encode() for key, text in self._read("configmaps", name)["data"].items()}

    def _read(self, resource: str, name: str) -> Any:
        status, answer = self._plane.request("GET", f"/api/v1/namespaces/{self._namespace}/{resource}/{name}")
        assert status == 200, answer
        return answer


def request_token(plane: ControlPlane, namespace: str, account: str, expires_s: int = 3600) -> str:
    """Ask the API server for a token of a ServiceAccount."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    status, answer = plane.request("POST", path, {"spec": {"expirationSeconds": expires_s}})
    assert status == 201, answer
    token: str = answer["status"]["token"]
    return token


def make_account(plane: ControlPlane, namespace: str, name: str, cluster_role: str = "") -> str:
    """Make a ServiceAccount, bound to a ClusterRole if one is named; returns a token of it."""
    plane.apply_object(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}
    )
    if cluster_role:
        group = "rbac.authorization.k8s.io"
        plane.apply_object(
            {
                "apiVersion": f"{group}/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": f"{namespace}-{name}"},
                "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": cluster_role},
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
            }
        )
    return request_token(plane, namespace, name)


def _value(variable: Manifest) -> str:
    """Return a variable's value as a kubelet would find it."""
    if "value" in variable:
        return str(variable["value"])
    assert variable["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.uid"}}, (
        "a field that this kubelet does not know"
    )
    return str(uuid.uuid4())
