"""Health texts, byte for byte as apiserver/pkg/server/healthz writes them."""

import pytest
from structlog.testing import capture_logs

from scheduler.serving.health import HealthAnswer, HealthChecks


def checks(**reasons):
    registry = HealthChecks("readyz")
    for name, reason in reasons.items():
        registry.add(name, lambda reason=reason: reason)
    return registry


@pytest.mark.parametrize(
    ("registry", "verbose", "excluded", "expected"),
    [
        pytest.param(checks(a=None), False, [], HealthAnswer(200, "ok"), id="healthy is a bare ok"),
        pytest.param(checks(), True, [], HealthAnswer(200, "[+]ping ok\nreadyz check passed\n"), id="no checks: ping"),
        pytest.param(
            checks(a=None, b=None),
            True,
            [],
            HealthAnswer(200, "[+]a ok\n[+]b ok\nreadyz check passed\n"),
            id="verbose lists the checks in order",
        ),
        pytest.param(
            checks(a=None, b="secret reason"),
            False,
            [],
            HealthAnswer(500, "[+]a ok\n[-]b failed: reason withheld\nreadyz check failed\n"),
            id="failure is always verbose and keeps the reason",
        ),
        pytest.param(
            checks(a=None, b="x"),
            True,
            ["b"],
            HealthAnswer(200, "[+]a ok\n[+]b excluded: ok\nreadyz check passed\n"),
            id="excluded check does not count",
        ),
        pytest.param(
            checks(a=None),
            True,
            ["z", "y"],
            HealthAnswer(
                200,
                '[+]a ok\nwarn: some health checks cannot be excluded: no matches for "y","z"\nreadyz check passed\n',
            ),
            id="unknown exclusions are named",
        ),
    ],
)
def test_answers(registry, verbose, excluded, expected):
    assert registry.answer(is_verbose=verbose, excluded=excluded) == expected


def test_single_check_tells_its_reason():
    registry = checks(a=None, shutdown="process is shutting down")
    assert registry.answer_one("a") == HealthAnswer(200, "ok")
    assert registry.answer_one("shutdown") == HealthAnswer(500, "internal server error: process is shutting down\n")


def test_results_are_observed_and_excluded_checks_are_not():
    seen = []
    registry = HealthChecks("livez", lambda *result: seen.append(result))
    registry.add("a", lambda: None)
    registry.add("b", lambda: "bad")
    registry.add("c", lambda: None)
    registry.answer(excluded=["c"])
    assert seen == [("a", "livez", True), ("b", "livez", False)]


def test_notes_are_shown_with_verbose_only_and_fail_nothing():
    registry = checks(a=None)
    registry.note(lambda: ["watch of Pod is stale for 42 s"])
    assert registry.answer().text == "ok"
    assert "watch of Pod is stale for 42 s\nreadyz check passed" in registry.answer(is_verbose=True).text


def test_names_are_unique():
    registry = checks(a=None)
    with pytest.raises(ValueError, match="readyz has a check a already"):
        registry.add("a", lambda: None)


def test_a_change_is_logged_once_however_often_anybody_asks():
    """Nor can whoever asks make it many by excluding the check in between."""
    reason = ["slow"]
    registry = HealthChecks("readyz")
    registry.add("a", lambda: reason[0])
    with capture_logs() as logged:
        for _ in range(3):
            registry.answer()
            registry.answer(excluded=["a"])
            registry.answer_one("a")
        reason[0] = None
        registry.answer()
        registry.answer()
    assert [(entry["event"], entry.get("reason")) for entry in logged] == [
        ("health check failed", "slow"),
        ("health check passed", None),
    ]
