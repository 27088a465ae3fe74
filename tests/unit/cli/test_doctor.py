"""``podium doctor``: what is looked at, what is said of it, exit codes. The API server is the embedded one."""

import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest

from scheduler.app.rights import LIVE_PROFILE_RIGHTS, RIGHTS
from scheduler.cli import diagnosis
from scheduler.cli.diagnosis import OLDEST_SERVER
from scheduler.cli.doctor import AS_DEPLOYED, doctor
from scheduler.config.load import load
from scheduler.kube.errors import ApiError, KubeError
from scheduler.testing.apiserver import EmbeddedApiServer
from scheduler.testing.apiserver import http as embedded
from tests.controlplane.cluster import REPOSITORY

_HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
_OPTIONS = "apiVersion: podium.dev/v1alpha1\nkind: SchedulerOptions\n"
LONG_S = 3600


@pytest.fixture
def server():
    with EmbeddedApiServer.in_thread() as started:
        yield started


@pytest.fixture
def asked(monkeypatch):
    """What the reviews asked for, and a set of those that are refused: ``get pods``, ``create pods/binding``."""
    seen, refused = [], set()
    answer = embedded.review

    def review(group, plural, request):
        if plural == "selfsubjectaccessreviews":
            attributes = request["spec"]["resourceAttributes"]
            seen.append(attributes)
            sub = f"/{attributes['subresource']}" if "subresource" in attributes else ""
            if f"{attributes['verb']} {attributes['resource']}{sub}" in refused:
                return {"kind": "SelfSubjectAccessReview", "status": {"allowed": False}}
        return answer(group, plural, request)

    monkeypatch.setattr(embedded, "review", review)
    review.seen, review.refused = seen, refused
    return review


@pytest.fixture
def run(server, tmp_path, capsys):
    """Run the command; return its exit code and its checks."""
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(server.kubeconfig())

    def run(*flags, config=None, options=None):
        words = ["--kubeconfig", str(kubeconfig), "-o", "json", *flags]
        for name, text in (("config", config), ("options", options)):
            if text is not None:
                (tmp_path / name).write_text(text)
                words.append(f"--{name}={tmp_path / name}")
        code = doctor(words, mounted=tmp_path / "nothing")
        return code, json.loads(capsys.readouterr().out)

    return run


def add_lease(server, name="podium", *, holder="podium-1_x", age_s=0.0, duration_s=LONG_S, transitions=3):
    renewed = datetime.now(UTC) - timedelta(seconds=age_s)
    spec = {
        "holderIdentity": holder,
        "leaseDurationSeconds": duration_s,
        "renewTime": renewed.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "leaseTransitions": transitions,
    }
    metadata = {"name": name, "namespace": "kube-system"}
    server.create({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec})


def add_pod(server, name, scheduler):
    server.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"schedulerName": scheduler, "containers": [{"name": "c", "image": "i"}]},
        }
    )


def of(report, check):
    return [found for found in report["checks"] if found["check"] == check]


def the(report, check):
    (found,) = of(report, check)
    return found


# --- all is well -----------------------------------------------------------------------------------------------------


def test_everything_is_ok(server, run):
    """Exit 0, a line for each right."""
    add_lease(server)
    code, report = run()

    assert (code, report["ok"]) == (0, True)
    assert {found["status"] for found in report["checks"]} == {"ok"}
    assert len(of(report, "right")) == len(RIGHTS)
    assert the(report, "identity")["subject"] == "podium-embedded"
    assert the(report, "api server")["subject"] == server.url
    assert "Kubernetes v1.36.3" in the(report, "api server")["text"]
    assert the(report, "lease")["text"].startswith("podium-1_x leads, renewed ")


def test_without_a_configuration_it_is_the_deployed_one():
    """What the manifests mount."""
    deployed = (REPOSITORY / "deploy" / "base" / "config.yaml").read_bytes()
    assert load(AS_DEPLOYED.encode()) == load(deployed)


def test_the_oldest_server_is_the_chart_s():
    major, minor = OLDEST_SERVER
    chart = (REPOSITORY / "charts" / "podium" / "Chart.yaml").read_text()
    assert f'kubeVersion: ">={major}.{minor}.0-0"' in chart


def test_an_older_server(server, run, monkeypatch):
    add_lease(server)
    monkeypatch.setattr(embedded, "version", lambda: {"major": "1", "minor": "31", "gitVersion": "v1.31.9"})
    code, report = run()

    assert (code, the(report, "api server")["status"]) == (1, "warning")
    assert "v1.31.9, older than 1.32" in the(report, "api server")["text"]


def test_a_server_that_does_not_tell_its_version(server, run, monkeypatch):
    """403, as where nobody but administrators may see it; the rest is looked at."""
    add_lease(server)

    def refuse():
        raise embedded.ApiStatusError(403, "Forbidden", "no\n\x1b[2J")

    monkeypatch.setattr(embedded, "version", refuse)
    code, report = run()

    assert (code, the(report, "api server")["status"]) == (1, "warning")
    assert the(report, "api server")["text"] == "its version may not be read: 403 Forbidden: no [2J"
    assert len(of(report, "right")) == len(RIGHTS)


# --- rights ----------------------------------------------------------------------------------------------------------


def test_a_missing_right_is_named(server, run, asked):
    """With what it is for, what is lost and where to grant it; exit 1."""
    add_lease(server)
    asked.refused.add("create pods/binding")
    code, report = run()

    assert (code, report["ok"]) == (1, False)
    (missing,) = [found for found in report["checks"] if found["status"] != "ok"]
    assert missing == {
        "check": "right",
        "status": "missing",
        "subject": "create pods/binding",
        "text": "binding. Without it: no pod is bound; each has the refusal in its events. "
        "Grant it in the scheduler's ClusterRole",
        "right": "create pods/binding",
    }


@pytest.mark.parametrize(
    ("refused", "subject", "right"),
    [
        pytest.param({"list nodes", "watch nodes"}, "list,watch nodes", "list,watch nodes", id="both verbs"),
        pytest.param({"watch nodes"}, "watch nodes", "watch nodes", id="one of two verbs"),
        pytest.param(
            {"update leases"},
            "update leases.coordination.k8s.io/podium -n kube-system",
            "update leases.coordination.k8s.io",
            id="on one object",
        ),
    ],
)
def test_how_missing_rights_are_named(server, run, asked, refused, subject, right):
    add_lease(server)
    asked.refused |= refused
    _, report = run()

    (missing,) = [found for found in report["checks"] if found["status"] != "ok"]
    assert (missing["subject"], missing["right"]) == (subject, right)


def test_what_is_asked(server, run, asked):
    """Namespaces and names as the roles have them; a sub-resource is a field of its own."""
    run(config=_HEADER + "leaderElection: {resourceName: mine, resourceNamespace: there}\n")
    at = {}
    for attributes in asked.seen:
        words = (attributes["verb"], attributes["resource"], attributes.get("subresource", ""))
        at[words] = (attributes.get("namespace", ""), attributes.get("name", ""))

    assert len(asked.seen) == len(at) == sum(len(right.verbs) for right in RIGHTS)
    assert {words: place for words, place in at.items() if any(place)} == {
        ("create", "leases", ""): ("there", ""),
        ("get", "leases", ""): ("there", "mine"),
        ("update", "leases", ""): ("there", "mine"),
        ("get", "configmaps", ""): ("kube-system", "extension-apiserver-authentication"),
    }
    assert {words for words in at if words[2]} == {("create", "pods", "binding"), ("patch", "pods", "status")}


_DISABLED = "{multiPoint: {disabled: [{name: DefaultPreemption}, {name: VolumeBinding}]}}"


def test_rights_that_the_configuration_does_not_need(run, asked):
    """A profile without the plugin, no election: neither asked for nor missed."""
    text = f"leaderElection: {{leaderElect: false}}\nprofiles: [{{schedulerName: p, plugins: {_DISABLED}}}]\n"
    asked.refused |= {"delete pods", "patch persistentvolumes", "get leases", "update leases", "create leases"}
    code, report = run(config=_HEADER + text)

    assert (code, report["ok"]) == (0, True)
    texts = {found["subject"]: found["text"] for found in of(report, "right")}
    assert texts["delete pods"] == "not needed: no profile enables DefaultPreemption"
    assert texts["patch persistentvolumes"] == "not needed: no profile enables VolumeBinding"
    assert not any("leases" in subject for subject in texts)
    assert "leader election is off" in the(report, "lease")["text"]


def test_plugins_of_packages_that_are_not_installed_here(server, run, asked):
    """The configuration is the daemon's; its packages need not be on the workstation."""
    asked.refused.add("delete pods")
    for plugins in ("{multiPoint: {enabled: [{name: TheirOwn}]}}", "{queueSort: {enabled: [{name: TheirOwn}]}}"):
        _, report = run(config=_HEADER + f"profiles: [{{plugins: {plugins}}}]\n")
        assert [found["right"] for found in of(report, "right") if found["status"] != "ok"] == ["delete pods"]


def test_live_profiles_need_more(server, run, asked):
    add_lease(server)
    asked.refused.add("patch schedulerprofiles/status")
    code, report = run(options=_OPTIONS + "liveProfiles: {enabled: true}\n")

    assert code == 1
    assert len(of(report, "right")) == len(RIGHTS) + len(LIVE_PROFILE_RIGHTS)
    (missing,) = [found for found in report["checks"] if found["status"] != "ok"]
    assert missing["right"] == "patch schedulerprofiles/status.scheduling.podium.dev"


def test_live_profiles_may_enable_what_the_file_does_not(server, run, asked):
    asked.refused.add("delete pods")
    profiles = f"profiles: [{{schedulerName: p, plugins: {_DISABLED}}}]\n"
    _, report = run(config=_HEADER + profiles, options=_OPTIONS + "liveProfiles: {enabled: true}\n")

    assert [found["right"] for found in of(report, "right") if found["status"] != "ok"] == ["delete pods"]


# --- lease -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lease", "words"),
    [
        pytest.param(None, "nobody leads, and nobody has: the Lease does not exist", id="absent"),
        pytest.param(
            {"holder": ""}, "nobody leads: the last leader has given the Lease back (3 changes", id="released"
        ),
        pytest.param(
            {"age_s": LONG_S + 50, "duration_s": 15, "transitions": 1},
            "nobody leads: the Lease of podium-1_x has expired, it was renewed 36",
            id="expired",
        ),
    ],
)
def test_nobody_leads(server, run, lease, words):
    """A warning, and so exit 1."""
    if lease is not None:
        add_lease(server, **lease)
    code, report = run()

    assert (code, the(report, "lease")["status"]) == (1, "warning")
    assert words in the(report, "lease")["text"]


def test_the_lease_is_the_configured_one(server, run):
    add_lease(server, "mine", holder="somebody")
    code, report = run(config=_HEADER + "leaderElection: {resourceName: mine}\nprofiles: [{schedulerName: p}]\n")

    assert (code, the(report, "lease")["subject"]) == (0, "kube-system/mine")
    assert the(report, "configuration")["text"] == "profiles p; Lease kube-system/mine"


def test_what_others_have_written_cannot_command_a_terminal(server, run):
    add_lease(server, holder="\x1b[2Jme")
    add_pod(server, "evil", "a\nmissing  right")
    _, report = run()

    assert r"'\x1b[2Jme' leads" in the(report, "lease")["text"]
    assert r"'a\nmissing  right' 1" in of(report, "pods")[-1]["text"]


# --- other schedulers ------------------------------------------------------------------------------------------------


def test_pending_pods_by_name(server, run):
    """A misspelt name is seen among those that are not ours."""
    add_lease(server)
    for number, name in enumerate(["podium", "podium", "Podium", "default-scheduler", "default-scheduler"]):
        add_pod(server, f"p{number}", name)
    code, report = run()

    assert code == 0
    assert [(found["subject"], found["text"]) for found in of(report, "pods")] == [
        ("podium", "2 pending"),
        ("other schedulers", "3 pending: default-scheduler 2, Podium 1. Is one of these names meant to be ours?"),
    ]


def test_pending_pods_of_live_profiles(server, run):
    """Their names do not stand in the configuration."""
    add_lease(server)
    add_pod(server, "p", "batch")
    _, report = run(options=_OPTIONS + "liveProfiles: {enabled: true}\n")

    text = of(report, "pods")[-1]["text"]
    assert text == "1 pending: batch 1. Is one of these names meant to be ours? (Live profiles count here.)"


def test_many_names(server, run):
    """Ten are listed."""
    for number in range(12):
        add_pod(server, f"p{number}", f"s{number:02}")
    _, report = run()

    text = of(report, "pods")[-1]["text"]
    assert text.startswith("12 pending: s00 1, s01 1,")
    assert "s09 1, and 2 more names." in text


_DEFAULT = _HEADER + "leaderElection: {resourceName: podium}\nprofiles: [{schedulerName: default-scheduler}]\n"


def test_kube_scheduler_serves_the_same_name(server, run):
    add_lease(server)
    add_lease(server, "kube-scheduler", holder="master-1_y")
    code, report = run(config=_DEFAULT)

    assert (code, the(report, "profile")["status"]) == (1, "warning")
    assert the(report, "profile")["text"].startswith(
        "kube-scheduler runs (master-1_y holds Lease kube-system/kube-scheduler)"
    )


@pytest.mark.parametrize(
    ("lease", "config"),
    [
        pytest.param(None, _DEFAULT, id="there is none"),
        pytest.param({"age_s": LONG_S, "duration_s": 15}, _DEFAULT, id="it is gone"),
        pytest.param({}, _HEADER, id="the lease is ours"),
        pytest.param({}, _DEFAULT.replace("default-scheduler", "podium"), id="another name"),
    ],
)
def test_kube_scheduler_does_not_matter(server, run, lease, config):
    add_lease(server)
    if lease is not None:
        add_lease(server, "kube-scheduler", **lease)
    code, report = run(config=config)

    assert code == 0, report


@pytest.mark.parametrize(("status", "code"), [pytest.param(403, 0, id="not ours"), pytest.param(500, 1, id="broken")])
def test_kube_scheduler_cannot_be_seen(server, run, monkeypatch, status, code):
    """The deployed rights end at our own lease: that is said, and nothing is wrong with it."""
    look = diagnosis.lease_seen

    async def seen(transport, namespace, name, *, timeout_s):
        if name == "kube-scheduler":
            raise ApiError(status, "", "refused")
        return await look(transport, namespace, name, timeout_s=timeout_s)

    monkeypatch.setattr(diagnosis, "lease_seen", seen)
    add_lease(server)
    found, report = run(config=_DEFAULT)

    assert found == code
    assert the(report, "profile")["text"].endswith(
        f"cannot be seen from its Lease kube-system/kube-scheduler: {status} : refused"
    )


# --- text, arguments, errors -----------------------------------------------------------------------------------------


def test_text(server, tmp_path, capsys, asked):
    """Columns; the mounted configuration counts where none is named."""
    add_lease(server, "l")
    asked.refused.add("get pods")
    (tmp_path / "kubeconfig").write_text(server.kubeconfig())
    (tmp_path / "config.yaml").write_text(
        _HEADER + "leaderElection: {resourceName: l}\nprofiles: [{schedulerName: mine}]\n"
    )
    (tmp_path / "options.yaml").write_text(_OPTIONS + "liveProfiles: {enabled: true}\n")
    code = doctor(["--kubeconfig", str(tmp_path / "kubeconfig")], mounted=tmp_path)
    lines = capsys.readouterr().out.splitlines()

    assert code == 1
    assert lines[0].split() == f"ok configuration {tmp_path}/config.yaml profiles mine; Lease kube-system/l".split()
    (missing,) = [line for line in lines if line.startswith("missing")]
    column = lines[0].index("profiles")
    assert missing[:column].split() == ["missing", "right", "get", "pods"]
    assert missing[column:].startswith("reading back a binding without an answer. Without it: such a binding is ")
    assert len([line for line in lines if " right " in line[:column]]) == len(RIGHTS) + len(LIVE_PROFILE_RIGHTS)


@pytest.mark.parametrize(
    "words",
    [
        ["file.yaml"],
        ["--no-such-flag"],
        ["--output", "yaml"],
        ["--request-timeout", "soon"],
        ["--request-timeout", "0"],
        ["--as-group", "g"],
        ["--context", "c"],
        ["--conf", "abbreviated"],
    ],
    ids=" ".join,
)
def test_usage(words, capsys):
    """Exit 2."""
    with pytest.raises(SystemExit) as ended:
        doctor(words)
    assert ended.value.code == 2
    assert "usage: podium doctor" in capsys.readouterr().err


def test_help(capsys):
    with pytest.raises(SystemExit) as ended:
        doctor(["--help"])
    assert ended.value.code == 0
    assert "--as USER" in capsys.readouterr().out


_KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
clusters: [{{name: c, cluster: {{server: "{url}"}}}}]
contexts: [{{name: c, context: {{cluster: c}}}}]
"""


@pytest.mark.parametrize(
    ("text", "flags", "words"),
    [
        pytest.param("{", (), "not valid YAML", id="kubeconfig that is no YAML"),
        pytest.param("a: b", (), "current-context is not set", id="kubeconfig without a context"),
        pytest.param(_KUBECONFIG.format(url="http://127.0.0.1:9"), (), "no connection", id="nobody listens"),
        pytest.param(_KUBECONFIG.format(url="http://127.0.0.1:9"), ("--as=a\nb",), "impersonated", id="not a name"),
        pytest.param("", ("--config=/no/such/file",), "open /no/such/file: no such file", id="no configuration"),
        pytest.param("", ("--options=/no/such/file",), "open /no/such/file: no such file", id="no options"),
    ],
)
def test_what_cannot_be_asked(tmp_path, capsys, text, flags, words):
    """One line on standard error, exit 1."""
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    code = doctor(["--kubeconfig", str(path), *flags], mounted=tmp_path)
    out, err = capsys.readouterr()

    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("podium doctor: ")
    assert words in err


def test_outside_of_a_pod_it_asks_for_a_kubeconfig(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert doctor([], mounted=tmp_path) == 1
    assert "name a kubeconfig" in capsys.readouterr().err


def test_the_server_does_not_know_us(server, tmp_path, capsys, monkeypatch):
    """401 at the first request."""

    def refuse():
        raise embedded.ApiStatusError(401, "Unauthorized", "Unauthorized")

    monkeypatch.setattr(embedded, "version", refuse)
    (tmp_path / "kubeconfig").write_text(server.kubeconfig())
    code = doctor(["--kubeconfig", str(tmp_path / "kubeconfig")], mounted=tmp_path)

    assert code == 1
    assert (
        capsys.readouterr().err == "podium doctor: the credentials are not accepted: 401 Unauthorized: Unauthorized\n"
    )


def test_a_second_failure_leaves_no_traceback_in_the_log():
    """It comes while the first one ends the program; nobody would have waited for it."""
    told = []

    async def fail(name, after_s):
        try:
            await asyncio.sleep(after_s)
        finally:
            raise KubeError(name)

    async def ask():
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: told.append(context["message"]))
        return await diagnosis._all([fail("first", 0.0), fail("second", 0.05)])

    with pytest.raises(KubeError, match="first"):
        asyncio.run(ask())
    assert told == []
