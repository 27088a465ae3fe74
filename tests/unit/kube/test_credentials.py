"""Kubeconfigs, service accounts and rotation."""

import asyncio
import base64
import os

import pytest
import yaml

from scheduler.kube.credentials import CHECK_EVERY_S, READ_EVERY_S, FileContent, FileCredentials, in_cluster
from scheduler.kube.errors import CredentialsError
from scheduler.kube.kubeconfig import load_credentials, load_kubeconfig


def b64(text):
    return base64.b64encode(text.encode()).decode()


def write_config(tmp_path, cluster=None, user=None, **document):
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "main",
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://10.0.0.1:6443/", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        **document,
    }
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(config))
    return path


def test_inline_data(tmp_path):
    """The kubeconfig that kubeadm writes."""
    path = write_config(
        tmp_path,
        {"certificate-authority-data": b64("CA")},
        {"client-certificate-data": b64("CERT"), "client-key-data": b64("KEY")},
    )
    credentials = load_kubeconfig(path)
    assert credentials.server == "https://10.0.0.1:6443"
    assert credentials.tls().ca_pem == b"CA"
    assert credentials.tls().client_pem == b"KEY\nCERT"
    assert credentials.token() is None
    assert "KEY" not in repr(credentials.tls())


def test_files_beside_the_kubeconfig(tmp_path):
    """Relative paths start at the kubeconfig; the token file wins over the token."""
    for name, text in (("ca", "CA"), ("cert", "CERT"), ("key", "KEY"), ("token", "file-token\n")):
        (tmp_path / name).write_text(text)
    user = {"client-certificate": "cert", "client-key": "key", "token": "inline", "tokenFile": "token"}
    cluster = {"certificate-authority": "ca", "tls-server-name": "kubernetes"}
    credentials = load_kubeconfig(write_config(tmp_path, cluster, user))
    assert credentials.tls().client_pem == b"KEY\nCERT"
    assert credentials.tls().server_name == "kubernetes"
    assert credentials.token() == "file-token"


def test_master_flag_and_other_context(tmp_path):
    """Another server, another context; a bare host is plain HTTP as in client-go."""
    contexts = [{"name": "other", "context": {"cluster": "c"}}]
    path = write_config(tmp_path, {"insecure-skip-tls-verify": True}, contexts=contexts)
    credentials = load_credentials(str(path), context="other", server="127.0.0.1:8001")
    assert credentials.server == "http://127.0.0.1:8001"
    assert credentials.tls().insecure


@pytest.mark.parametrize(
    ("cluster", "user", "document", "problem"),
    [
        pytest.param({}, {}, {"current-context": ""}, "current-context is not set", id="no context"),
        pytest.param({}, {}, {"current-context": "x"}, "contexts has no entry named 'x'", id="unknown context"),
        pytest.param({}, {}, {"users": []}, "users has no entry named 'u'", id="unknown user"),
        pytest.param({"server": ""}, {}, {}, "server: not set", id="no server"),
        pytest.param({"server": "ftp://x"}, {}, {}, "not an http or https URL", id="strange URL"),
        pytest.param({"server": "https://["}, {}, {}, "server: not a URL", id="no address"),
        pytest.param({"server": "https://h:x"}, {}, {}, "server: not a URL", id="no port"),
        pytest.param({"server": "https://h:99999"}, {}, {}, "server: not a URL", id="a port beyond all ports"),
        pytest.param({"server": "https:///x"}, {}, {}, "server: a URL without a host", id="no host"),
        pytest.param({}, {"tokenFile": "a\0b"}, {}, "embedded null", id="NUL in a file name"),
        pytest.param({"server": 7}, {}, {}, "expected a string", id="wrong type"),
        pytest.param({"certificate-authority-data": "%"}, {}, {}, "not base64", id="broken data"),
        pytest.param({"certificate-authority": "nowhere"}, {}, {}, "cannot read", id="missing file"),
        pytest.param({"proxy-url": "http://p"}, {}, {}, "proxies are not supported", id="proxy"),
        pytest.param({}, {"client-key-data": b64("K")}, {}, "must be given together", id="key alone"),
        pytest.param({}, {"username": "x", "password": "s3cret"}, {}, "basic authentication", id="password"),
        pytest.param({}, {"exec": {"command": "x"}}, {}, "not allowed", id="exec plugin"),
    ],
)
def test_problems_are_named(tmp_path, cluster, user, document, problem):
    """A broken kubeconfig is refused with the place and without its secrets."""
    with pytest.raises(CredentialsError, match=problem) as caught:
        load_kubeconfig(write_config(tmp_path, cluster, user, **document))
    assert str(tmp_path) in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_yaml_errors_do_not_quote_the_file(tmp_path):
    """Not even the broken line: it may be the token."""
    path = tmp_path / "config"
    path.write_text("users: [\n  token: s3cret")
    with pytest.raises(CredentialsError, match=r"not valid YAML \(line \d+\)") as caught:
        load_kubeconfig(path)
    assert "s3cret" not in str(caught.value)


def test_exec_plugin(tmp_path):
    """A program's token, through the official client, where allowed."""
    script = tmp_path / "plugin"
    script.write_text(
        "#!/bin/sh\n"
        'echo \'{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"t-\'$(cat '
        + str(tmp_path / "serial")
        + ")'\"}}'\n"
    )
    script.chmod(0o755)
    (tmp_path / "serial").write_text("1")
    exec_ = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": str(script),
        "interactiveMode": "Never",
    }
    credentials = load_kubeconfig(write_config(tmp_path, {}, {"exec": exec_}), allow_exec=True)
    assert credentials.server == "https://10.0.0.1:6443"
    assert credentials.token() == "t-1"
    (tmp_path / "serial").write_text("2")
    asyncio.run(credentials.renew())
    assert credentials.token() == "t-2"


def test_in_cluster(tmp_path):
    """The pod's service account; IPv6 hosts are bracketed."""
    (tmp_path / "token").write_text("abc\n")
    (tmp_path / "ca.crt").write_text("CA")
    environment = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    credentials = in_cluster(environment, tmp_path)
    assert credentials.server == "https://[fd00::1]:443"
    assert credentials.token() == "abc"
    assert credentials.tls().ca_pem == b"CA"
    with pytest.raises(CredentialsError, match="not running in a pod"):
        in_cluster({}, tmp_path)


class TestRotation:
    """A file that is replaced while we run."""

    @pytest.fixture
    def file(self, tmp_path):
        path = tmp_path / "token"
        path.write_text("one")
        return path

    @pytest.fixture
    def now(self):
        return [100.0]

    @pytest.fixture
    def content(self, file, now):
        content = FileContent(file, monotonic=lambda: now[0])
        assert content.get() == b"one"
        return content

    def test_is_noticed_at_the_next_check(self, content, file, now):
        """Not before, so that requests do not pay for it."""
        file.write_text("two!")
        assert content.get() == b"one"
        now[0] += CHECK_EVERY_S
        assert content.get() == b"two!"

    def test_is_noticed_at_once_on_demand(self, content, file):
        """After a 401."""
        file.write_text("two!")
        content.recheck()
        assert content.get() == b"two!"

    def test_same_time_stamp_is_read_every_minute(self, content, file, now):
        """Some volumes keep the time stamp."""
        stat = file.stat()
        file.write_text("two")
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        now[0] += CHECK_EVERY_S
        assert content.get() == b"one"
        now[0] += READ_EVERY_S
        assert content.get() == b"two"

    @pytest.mark.parametrize("broken", ["missing", "empty"])
    def test_last_content_is_kept(self, content, file, now, broken):
        """A rotation in two steps does not lose the identity."""
        if broken == "missing":
            file.unlink()
        else:
            file.write_text(" \n")
        now[0] += CHECK_EVERY_S
        assert content.get() == b"one"


def test_tls_material_stays_the_same_value_until_it_changes(tmp_path):
    """Identity is how the transport knows that connections may stay."""
    now = [0.0]
    path = tmp_path / "ca"
    path.write_text("CA1")
    credentials = FileCredentials("https://x", ca=FileContent(path, monotonic=lambda: now[0]))
    first = credentials.tls()
    now[0] += 1000.0
    assert credentials.tls() is first
    path.write_text("CA2!")
    credentials.recheck()
    assert credentials.tls().ca_pem == b"CA2!"


def test_token_must_fit_a_header():
    """A token with a line break could smuggle headers."""
    credentials = FileCredentials("https://x", token=FileContent(None, b"a\r\nX-Evil: 1"))
    with pytest.raises(CredentialsError, match="printable ASCII"):
        credentials.token()
