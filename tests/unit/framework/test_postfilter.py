"""PostFilter: who ends it, what is kept."""

import pytest

from scheduler.api import Code, CycleState, PostFilterPlugin, PostFilterResult, Status
from scheduler.testing.builders import pod

WEB = pod("web").obj()
NOTHING = Status.unschedulable()


class Fake(PostFilterPlugin):
    def __init__(self, name, answer):
        self.name = name
        self.answer = answer

    def post_filter(self, state, pod, statuses):
        return self.answer


def to(node):
    return PostFilterResult(node)


@pytest.mark.parametrize(
    ("answers", "result", "status"),
    [
        pytest.param([(to("n1"), None), (None, NOTHING)], to("n1"), None, id="success ends it"),
        pytest.param(
            [(to("n1"), Status.unresolvable("never")), (to("n2"), None)],
            to("n1"),
            Status.unresolvable("never").by("P0"),
            id="unresolvable ends it",
        ),
        pytest.param(
            [(to("n1"), Status.error("boom")), (to("n2"), None)],
            None,
            Status.error("boom").by("P0"),
            id="an error ends it without result",
        ),
        pytest.param([(None, Status.skip())], None, Status(Code.ERROR, ("",), plugin="P0"), id="skip is an error"),
        pytest.param(
            [(None, Status.unschedulable("a")), (None, Status.unschedulable("b", "c"))],
            None,
            Status.unschedulable("a", "b", "c").by("P0"),
            id="rejections add up, the first plugin is named",
        ),
        pytest.param(
            [(to("n1"), NOTHING), (to(None), NOTHING)],
            to("n1"),
            Status(Code.UNSCHEDULABLE, plugin="P0"),
            id="an earlier nomination is kept",
        ),
        pytest.param(
            [(to(""), NOTHING)], to(""), Status(Code.UNSCHEDULABLE, plugin="P0"), id="clearing is a nomination"
        ),
        pytest.param(
            [None],
            None,
            Status.error(
                'running PostFilter plugin "P0": returned NoneType where '
                "a pair (PostFilterResult or None, Status or None) was expected"
            ).by("P0"),
            id="nonsense: no pair",
        ),
        pytest.param(
            [("n1", None)],
            None,
            Status.error(
                "running PostFilter plugin \"P0\": returned str ('n1') where a PostFilterResult or None was expected"
            ).by("P0"),
            id="nonsense: a name as result",
        ),
    ],
)
def test_outcomes(framework_of, answers, result, status):
    """The loop over PostFilter plugins is upstream's."""
    plugins = [Fake(f"P{i}", answer) for i, answer in enumerate(answers)]
    got_result, got = framework_of(post_filter=plugins).run_post_filter(CycleState(), WEB, {})
    assert got_result == result
    if got is not None and got.cause is not None:
        got = Status(got.code, got.reasons, got.plugin)
    assert got == status
