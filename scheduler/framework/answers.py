"""Answers: what a third party's plugin is asked at each extension point, which answers are good, and which is neutral.

The functions under ``wanted`` return what should stand in place of an answer, or None if it is good. They must agree
with what the points themselves refuse; here it is found before the answer is used, so that the plugin can be skipped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from scheduler.api import (
    MAX_NODE_SCORE,
    BindPlugin,
    CycleState,
    FilterPlugin,
    IntColumn,
    NodesView,
    PermitPlugin,
    Plugin,
    Pod,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ReservePlugin,
    ScorePlugin,
    Status,
    Verdicts,
)
from scheduler.framework.columns import are_verdicts
from scheduler.framework.guard import bad_status
from scheduler.framework.points import (
    ADD_POD,
    BIND,
    FILTER,
    NORMALIZE,
    PERMIT,
    POST_FILTER,
    PRE_BIND,
    PRE_BIND_PRE_FLIGHT,
    PRE_ENQUEUE,
    PRE_FILTER,
    PRE_SCORE,
    REMOVE_POD,
    RESERVE,
    SCORE,
)
from scheduler.framework.prefilter import is_narrowing
from scheduler.framework.shield import Question

__all__ = ["EXPLANATION", "QUESTIONS", "SIGNATURE", "scoring"]


def _success(*_: object) -> None:
    return None


def _skip(*_: object) -> Status:
    return Status.skip()


def _anything(*_: object) -> None:
    return None


def _hashable(answer: object, *_: object) -> str | None:
    try:
        hash(answer)
    except TypeError:
        return "a hashable value (tuples and frozensets instead of lists, sets and dicts)"
    return None


def _status(answer: object, *_: object) -> str | None:
    return bad_status(answer)


def _pre_filter(answer: object, *_: object) -> str | None:
    wrong = _pair(answer, PreFilterResult)
    if wrong is None and isinstance(answer, tuple) and not is_narrowing(answer[0]):
        return "a pair (PreFilterResult with a set of names, or None; Status or None)"
    return wrong


def _post_filter(answer: object, *_: object) -> str | None:
    return _pair(answer, PostFilterResult)


def _pair(answer: object, kind: type[PreFilterResult | PostFilterResult]) -> str | None:
    if not isinstance(answer, tuple) or len(answer) != 2 or not isinstance(answer[0], kind | None):
        return f"a pair ({kind.__name__} or None, Status or None)"
    return bad_status(answer[1])


def _permit(answer: object, *_: object) -> str | None:
    if not isinstance(answer, tuple) or len(answer) != 2:
        return "a pair (Status or None, seconds)"
    if not isinstance(answer[1], int | float) or math.isnan(answer[1]):
        return "a number of seconds"
    return bad_status(answer[0])


def _verdicts(answer: object, _state: CycleState, _pod: Pod, nodes: NodesView) -> str | None:
    return None if are_verdicts(answer, len(nodes)) else f"Verdicts with one bool for each of {len(nodes)} nodes"


def _all_pass(_state: CycleState, _pod: Pod, nodes: NodesView) -> Verdicts:
    return Verdicts(np.ones(len(nodes), np.bool_), lambda rows: [])  # noqa: ARG005  no row fails


def _raw_score(answer: object, *_: object) -> str | None:
    good = isinstance(answer, int | np.integer) and -(2**63) <= answer < 2**63
    return None if good else "an int that fits int64"


def _final_score(answer: Any, *_: object) -> str | None:
    return _raw_score(answer) or (None if 0 <= answer <= MAX_NODE_SCORE else f"a score from 0 to {MAX_NODE_SCORE}")


def _raw_column(answer: object, _state: CycleState, _pod: Pod, nodes: NodesView, *_: object) -> str | None:
    size = len(nodes)
    good = isinstance(answer, np.ndarray) and answer.shape == (size,) and answer.dtype.kind in "iu"
    return None if good and np.can_cast(answer.dtype, np.int64) else f"one int64 for each of {size} nodes"  # type: ignore[attr-defined]


def _final_column(answer: Any, state: CycleState, pod: Pod, nodes: NodesView, *_: object) -> str | None:
    wrong = _raw_column(answer, state, pod, nodes)
    if wrong is not None or not len(nodes) or 0 <= int(answer.min()) <= int(answer.max()) <= MAX_NODE_SCORE:
        return wrong
    return f"scores from 0 to {MAX_NODE_SCORE}"


def _zeros(_state: CycleState, _pod: Pod, nodes: NodesView, *_: object) -> IntColumn:
    return np.zeros(len(nodes), np.int64)


QUESTIONS: Mapping[type[Plugin], Mapping[str, Question]] = {
    PreEnqueuePlugin: {"pre_enqueue": Question(PRE_ENQUEUE, _success, _status)},
    PreFilterPlugin: {
        "pre_filter": Question(PRE_FILTER, lambda *_: (None, Status.skip()), _pre_filter),
        "add_pod": Question(ADD_POD, _success, _status),
        "remove_pod": Question(REMOVE_POD, _success, _status),
    },
    FilterPlugin: {
        "filter": Question(FILTER, _success, _status),
        "filter_all": Question(FILTER, _all_pass, _verdicts),
    },
    PostFilterPlugin: {"post_filter": Question(POST_FILTER, lambda *_: (None, Status.unschedulable()), _post_filter)},
    PreScorePlugin: {"pre_score": Question(PRE_SCORE, _skip, _status)},
    ScorePlugin: {
        "score": Question(SCORE, lambda *_: 0, _final_score),
        "score_all": Question(SCORE, _zeros, _final_column),
        "normalize": Question(NORMALIZE, _zeros, _final_column),
    },
    ReservePlugin: {"reserve": Question(RESERVE, _success, _status)},
    PermitPlugin: {"permit": Question(PERMIT, lambda *_: (None, 0.0), _permit)},
    PreBindPlugin: {
        "pre_bind_pre_flight": Question(PRE_BIND_PRE_FLIGHT, _skip, _status),
        "pre_bind": Question(PRE_BIND, _success, _status),
    },
    BindPlugin: {"bind": Question(BIND, _skip, _status)},
}
"""Base class → method → what is asked by it. The neutral answer stands for a plugin that has no say."""

_BEFORE_NORMALIZING: Mapping[str, Callable[..., str | None]] = {"score": _raw_score, "score_all": _raw_column}

EXPLANATION = Question(FILTER, _success, _anything)
"""Why rows failed a whole-cluster Filter."""

SIGNATURE = Question("NodeSignature", _success, _hashable)
"""What of the pod a local plugin depends on."""


def scoring(method: str, question: Question, *, normalizes: bool) -> Question:
    """Return what is asked of a Score plugin; scores that will be normalized may be any."""
    if not normalizes or method not in _BEFORE_NORMALIZING:
        return question
    return question._replace(wanted=_BEFORE_NORMALIZING[method])
