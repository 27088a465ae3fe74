"""Which kinds decisions wait for: those that a hard rule stands on."""

import pytest

from scheduler.app.kinds import is_optional
from scheduler.model.meta import Namespace
from scheduler.model.node import Node
from scheduler.model.pod import Pod
from scheduler.model.policy import PodDisruptionBudget
from scheduler.model.storage import CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(Node, id="where pods can go"),
        pytest.param(Pod, id="what is taken"),
        pytest.param(Namespace, id="anti-affinity to the pods of selected namespaces"),
        pytest.param(PodDisruptionBudget, id="budgets in preemption"),
        pytest.param(CSINode, id="how many volumes a node attaches"),
        pytest.param(VolumeAttachment, id="how many it has attached"),
    ],
)
def test_a_kind_that_a_hard_rule_stands_on_is_waited_for(kind):
    """Deciding without it would break the rule in silence."""
    assert not is_optional(kind)


@pytest.mark.parametrize("kind", [StorageClass, CSIStorageCapacity])
def test_others_cost_a_preference_or_keep_a_pod_waiting(kind):
    assert is_optional(kind)
