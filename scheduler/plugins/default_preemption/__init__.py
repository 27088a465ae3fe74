"""DefaultPreemption: makes room for a pod that fits nowhere by evicting less important ones (spec §4.17).

plugin      PostFilter: the steps in order, and what is said when they fail; PreEnqueue: wait for the victims to go
candidates  which nodes are worth a dry run, how many are tried, and what came out
victims     the dry run on one node: who must go
budgets     which victims disruption budgets would spare
pick        the best of the candidates
consent     extenders that have a say
execution   having the victims removed, and the gate meanwhile
"""

from scheduler.plugins.default_preemption.plugin import NAME, DefaultPreemption, new

__all__ = ["NAME", "DefaultPreemption", "new"]
