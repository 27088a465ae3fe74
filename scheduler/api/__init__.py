"""The public interface for plugin authors: import everything from here.

SemVer covers this package and ``scheduler.testing``; nothing else is promised.
"""

from scheduler.api.args import PluginArgs
from scheduler.api.cycle_state import PODS_TO_ACTIVATE, Cloneable, CycleState, StateKey
from scheduler.api.events import (
    ActionType,
    ClusterEvent,
    EventRegistration,
    EventResource,
    QueueingHint,
    QueueingHintFn,
)
from scheduler.api.handle import Clock, Handle, Lister, Random, Spare, WaitingPod
from scheduler.api.measures import DEFAULT_BUCKETS, Counter, Gauge, Histogram, PluginMetrics
from scheduler.api.plugin import (
    API_VERSION,
    MAX_NODE_SCORE,
    BindPlugin,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PluginFactory,
    PostBindPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
    default_normalize,
)
from scheduler.api.preemption import EditableNode, Eviction, ExtenderError, PreemptionExtender, Victims
from scheduler.api.queued import QueuedPodInfo
from scheduler.api.status import Code, Status
from scheduler.api.views import (
    BoolColumn,
    CodedColumn,
    FloatColumns,
    ImageState,
    Int32Column,
    IntColumn,
    NodeFacts,
    NodesView,
    NodeView,
    ScoreColumn,
    TermCounts,
    Verdicts,
)
from scheduler.model.meta import Namespace, NodeName, PodKey, PodUid
from scheduler.model.node import Node, Taint
from scheduler.model.pod import Pod, Toleration
from scheduler.model.ports import HostPort
from scheduler.model.requests import Resources

__all__ = [
    "API_VERSION",
    "DEFAULT_BUCKETS",
    "MAX_NODE_SCORE",
    "PODS_TO_ACTIVATE",
    "ActionType",
    "BindPlugin",
    "BoolColumn",
    "Clock",
    "Cloneable",
    "ClusterEvent",
    "Code",
    "CodedColumn",
    "Counter",
    "CycleState",
    "EditableNode",
    "EventRegistration",
    "EventResource",
    "Eviction",
    "ExtenderError",
    "FilterPlugin",
    "FloatColumns",
    "Gauge",
    "Handle",
    "Histogram",
    "HostPort",
    "ImageState",
    "Int32Column",
    "IntColumn",
    "Lister",
    "Namespace",
    "Node",
    "NodeFacts",
    "NodeName",
    "NodeView",
    "NodesView",
    "PermitPlugin",
    "Plugin",
    "PluginArgs",
    "PluginFactory",
    "PluginMetrics",
    "Pod",
    "PodKey",
    "PodUid",
    "PostBindPlugin",
    "PostFilterPlugin",
    "PostFilterResult",
    "PreBindPlugin",
    "PreEnqueuePlugin",
    "PreFilterPlugin",
    "PreFilterResult",
    "PreScorePlugin",
    "PreemptionExtender",
    "QueueSortPlugin",
    "QueuedPodInfo",
    "QueueingHint",
    "QueueingHintFn",
    "Random",
    "ReservePlugin",
    "Resources",
    "ScoreColumn",
    "ScorePlugin",
    "Spare",
    "StateKey",
    "Status",
    "Taint",
    "TermCounts",
    "Toleration",
    "Verdicts",
    "Victims",
    "WaitingPod",
    "default_normalize",
]
