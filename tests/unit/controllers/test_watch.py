"""kopf on the embedded API server: it tells of changes, leaves signals and objects alone, and is started again."""

import pwd
import signal
import ssl
import subprocess
import sys
import threading
import time

import pytest
import trustme

from scheduler.controllers.watch import ProfileWatch, ssl_context
from scheduler.kube.credentials import FileCredentials, TlsMaterial
from scheduler.testing.apiserver import EmbeddedApiServer

NEWS_S = 20.0


def manifest(name):
    return {
        "apiVersion": "scheduling.podium.dev/v1alpha1",
        "kind": "SchedulerProfile",
        "metadata": {"name": name},
        "spec": {"schedulerName": name},
    }


class News:
    """Counts what the watch tells."""

    def __init__(self):
        self.changes = 0
        self.failures = 0
        self._told = threading.Condition()

    def change(self):
        with self._told:
            self.changes += 1
            self._told.notify_all()

    def failure(self):
        with self._told:
            self.failures += 1
            self._told.notify_all()

    def wait(self, what):
        with self._told:
            assert self._told.wait_for(what, NEWS_S), vars(self)


@pytest.fixture
def news():
    return News()


@pytest.fixture
def server():
    with EmbeddedApiServer.in_thread() as made:
        yield made


@pytest.fixture
def start(news):
    started = []

    def make(url):
        watch = ProfileWatch(FileCredentials(url), on_change=news.change, on_failure=news.failure)
        started.append(watch)
        watch.start()
        return watch

    yield make
    for watch in started:
        watch.stop()
        assert not watch._thread.is_alive(), "kopf did not end"


def test_it_tells_of_what_is_there_and_of_every_change_but_status(server, start, news):
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    server.create(manifest("there"))
    watch = start(server.url)
    news.wait(lambda: news.changes == 1)
    server.create(manifest("new"))
    news.wait(lambda: news.changes == 2)
    server.patch("schedulerprofiles", "new", {"spec": {"percentageOfNodesToScore": 5}})
    news.wait(lambda: news.changes == 3)
    server.patch("schedulerprofiles", "new", {"status": {"podsScheduled": 5}}, subresource="status")
    server.delete("schedulerprofiles", "there")
    news.wait(lambda: news.changes == 4)
    time.sleep(0.2)
    assert (news.changes, news.failures, watch.restarts, watch.is_running) == (4, 0, 0, True)
    assert {number: signal.getsignal(number) for number in before} == before
    (left,) = server.list("schedulerprofiles")
    assert left["metadata"].keys() & {"finalizers", "annotations"} == set()
    assert server.list("events") == []


def test_the_user_may_be_unknown_to_the_system(server, start, news, monkeypatch):
    """As in a container that runs under a number of its own."""

    def unknown(number):
        raise KeyError(f"getpwuid(): uid not found: {number}")

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    server.create(manifest("there"))
    watch = start(server.url)
    news.wait(lambda: news.changes == 1)
    assert watch.problem == ""


def test_a_cut_stream_is_opened_again(server, start, news):
    start(server.url)
    server.create(manifest("one"))
    news.wait(lambda: news.changes == 1)
    server.close_watches()
    server.create(manifest("two"))
    news.wait(lambda: news.changes >= 2)


def test_it_is_started_again_when_it_ends(server, start, news, tmp_path):
    """Here for lack of a token; as soon as it is asked again, and else after a pause that grows."""
    token = tmp_path / "token"
    watch = ProfileWatch(_token_credentials(server.url, token), on_change=news.change, on_failure=news.failure)
    watch.start()
    try:
        news.wait(lambda: news.failures == 1)
        assert not watch.is_running
        assert "cannot read" in watch.problem or "Activity" in watch.problem, watch.problem
        token.write_text("secret")
        server.create(manifest("one"))
        watch.start()
        news.wait(lambda: news.changes == 1)
        assert (watch.is_running, watch.problem, watch.restarts) == (True, "", 1)
    finally:
        watch.stop()


def _token_credentials(url, path):
    from scheduler.kube.credentials import FileContent

    return FileCredentials(url, token=FileContent(path))


def test_kopf_is_imported_only_when_the_watch_starts_and_without_the_official_client():
    """A daemon without live profiles must not pay for it, and one with them not for the client, 42 MB of classes."""
    code = """
import sys, scheduler.app.daemon, scheduler.app.live_profiles
from scheduler.controllers.kopf_import import import_kopf
assert "kopf" not in sys.modules
import_kopf()
assert "kopf" in sys.modules and "kubernetes" not in sys.modules
import kubernetes.client
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_tls_contexts_know_whom_to_trust_and_who_we_are():
    """Also where no file can be written: the client's key is shown to the TLS library in memory."""
    authority = trustme.CA()
    client = authority.issue_cert("client@example.org")
    pem = client.private_key_and_cert_chain_pem.bytes()
    context = ssl_context(TlsMaterial(authority.cert_pem.bytes(), pem))
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert len(context.get_ca_certs()) == 1
    careless = ssl_context(TlsMaterial(insecure=True))
    assert (careless.verify_mode, careless.check_hostname) == (ssl.CERT_NONE, False)
    with pytest.raises(ssl.SSLError):
        ssl_context(TlsMaterial(client_pem=b"nonsense"))
