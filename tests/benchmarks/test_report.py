"""What is made of measurements: ratios, tables, targets, the page; and that the measuring itself loses nothing."""

from __future__ import annotations

import asyncio

import pytest

from tests.benchmarks import evidence, report, request_counts, side_by_side, side_tables, targets
from tests.benchmarks.api import operation
from tests.benchmarks.bind_watch import BindWatch, WatchBrokeError
from tests.benchmarks.contestants import KUBE, KUBE_LIMITED, NULL, PODIUM
from tests.benchmarks.documents import SIDE_BY_SIDE, Document, NotAResultFileError, merged
from tests.benchmarks.one_run import running_pods
from tests.benchmarks.placements import problems
from tests.benchmarks.steady import growth_per_cent
from tests.benchmarks.workloads import ALL, BY_KEY
from tests.controlplane.cluster import ControlPlaneError


def result(contestant, run, rate, key="W1", wait_ms=100.0, start_s=1.0, **more):
    load = BY_KEY[key]
    cpu = {"scheduler": 0.5, "apiserver": 1.0, "etcd": 0.25}
    return {
        "workload": key, "title": load.title, "nodes": load.nodes, "init": load.init, "pods": load.pods,
        "contestant": contestant, "run": run, "pods_per_s": rate, "pods_per_s_sampled": rate, "pods_per_s_until_rest": rate,
        "start_to_first_bind_s": start_s, "wait_ms": {"50": wait_ms, "99": wait_ms * 2}, "cpu_ms_per_pod": cpu,
        "cpu_ms_per_pod_settled": cpu, "peak_rss_mb": 100.0, "requests_per_pod": 2.0, "bind_request_ms_p50": 3.0,
        "bind_request_ms_p99": 9.0, "events_posted": 1, "events_dropped": 0, "others_cores": 0.1, **more,
    }  # fmt: skip


def document(tmp_path, results, name="a"):
    made = Document.new(SIDE_BY_SIDE, tmp_path / f"{name}.json")
    made.add(*results)
    return Document.read(made.path)


# --- ratios ----------------------------------------------------------------------------------------------------------


def test_ratios_compare_runs_of_one_invocation_only(tmp_path):
    """The machine was ten times as busy the second time; mixed pairs would give 0.3 and 30."""
    first = document(tmp_path, [result(KUBE, 0, 100.0), result(PODIUM, 0, 300.0)], "a")
    second = document(tmp_path, [result(KUBE, 0, 10.0), result(PODIUM, 0, 20.0)], "b")

    assert side_tables.ratios(merged([first, second], SIDE_BY_SIDE), PODIUM, KUBE) == [3.0, 2.0]


@pytest.mark.parametrize(("key", "ratio"), [("W1", 2.0), ("W12", 5.0), ("W12r", 4.0)])
def test_a_workload_is_judged_by_what_it_asks(key, ratio):
    """Rate, median wait or start; above 1 always means that the first is faster."""
    kube = result(KUBE, 0, 100.0, key, wait_ms=50.0, start_s=8.0)
    podium = result(PODIUM, 0, 200.0, key, wait_ms=10.0, start_s=2.0)

    assert side_tables.ratios([kube, podium], PODIUM, KUBE) == [ratio]


def test_the_row_with_default_limits_stands_with_its_workload():
    """It has fewer pods, which must not make a group of its own without anything to compare with."""
    results = [result(KUBE, 0, 100.0), result(PODIUM, 0, 300.0), result(KUBE_LIMITED, 0, 50.0, pods=1_000)]

    groups = side_tables.groups(results)

    assert [len(mine) for mine in groups.values()] == [3]
    assert KUBE_LIMITED in side_tables.rate_table(results)


def test_invalid_runs_are_named_and_not_counted():
    """A voided run must not vanish from the report."""
    broken = {**result(PODIUM, 1, 0.0), "problem": "2 placements are wrong"}

    text = side_tables.report([result(KUBE, 0, 100.0), result(PODIUM, 0, 300.0), broken])

    assert "INVALID: W1 podium run 1: 2 placements are wrong" in text


def test_resuming_measures_what_is_missing_and_what_was_invalid(tmp_path):
    """Two runs of W1 are there and one is void; one more of three is asked for."""
    broken = {**result(PODIUM, 2, 0.0), "problem": "the scheduler ended"}
    document(tmp_path, [result(PODIUM, 0, 300.0), result(PODIUM, 1, 300.0), broken])

    resumed = side_by_side.new_document(tmp_path / "a.json", resume=True)

    assert len(resumed.results) == 2
    assert side_by_side.is_measured(resumed, BY_KEY["W1"], 2)
    assert not side_by_side.is_measured(resumed, BY_KEY["W1"], 3)
    assert not side_by_side.is_measured(resumed, BY_KEY["W1"].scaled(0.5), 2)


def test_a_set_up_that_fails_is_an_invalid_result_and_not_the_end(tmp_path, monkeypatch):
    """Of an hour of measuring, one control plane that does not start must cost its own workload only."""

    def fail():
        raise ControlPlaneError("etcd ended while starting")

    monkeypatch.setattr(side_by_side.ControlPlane, "start", fail)
    made = document(tmp_path, [result(PODIUM, 0, 300.0)])

    side_by_side.measure(BY_KEY["W3"], 1, [KUBE, PODIUM], made)

    assert [r["workload"] for r in side_tables.valid(made.results)] == ["W1"]
    assert "INVALID: W3 set-up" in side_tables.report(made.results)
    assert "etcd ended while starting" in side_tables.report(made.results)


# --- targets and page ------------------------------------------------------------------------------------------------


def row(table, what):
    return next(line for line in table.splitlines() if line.startswith(f"| {what}"))


@pytest.mark.parametrize(
    ("rates", "cells"),
    [
        pytest.param((100.0, 300.0, 350.0), ["3.00 times", "0.86 of null", "| yes"], id="both parts reached"),
        pytest.param((100.0, 300.0, 400.0), ["3.00 times", "0.75 of null", "| **no**"], id="too far from null"),
        pytest.param((200.0, 300.0, 310.0), ["1.50 times", "| **no**"], id="too slow"),
    ],
)
def test_target_of_plain_pods(rates, cells):
    """Two and a half times kube-scheduler, and four fifths of null."""
    results = [result(name, 0, rate) for name, rate in zip((KUBE, PODIUM, NULL), rates, strict=True)]

    found = row(targets.table({SIDE_BY_SIDE: results}), "W1 plain")

    assert all(cell in found for cell in cells), found


def test_a_small_cluster_decides_nothing():
    """The figure is shown, neither reached nor missed."""
    results = [result(name, 0, rate, nodes=30) for name, rate in ((KUBE, 100.0), (PODIUM, 900.0), (NULL, 900.0))]

    found = row(targets.table({SIDE_BY_SIDE: results}), "W1 plain")

    assert "9.00 times" in found
    assert "yes" not in found
    assert "no**" not in found


def test_page_keeps_what_is_written_by_hand_and_earlier_files(tmp_path):
    """Two invocations, one after the other, and a remark in between."""
    docs = tmp_path / "docs"
    plain = [result(KUBE, 0, 100.0), result(PODIUM, 0, 300.0)]
    report.write_docs(docs, [document(tmp_path, plain, "first")])
    page = docs / "performance.md"
    page.write_text(page.read_text().replace(report.COSTS, "The dearest part is X."))

    spread = [result(KUBE, 0, 50.0, "W3"), result(PODIUM, 0, 400.0, "W3")]
    report.write_docs(docs, [document(tmp_path, spread, "second")])

    text = page.read_text()
    assert "The dearest part is X." in text
    assert text.count("Not written yet") == 0
    assert "W1 plain" in text
    assert "8.00 times (8.00 … 8.00) at 2,000 nodes" in text


def test_files_that_are_no_results_are_refused(tmp_path):
    """A directory may hold other JSON, too."""
    (tmp_path / "other.json").write_text('{"a": 1}')

    with pytest.raises(NotAResultFileError, match=r"other\.json"):
        Document.read(tmp_path / "other.json")


# --- workloads and requests ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workload", ALL, ids=lambda w: w.key)
def test_scaled_workloads_are_as_full_as_the_original(workload):
    """Otherwise a pod that must wait or evict would find a free place."""
    small = workload.scaled(0.02)

    assert small.nodes >= 10
    assert small.pods >= 10
    assert small.init / small.nodes == pytest.approx(workload.init / workload.nodes, abs=0.1)


@pytest.mark.parametrize("scale", [0.1, 0.02])
@pytest.mark.parametrize("workload", ALL, ids=lambda w: w.key)
def test_what_runs_beforehand_breaks_no_rule(workload, scale):
    """Else every run would be void, whatever a scheduler does."""
    load = workload.scaled(scale)
    nodes = [load.node(i) for i in range(load.nodes)]
    count = load.init // (load.per_namespace or load.init or 1) + 1
    labels = {"team": "devops"}
    namespaces = [{"metadata": {"name": f"init-{i}", "labels": labels}} for i in range(count)]
    namespaces += [{"metadata": {"name": name, "labels": labels}} for name in ("init", "run")]

    pods = [{**pod, "status": {}} for pod in running_pods(load, "run" if load.reset else "")]

    assert problems(nodes, pods, namespaces) == []


def test_evidence_covers_every_workload_at_sizes_that_fit():
    """A size at which not all pods have room would never end; the time that all steps take is the time promised."""
    assert {step.workload(1.0).key for step in evidence.STEPS} == set(BY_KEY)
    assert sum(step.minutes for step in evidence.STEPS) <= evidence.MINUTES


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("POST", "/api/v1/namespaces/a/pods", "POST pods"),
        ("GET", "/api/v1/pods?limit=1", "LIST pods"),
        ("GET", "/api/v1/namespaces/a/pods/b", "GET pods"),
        ("DELETE", "/api/v1/namespaces/a/pods/b?gracePeriodSeconds=0", "DELETE pods"),
        ("DELETE", "/apis/events.k8s.io/v1/namespaces/a/events", "DELETECOLLECTION events"),
        ("POST", "/api/v1/namespaces", "POST namespaces"),
        ("DELETE", "/api/v1/nodes/n", "DELETE nodes"),
    ],
)
def test_own_requests_are_named_as_the_server_counts_them(method, path, name):
    """So that they can be subtracted."""
    assert operation(method, path) == name


def test_requests_of_the_harness_are_not_the_scheduler_s():
    """Ten binds and ten events for ten pods; five pods that the harness made meanwhile, and health checks."""

    def samples(binds, events, pods, health):
        return {
            request_counts.REQUESTS: [
                ({"verb": "POST", "resource": "pods", "subresource": "binding"}, binds),
                ({"verb": "POST", "resource": "events"}, events),
                ({"verb": "POST", "resource": "pods"}, pods),
                ({"verb": "GET", "resource": ""}, health),
            ],
            request_counts.DURATIONS: [],
        }

    found = request_counts.figures(samples(5, 5, 50, 1), samples(15, 15, 55, 90), {"POST pods": 5}, 10)

    assert found["requests"] == {"POST events": 10, "POST pods/binding": 10}
    assert found["requests_per_pod"] == 2.0
    assert found["events_posted"] == 10


# --- watching and memory ---------------------------------------------------------------------------------------------


def event(kind, name, version):
    text = f'{{"type":"{kind}","object":{{"metadata":{{"name":"{name}","resourceVersion":"{version}"}}}}}}\n'
    return f"{len(text):x}\r\n{text}\r\n".encode()


def watch_of(*answers):
    """Let a server answer one connection after the other with these events; returns the watch and what was asked."""

    async def scenario():
        asked = []

        async def serve(reader, writer):
            request = await reader.readuntil(b"\r\n\r\n")
            asked.append(request.split(b"resourceVersion=")[1].split(b"&")[0].decode())
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + b"".join(answers[len(asked) - 1]))
            if len(asked) < len(answers):
                writer.write(b"0\r\n\r\n")
                await writer.drain()
            else:
                await reader.read()  # the last watch stays open until the client ends it
            writer.close()
            await writer.wait_closed()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            watch = BindWatch(server.sockets[0].getsockname()[1], None, "ns", "m-", 2)
            await watch.start("7")
            try:
                assert await watch.wait(5.0)
            finally:
                await watch.stop()
                await asyncio.sleep(0.05)  # connections end
        return watch, asked

    return asyncio.run(scenario())


def test_watch_goes_on_where_the_server_ended_it():
    """A busy API server ends watches that do not keep up; the second one begins at the last event of the first."""
    watch, asked = watch_of([event("ADDED", "m-1", 12), event("ADDED", "x-1", 13)], [event("ADDED", "m-2", 14)])

    assert asked == ["7", "13"]
    assert sorted(watch.bound_s) == ["m-1", "m-2"]
    assert watch.num_reopened == 1


def test_watch_that_has_lost_events_voids_the_run():
    """The server says that it no longer has the version; going on would count too few binds."""
    with pytest.raises(WatchBrokeError, match="ERROR"):
        watch_of([event("ERROR", "", 0)])


@pytest.mark.parametrize(
    ("last_mb", "growth"), [pytest.param(100.0, 0.0, id="flat"), pytest.param(110.0, 9.5, id="a tenth more")]
)
def test_growth_is_a_slope_over_what_comes_after_the_warm_up(last_mb, growth):
    """The first tenth, in which memory fills, does not count."""
    samples = [(0, 10.0), (1_000, 50.0), (2_000, 90.0)]
    samples += [(i * 1_000, 100 + (last_mb - 100) * (i - 3) / 17) for i in range(3, 21)]

    assert growth_per_cent(samples) == pytest.approx(growth, abs=0.1)
