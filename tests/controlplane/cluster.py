"""A real control plane on loopback for tests: etcd and kube-apiserver as child processes, with RBAC and client identities.

Why: the only judge of how a scheduler meets the API server is the API server. There is no kubelet; nodes are plain
objects. Controllers run only where a test starts them (`start_controller_manager`). `ControlPlane.start()` takes about
five seconds; everything it writes lies in one temporary directory (in memory where /dev/shm exists) that `stop()`
removes, or moves aside when logs are to be kept.
"""

from __future__ import annotations

import http.client
import json
import shutil
import ssl
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import yaml

from tests.controlplane.build import command
from tests.controlplane.pki import Authority, KeyPair, service_account_keys, write_pair
from tests.controlplane.process import ChildProcess, free_ports
from tests.leaks import check_logs

READY_TIMEOUT_S = 90.0
START_ATTEMPTS = 3
HOST = "127.0.0.1"
REPOSITORY = Path(__file__).resolve().parents[2]
RBAC_FILE = REPOSITORY / "deploy" / "all-in-one.yaml"
UNTHROTTLED = (
    "--enable-priority-and-fairness=false",
    "--max-requests-inflight=3000",
    "--max-mutating-requests-inflight=3000",
)


class ControlPlaneError(RuntimeError):
    """The control plane did not start, or refused what a test set up; the message holds the end of its log."""


class ControlPlane:
    """etcd and kube-apiserver, started by `start()`; `url` is the API server's address."""

    def __init__(self, *, extra_flags: Sequence[str] = UNTHROTTLED, etcd_flags: Sequence[str] = ()) -> None:
        memory = Path("/dev/shm")
        self.directory = Path(tempfile.mkdtemp(prefix="podium-cp-", dir=memory if memory.is_dir() else None))
        self._authority = Authority()
        self._extra_flags = tuple(extra_flags)
        self._etcd_flags = tuple(etcd_flags)
        self.ca_file = self.directory / "ca.crt"
        self.ca_file.write_bytes(self._authority.certificate)
        self._write_server_keys()
        self._admin = self._authority.client("admin", ["system:masters"])
        self._etcd_port, self._peer_port, self.port = free_ports(3)
        self.etcd_address = ""
        """Where the API server looks for etcd when it is started the next time; "": at etcd itself."""
        self._etcd: ChildProcess | None = None
        self._apiserver: ChildProcess | None = None
        self._identities: dict[str, KeyPair] = {}
        self._schedulers: list[ChildProcess] = []
        self._controller_managers: list[ChildProcess] = []

    @classmethod
    def start(cls, *, extra_flags: Sequence[str] = UNTHROTTLED, etcd_flags: Sequence[str] = ()) -> Self:
        """Start a control plane and wait until it is ready; tries again with other ports if some were taken.

        Raises:
            ControlPlaneUnavailableError: the binaries can be neither found nor built.
            ControlPlaneError: it did not become ready; the message holds the log's end.

        """
        command("etcd")  # first of all: fails with what to install
        for attempt in range(START_ATTEMPTS):
            plane = cls(extra_flags=extra_flags, etcd_flags=etcd_flags)
            try:
                plane.start_etcd()
                plane.start_apiserver()
            except ControlPlaneError:
                plane.stop()
                if attempt == START_ATTEMPTS - 1:
                    raise
            except BaseException:
                plane.stop()
                raise
            else:
                return plane
        raise AssertionError("unreachable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        return f"https://{HOST}:{self.port}"

    @property
    def etcd_url(self) -> str:
        return f"http://{HOST}:{self._etcd_port}"

    @property
    def apiserver(self) -> ChildProcess:
        assert self._apiserver is not None, "the API server was never started"
        return self._apiserver

    @property
    def etcd(self) -> ChildProcess:
        assert self._etcd is not None, "etcd was never started"
        return self._etcd

    # --- processes -----------------------------------------------------------------------------------------------

    def start_etcd(self) -> None:
        """Start etcd on this control plane's data; returns at once."""
        client, peer = self.etcd_url, f"http://{HOST}:{self._peer_port}"
        flags = ["--data-dir", str(self.directory / "etcd"), "--unsafe-no-fsync", "--log-level", "error"]
        flags += ["--listen-client-urls", client, "--advertise-client-urls", client]
        flags += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
        flags += ["--initial-cluster", f"default={peer}", *self._etcd_flags]
        self._etcd = ChildProcess("etcd", [*command("etcd"), *flags], self.directory / "etcd.log")

    def start_apiserver(self) -> None:
        """Start (or restart) kube-apiserver on the same port and wait for /readyz."""
        arguments = [*command("kube-apiserver"), *self._apiserver_flags()]
        self._apiserver = ChildProcess("kube-apiserver", arguments, self.directory / "kube-apiserver.log")
        self.wait_ready()

    def wait_ready(self, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Wait until /readyz answers 200.

        Raises:
            ControlPlaneError: a process ended or the time is over; the message holds the log's end.

        """
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            for process in (self.etcd, self.apiserver):
                if not process.is_running:
                    raise ControlPlaneError(f"{process.name} ended while starting:\n{process.log_tail()}")
            try:
                if self.request("GET", "/readyz", timeout_s=2)[0] == 200:
                    return
            except (OSError, http.client.HTTPException):
                pass
            time.sleep(0.05)
        raise ControlPlaneError(f"kube-apiserver was not ready in {timeout_s:.0f} s:\n{self.apiserver.log_tail()}")

    def start_kube_scheduler(
        self, configuration: Mapping[str, Any] | None = None, *, verbosity: int = 2
    ) -> ChildProcess:
        """Start the real kube-scheduler as administrator beside us (for side-by-side runs).

        `configuration` is a KubeSchedulerConfiguration; leader election is switched off and the client set to this
        server with a raised qps unless it says otherwise.
        """
        (port,) = free_ports(1)
        number = len(self._schedulers)
        kubeconfig = self.admin_kubeconfig
        complete = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 5000, "burst": 5000},
            **(configuration or {}),
        }
        file = self.directory / f"kube-scheduler-{number}.yaml"
        file.write_text(yaml.safe_dump(complete))
        flags = ["--config", str(file), "--secure-port", str(port), "--bind-address", HOST, f"-v={verbosity}"]
        flags += ["--authentication-kubeconfig", str(kubeconfig), "--authorization-kubeconfig", str(kubeconfig)]
        flags += ["--cert-dir", str(self.directory / f"kube-scheduler-{number}")]
        log = self.directory / f"kube-scheduler-{number}.log"
        scheduler = ChildProcess("kube-scheduler", [*command("kube-scheduler"), *flags], log)
        self._schedulers.append(scheduler)
        return scheduler

    def start_controller_manager(self, controllers: Sequence[str]) -> ChildProcess:
        """Start the real kube-controller-manager as administrator with these controllers only, and wait for /healthz.

        There is no leader election: two of them with the same controller would work against one another.

        Raises:
            ControlPlaneError: it ended, or the time is over; the message holds the log's end.

        """
        (port,) = free_ports(1)
        name = f"kube-controller-manager-{len(self._controller_managers)}"
        kubeconfig = str(self.admin_kubeconfig)
        flags = ["--controllers", ",".join(controllers), "--leader-elect=false", "--kubeconfig", kubeconfig]
        flags += ["--authentication-kubeconfig", kubeconfig, "--authorization-kubeconfig", kubeconfig]
        flags += ["--secure-port", str(port), "--bind-address", HOST, "--cert-dir", str(self.directory / name)]
        flags += ["--kube-api-qps", "500", "--kube-api-burst", "500"]
        flags += ["--pvclaimbinder-sync-period", "1s"]  # 15 s by default: a volume made after its claim is found by it
        log = self.directory / f"{name}.log"
        manager = ChildProcess(name, [*command("kube-controller-manager"), *flags], log)
        self._controller_managers.append(manager)
        self._wait_healthy(manager, port)
        return manager

    def stop(self, *, keep_logs_in: Path | None = None) -> None:
        """End every process that was started here; logs go to `keep_logs_in` if given, the rest is removed.

        Raises:
            LeakError: a log holds a secret, or a line that broke out of its format.
        """
        for process in (*self._schedulers, *self._controller_managers, self._apiserver, self._etcd):
            if process is not None:
                process.stop()
        if keep_logs_in is not None:
            keep_logs_in.mkdir(parents=True, exist_ok=True)
            for log in self.directory.glob("*.log"):
                shutil.copy(log, keep_logs_in)
        try:
            check_logs(self.directory)
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)

    @staticmethod
    def _wait_healthy(process: ChildProcess, port: int) -> None:
        """Wait until an HTTPS server with a self-made certificate answers /healthz with 200."""
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        deadline = time.monotonic() + READY_TIMEOUT_S
        while time.monotonic() < deadline:
            if not process.is_running:
                raise ControlPlaneError(f"{process.name} ended while starting:\n{process.log_tail()}")
            connection = http.client.HTTPSConnection(HOST, port, timeout=2, context=context)
            try:
                connection.request("GET", "/healthz")
                if connection.getresponse().status == 200:
                    return
            except (OSError, http.client.HTTPException):
                pass
            finally:
                connection.close()
            time.sleep(0.05)
        raise ControlPlaneError(f"{process.name} was not healthy in {READY_TIMEOUT_S:.0f} s:\n{process.log_tail()}")

    # --- identities ----------------------------------------------------------------------------------------------

    @property
    def admin_kubeconfig(self) -> Path:
        return self._kubeconfig("admin", self._admin)

    def client_kubeconfig(self, user: str, groups: Sequence[str] = ()) -> Path:
        """Return a kubeconfig file for a new client certificate of `user` in `groups`."""
        return self._kubeconfig(user, self._authority.client(user, groups))

    def scheduler_identity(self, name: str, rbac_file: Path = RBAC_FILE) -> Path:
        """Return a kubeconfig of user `name`, who may do exactly what the deployed RBAC file grants.

        Roles are applied as they are; every binding is repeated under `name` with this user as its only subject.
        """
        for document in rbac_documents(rbac_file):
            if document["kind"] in ("ClusterRoleBinding", "RoleBinding"):
                document["subjects"] = [{"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"}]
                document["metadata"]["name"] += f"-{name.replace(':', '-')}"
            self._ensure_namespace(document["metadata"].get("namespace"))
            self.apply_object(document)
        return self.client_kubeconfig(name)

    def ssl_context(self, kubeconfig: Path | None = None) -> ssl.SSLContext:
        """Return a TLS context that trusts this control plane; presents the administrator, or a kubeconfig's client."""
        document = yaml.safe_load((kubeconfig or self.admin_kubeconfig).read_text())
        user = document["users"][0]["user"]
        context = ssl.create_default_context(cafile=str(self.ca_file))
        context.load_cert_chain(user["client-certificate"], user["client-key"])
        return context

    # --- objects -------------------------------------------------------------------------------------------------

    def request(
        self,
        method: str,
        path: str,
        body: object | None = None,
        *,
        content_type: str = "application/json",
        timeout_s: float = 30.0,
        kubeconfig: Path | None = None,
    ) -> tuple[int, Any]:
        """Send one request (as administrator by default); return the status and the decoded JSON, or the text."""
        context = self.ssl_context(kubeconfig)
        connection = http.client.HTTPSConnection(HOST, self.port, timeout=timeout_s, context=context)
        try:
            data = None if body is None else json.dumps(body).encode()
            connection.request(method, path, body=data, headers={"Content-Type": content_type})
            response = connection.getresponse()
            answer = response.read()
        finally:
            connection.close()
        try:
            return response.status, json.loads(answer)
        except ValueError:
            return response.status, answer.decode(errors="replace")

    def apply(self, path: Path) -> None:
        """Apply every document of a YAML file as administrator (server-side apply).

        Raises:
            ControlPlaneError: the server refused one; the message names it and holds the answer.

        """
        for document in _documents(path):
            self.apply_object(document)

    def apply_object(self, document: Mapping[str, Any], *, dry_run: bool = False) -> None:
        """Apply one object (server-side apply, forced); unknown fields are refused, by CRDs' schemas too."""
        path = f"{self.object_path(document)}?fieldManager=podium-test&force=true&fieldValidation=Strict"
        path += "&dryRun=All" if dry_run else ""
        status, answer = self.request("PATCH", path, document, content_type="application/apply-patch+yaml")
        if status not in (200, 201):
            name = document["metadata"]["name"]
            raise ControlPlaneError(f"applying {document['kind']} {name} was refused with {status}: {answer}")

    def _ensure_namespace(self, name: str | None) -> None:
        if name is not None:
            self.apply_object({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    def object_path(self, document: Mapping[str, Any]) -> str:
        """Return where an object is (or would be) on the server."""
        version, kind = document["apiVersion"], document["kind"]
        root = f"/api/{version}" if "/" not in version else f"/apis/{version}"
        status, listed = self.request("GET", root)
        if status != 200:
            raise ControlPlaneError(f"the server has no API {version} (for a {kind})")
        resource = next(r for r in listed["resources"] if r["kind"] == kind and "/" not in r["name"])
        if resource["namespaced"]:
            root += f"/namespaces/{document['metadata'].get('namespace', 'default')}"
        return f"{root}/{resource['name']}/{document['metadata']['name']}"

    # --- files ---------------------------------------------------------------------------------------------------

    def _kubeconfig(self, user: str, pair: KeyPair) -> Path:
        stem = user.replace(":", "-").replace("/", "-")
        path = self.directory / f"{stem}.kubeconfig"
        if self._identities.get(stem) == pair:  # other threads may be reading it
            return path
        certificate, key = write_pair(pair, self.directory, stem)
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [
                {"name": "test", "cluster": {"server": self.url, "certificate-authority": str(self.ca_file)}},
            ],
            "users": [{"name": user, "user": {"client-certificate": str(certificate), "client-key": str(key)}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
        }
        path.write_text(yaml.safe_dump(document))
        self._identities[stem] = pair
        return path

    def _write_server_keys(self) -> None:
        names = [HOST, "localhost", "kubernetes.default.svc"]
        write_pair(self._authority.server(names), self.directory, "apiserver")
        private, public = service_account_keys()
        (self.directory / "service-accounts.key").write_bytes(private)
        (self.directory / "service-accounts.pub").write_bytes(public)

    def _apiserver_flags(self) -> list[str]:
        directory = self.directory
        flags = {
            "etcd-servers": self.etcd_address or self.etcd_url,
            "secure-port": self.port,
            "bind-address": HOST,
            "advertise-address": HOST,
            "service-cluster-ip-range": "10.0.0.0/24",
            "tls-cert-file": directory / "apiserver.crt",
            "tls-private-key-file": directory / "apiserver.key",
            "client-ca-file": self.ca_file,
            "authorization-mode": "Node,RBAC",
            "service-account-key-file": directory / "service-accounts.pub",
            "service-account-signing-key-file": directory / "service-accounts.key",
            "service-account-issuer": "https://kubernetes.default.svc",
            "disable-admission-plugins": "ServiceAccount,TaintNodesByCondition",
            "endpoint-reconciler-type": "none",
        }
        return [f"--{name}={value}" for name, value in flags.items()] + list(self._extra_flags)


def rbac_documents(path: Path = RBAC_FILE) -> list[dict[str, Any]]:
    """Return account, roles and bindings of a deployment's file: what its scheduler may do."""
    kinds = {"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
    return [
        document
        for document in _documents(path)
        if document["kind"] in kinds and "nonResourceURLs" not in document.get("rules", [{}])[0]
    ]


def _documents(path: Path) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(path.read_text()) if document]
