"""Extension points: their names in configurations, in metrics and as base classes.

The one table from which the framework learns which plugin takes part where; it knows no plugin by name.
"""

from __future__ import annotations

from typing import NamedTuple

from scheduler.api import (
    BindPlugin,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
)

__all__ = [
    "ADD_POD",
    "BIND",
    "FILTER",
    "NORMALIZE",
    "PERMIT",
    "POINTS",
    "POST_BIND",
    "POST_FILTER",
    "PRE_BIND",
    "PRE_BIND_PRE_FLIGHT",
    "PRE_ENQUEUE",
    "PRE_FILTER",
    "PRE_SCORE",
    "QUEUE_SORT",
    "REMOVE_POD",
    "RESERVE",
    "SCORE",
    "UNRESERVE",
    "Point",
    "takes_part_in",
]

# Names as metrics and logs show them (label ``extension_point``).
QUEUE_SORT = "QueueSort"
PRE_ENQUEUE = "PreEnqueue"
PRE_FILTER = "PreFilter"
ADD_POD = "PreFilterExtensionAddPod"
REMOVE_POD = "PreFilterExtensionRemovePod"
FILTER = "Filter"
POST_FILTER = "PostFilter"
PRE_SCORE = "PreScore"
SCORE = "Score"
NORMALIZE = "ScoreExtensionNormalize"
RESERVE = "Reserve"
UNRESERVE = "Unreserve"
PERMIT = "Permit"
PRE_BIND_PRE_FLIGHT = "PreBindPreFlight"
PRE_BIND = "PreBind"
BIND = "Bind"
POST_BIND = "PostBind"


class Point(NamedTuple):
    """One extension point.

    Attributes:
        key: its field in a profile's ``plugins``, in snake case.
        base: the class a plugin inherits from to take part; its name stands in error texts.
    """

    key: str
    base: type[Plugin]


# In upstream's order of instantiation, which decides which of several errors is reported.
_ALL = (
    Point("pre_filter", PreFilterPlugin),
    Point("filter", FilterPlugin),
    Point("post_filter", PostFilterPlugin),
    Point("reserve", ReservePlugin),
    Point("pre_score", PreScorePlugin),
    Point("score", ScorePlugin),
    Point("pre_bind", PreBindPlugin),
    Point("bind", BindPlugin),
    Point("post_bind", PostBindPlugin),
    Point("permit", PermitPlugin),
    Point("pre_enqueue", PreEnqueuePlugin),
    Point("queue_sort", QueueSortPlugin),
)

POINTS: dict[str, Point] = {point.key: point for point in _ALL}


def takes_part_in(plugin: Plugin | type[Plugin], key: str) -> bool:
    """Say whether a plugin (or a plugin class) implements the point; unknown points are implemented by nobody."""
    point = POINTS.get(key)
    if point is None:
        return False
    return issubclass(plugin, point.base) if isinstance(plugin, type) else isinstance(plugin, point.base)
