"""One duration that was measured across a jump of the clock is seen among a thousand, in whatever bucket it stands."""

from __future__ import annotations

from bisect import bisect_left
from math import inf

import pytest

from tests.faults.durations import impossible
from tests.integration.daemon import Metrics

SHORT, LONG = (0.1, 1.0, inf), (0.1, 1.0, 60.0, 2_000.0, 6_000.0, inf)
SOUND = (0.05,) * 900 + (0.7,) * 90 + (5.0,) * 10
JUMP_S = 3_583.0


def scraped(bounds: tuple[float, ...], *observed: float) -> Metrics:
    """Return what a scheduler says that has measured these durations."""
    lines = ["# TYPE step_seconds histogram"]
    found = [bisect_left(bounds, each) for each in observed]
    for number, bound in enumerate(bounds):
        said = "+Inf" if bound == inf else f"{bound:g}"
        lines.append(f'step_seconds_bucket{{kind="a",le="{said}"}} {sum(at <= number for at in found)}')
    return Metrics("\n".join([*lines, f'step_seconds_sum{{kind="a"}} {sum(observed)}']))


@pytest.mark.parametrize("bounds", [SHORT, LONG])
def test_slow_is_possible(bounds: tuple[float, ...]) -> None:
    assert impossible(scraped(bounds), scraped(bounds, *SOUND), 1_800.0) == []
    assert impossible(scraped(bounds, *SOUND), scraped(bounds, *SOUND, *SOUND), 1_800.0) == []


@pytest.mark.parametrize("bounds", [SHORT, LONG])
@pytest.mark.parametrize("jump_s", [JUMP_S, -JUMP_S, 7_200.0, -7_200.0])
def test_one_jump_among_a_thousand_is_not(bounds: tuple[float, ...], jump_s: float) -> None:
    """Its mean is a few seconds."""
    after = scraped(bounds, *SOUND, *SOUND, 0.05 + jump_s)
    (told,) = {line.partition(":")[0] for line in impossible(scraped(bounds, *SOUND), after, 1_800.0)}
    assert told == "step_seconds kind=a"
