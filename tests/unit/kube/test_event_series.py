"""Events: their form on the wire and how equal ones become a series."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.kube.event_series import (
    MAX_NOTE_BYTES,
    Event,
    Reference,
    SeriesBook,
    core_body,
    cut_note,
    event_name,
    events_body,
    micro_time,
)

POD = Reference("Pod", "v1", "shop", "web", "uid-1", "17")
T0 = 1769847300_123_456_789
MINUTE = 60_000_000_000


def event(note="no", time_ns=T0, regarding=POD, reason="FailedScheduling", related=None):
    return Event(regarding, related, "podium", "podium-host", "Warning", reason, "Scheduling", note, time_ns)


def encoded(body):
    """Return a body as the API server reads it."""
    return json.loads(msgspec.json.encode(body))


def test_first_is_created_second_patches_later_ones_are_only_counted():
    """The note is not part of the key: a changed text does not break the series (parity)."""
    book = SeriesBook()
    post = book.observe(event("first"))
    assert post.count == 1
    assert book.observe(event("second", T0 + MINUTE)) is post
    assert post.count == 2
    assert book.observe(event("third", T0 + 2 * MINUTE)) is None
    assert (post.count, post.last_ns) == (3, T0 + 2 * MINUTE)
    assert events_body(post)["note"] == "first"


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(event(reason="Scheduled"), id="other reason"),
        pytest.param(event(regarding=msgspec.structs.replace(POD, uid="uid-2")), id="other pod of the same name"),
        pytest.param(event(regarding=msgspec.structs.replace(POD, resource_version="18")), id="changed pod"),
        pytest.param(event(related=POD), id="other related object"),
    ],
)
def test_different_events_are_different_series(other):
    book = SeriesBook()
    book.observe(event())
    assert book.observe(other).count == 1


def test_core_events_are_told_apart_by_their_note():
    """ "became leader" and "stopped leading" differ in nothing else."""
    book = SeriesBook()
    book.observe(msgspec.structs.replace(event("a became leader"), is_core=True))
    assert book.observe(msgspec.structs.replace(event("a stopped leading"), is_core=True)).count == 1


def test_live_series_are_refreshed_every_30_minutes():
    book = SeriesBook()
    book.due(T0)
    post = book.observe(event(time_ns=T0))
    for minute in range(5, 35, 5):
        book.observe(event(time_ns=T0 + minute * MINUTE))
        posts = book.due(T0 + minute * MINUTE)
        assert posts == ([post] if minute == 30 else [])


def test_series_without_news_for_6_minutes_is_written_a_last_time_and_forgotten():
    book = SeriesBook()
    book.due(T0)
    post = book.observe(event())
    book.observe(event())
    post.written_count = 2
    book.observe(event())
    assert book.due(T0 + 5 * MINUTE) == []
    assert book.due(T0 + 6 * MINUTE) == [post]
    assert len(book) == 0
    assert book.observe(event(time_ns=T0 + 7 * MINUTE)).count == 1


def test_single_event_is_forgotten_silently_after_6_minutes():
    book = SeriesBook()
    book.due(T0)
    book.observe(event())
    assert book.due(T0 + 6 * MINUTE) == []
    assert len(book) == 0


def test_number_of_series_is_bounded_and_the_oldest_goes():
    book = SeriesBook(max_series=2)
    pods = [msgspec.structs.replace(POD, uid=f"uid-{i}") for i in range(3)]
    for pod in pods:
        book.observe(event(regarding=pod))
    assert len(book) == 2
    assert book.observe(event(regarding=pods[1])).count == 2
    assert book.observe(event(regarding=pods[0])).count == 1


def test_events_body_is_what_the_api_requires():
    post = SeriesBook().observe(event(related=msgspec.structs.replace(POD, name="big")))
    assert encoded(events_body(post)) == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"web.{T0:x}", "namespace": "shop"},
        "eventTime": "2026-01-31T08:15:00.123456Z",
        "reportingController": "podium",
        "reportingInstance": "podium-host",
        "action": "Scheduling",
        "reason": "FailedScheduling",
        "regarding": {
            "kind": "Pod",
            "apiVersion": "v1",
            "namespace": "shop",
            "name": "web",
            "uid": "uid-1",
            "resourceVersion": "17",
        },
        "note": "no",
        "type": "Warning",
        "related": {
            "kind": "Pod",
            "apiVersion": "v1",
            "namespace": "shop",
            "name": "big",
            "uid": "uid-1",
            "resourceVersion": "17",
        },
    }


def test_body_of_a_series_carries_count_and_last_time():
    book = SeriesBook()
    book.observe(event())
    post = book.observe(event(time_ns=T0 + MINUTE))
    assert events_body(post)["series"] == {"count": 2, "lastObservedTime": "2026-01-31T08:16:00.123456Z"}


def test_core_body_has_the_old_form():
    body = encoded(core_body(SeriesBook().observe(event())))
    assert body["involvedObject"]["name"] == "web"
    assert body["source"] == {"component": "podium", "host": "host"}
    assert (body["firstTimestamp"], body["count"]) == ("2026-01-31T08:15:00Z", 1)


def test_events_about_cluster_scoped_objects_live_in_default():
    post = SeriesBook().observe(event(regarding=Reference("Node", "v1", name="n1")))
    assert events_body(post)["metadata"]["namespace"] == "default"


def test_long_instance_is_cut_to_what_the_api_takes():
    long = msgspec.structs.replace(event(), instance="podium-" + "h" * 200)
    assert len(events_body(SeriesBook().observe(long))["reportingInstance"]) == 128


@pytest.mark.parametrize(
    ("name", "is_kept"),
    [
        pytest.param("web-7c9", True, id="ordinary"),
        pytest.param("Web", False, id="capitals are no subdomain"),
        pytest.param("w" * 250, False, id="too long with the time appended"),
    ],
)
def test_event_names_are_valid(name, is_kept):
    made = event_name(name, T0)
    assert made.startswith(f"{name}.") is is_kept
    assert len(made) <= 253


@pytest.mark.parametrize(
    ("note", "expected"),
    [
        pytest.param("x" * 1024, "x" * 1024, id="exactly the limit"),
        pytest.param("x" * 1025, "x" * 1020 + " ...", id="one too many"),
        pytest.param("é" * 512, "é" * 512, id="limit in two-byte characters"),
        pytest.param("é" * 513, "é" * 510 + " ...", id="cut between two-byte characters"),
        pytest.param("x" + "é" * 512, "x" + "é" * 509 + " ...", id="cut never splits a character"),
        pytest.param("file \udcff", "file ?", id="no Unicode"),
    ],
)
def test_notes_are_cut_by_bytes(note, expected):
    assert cut_note(note) == expected


@given(st.text(st.characters(), max_size=2_000))
def test_cut_notes_always_fit(note):
    """Law: the server takes every note, and it can be sent."""
    assert len(cut_note(note).encode()) <= MAX_NOTE_BYTES


def test_micro_time_keeps_six_digits():
    assert micro_time(1_000) == "1970-01-01T00:00:00.000001Z"
