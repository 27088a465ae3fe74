"""What is taken from a failed answer, and what is not."""

import json

import pytest

from scheduler.kube.errors import MAX_MESSAGE_CHARS, api_error
from scheduler.kube.transport import Response, raise_for_status


def status_body(**fields):
    return json.dumps({"kind": "Status", "status": "Failure", **fields}).encode()


@pytest.mark.parametrize(
    ("headers", "body", "reason", "message", "retry_after_s"),
    [
        pytest.param({}, status_body(reason="Conflict", message="busy"), "Conflict", "busy", None, id="a Status"),
        pytest.param({}, b"<html>secret</html>", "", "", None, id="a proxy's page is not quoted"),
        pytest.param({}, b'{"kind":"Secret","message":"x"}', "", "", None, id="another kind is not quoted"),
        pytest.param({}, b"[" * 100_000, "", "", None, id="deep nesting"),
        pytest.param({}, status_body(reason=None, message=None), "", "", None, id="nulls"),
        pytest.param({"retry-after": "3"}, b"", "", "", 3.0, id="Retry-After header"),
        pytest.param({"Retry-After": "9" * 50}, b"", "", "", 300.0, id="absurd Retry-After is capped"),
        pytest.param({"retry-after": "Wed, 21 Oct 2026"}, b"", "", "", None, id="a date is ignored"),
        pytest.param({}, status_body(details={"retryAfterSeconds": 2}), "", "", 2.0, id="retryAfterSeconds"),
    ],
)
def test_api_error(headers, body, reason, message, retry_after_s):
    """Only a Kubernetes Status is believed."""
    error = api_error(500, headers, body)
    assert (error.status, error.reason, error.message, error.retry_after_s) == (500, reason, message, retry_after_s)


def test_long_messages_are_cut():
    """A message has at most 256 characters."""
    assert len(api_error(422, {}, status_body(message="x" * 5000)).message) == MAX_MESSAGE_CHARS


@pytest.mark.parametrize(
    ("error", "attribute"),
    [
        pytest.param(api_error(410, {}, b""), "is_expired", id="410"),
        pytest.param(api_error(400, {}, status_body(reason="Expired")), "is_expired", id="Expired"),
        pytest.param(
            api_error(504, {}, status_body(message="Too large resource version: 9, current: 5")),
            "is_version_too_large",
            id="too large",
        ),
        pytest.param(api_error(409, {}, b""), "is_retriable", id="conflict"),
    ],
)
def test_what_an_error_means(error, attribute):
    """The questions that callers ask."""
    assert getattr(error, attribute)
    assert not getattr(api_error(404, {}, b""), attribute)


def test_success_is_passed_through():
    """2xx answers are returned as they are."""
    response = Response(201, {}, b"x")
    assert raise_for_status(response) is response
