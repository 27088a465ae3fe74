"""A Podium plugin to start from: pods go to nodes with few pods only."""

from scheduler.api import CycleState, FilterPlugin, Handle, NodeView, PluginArgs, Pod, Status


class QuietNodesArgs(PluginArgs):
    """What ``pluginConfig`` may say."""

    max_pods: int = 10


class QuietNodes(FilterPlugin):
    """Rejects nodes that have ``maxPods`` pods."""

    name = "QuietNodes"
    api_version = 1
    Args = QuietNodesArgs

    def __init__(self, args: QuietNodesArgs, handle: Handle) -> None:
        """Make it for one profile."""
        del handle
        self.max_pods = args.max_pods

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        """Say whether the node is quiet."""
        del state, pod
        return None if node.num_pods < self.max_pods else Status.unschedulable("node(s) were not quiet")
