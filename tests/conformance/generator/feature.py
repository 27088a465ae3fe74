"""What a feature of the generator is: four places at which it adds to a case that is being built."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.conformance.generator.builder import CaseBuilder

Json = dict[str, Any]


class Feature:
    """One area of scheduling; a new instance for each case.

    Keys that start with "_" are notes that parts of the generator leave for one another on nodes and pods.

    Attributes:
        name: as in ``--features``.
        weight: how often it is drawn, where 1 is usual.
    """

    name = ""
    weight = 1.0

    def cluster(self, case: CaseBuilder) -> None:
        """Change nodes, add objects; nothing runs yet."""

    def bound(self, case: CaseBuilder, pod: Json, node: Json) -> None:
        """Change a pod that runs on the node."""

    def target(self, case: CaseBuilder, pod: Json) -> None:
        """Change a pod to schedule."""

    def finish(self, case: CaseBuilder) -> None:
        """Add what depends on everything else."""
