"""Which cases the golden files hold: groups by area, so that a failing group names what is broken.

A group takes its cases from one seed. Case i has the features of entry i of the group's combinations, round and round;
an entry without features lets the generator draw some. Changing anything here means running ``make conformance``.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.conformance.generator.catalogue import NAMES, make_case
from tests.conformance.generator.feature import Json

Features = tuple[str, ...]

NOT_BUILT: Features = ("dra",)  # dynamic resources: pods with claims wait until the plugin is there
DRAWN: Features = ()
EVERYTHING: Features = tuple(name for name in NAMES if name not in (*NOT_BUILT, "nodename", "gates"))
"""All at once; pods that come with a node or a gate are never scheduled, so that these two would hide the others."""


@dataclass(frozen=True, slots=True)
class Group:
    """One golden file.

    Attributes:
        name: of the file, and of the test.
        cases: how many.
        combinations: the features of the cases, round and round.
        nodes: fewest and most nodes of a case.
    """

    name: str
    cases: int
    combinations: tuple[Features, ...]
    nodes: tuple[int, int] = (1, 60)

    @property
    def seed(self) -> str:
        """Return the seed; fresh comparisons use others."""
        return f"golden-{self.name}"

    def case(self, number: int) -> Json:
        """Return one of the cases."""
        features = self.combinations[number % len(self.combinations)]
        return make_case(self.seed, number, features, self.nodes, NOT_BUILT)


GROUPS = (
    Group("resources", 400, (
        ("details",), ("quantities", "resources"), ("podlevel",), ("resources", "details"),
        ("quantities", "details", "resources", "podlevel"),
    )),
    Group("basics", 500, (
        ("taints",), ("nodeaffinity",), ("ports",), ("images", "unschedulable"), ("taints", "nodeaffinity"),
        ("ports", "details"), ("gates", "nodename"), ("unschedulable", "taints", "images"),
        ("nodeaffinity", "images", "ports"),
    )),
    Group("spread", 450, (
        ("spread",), ("spread", "owners"), ("owners",), ("spread", "taints"), ("spread", "nodeaffinity", "unschedulable"),
    )),
    Group("podaffinity", 450, (("podaffinity",), ("podaffinity", "spread"), ("podaffinity", "taints"))),
    Group("volumes", 450, (
        ("volumes",), ("csilimits",), ("volumes", "csilimits"), ("volumes", "nodeaffinity", "unschedulable"),
    )),
    Group("preemption", 500, (
        ("priority",), ("priority", "podaffinity"), ("priority", "ports", "resources"), ("priority", "spread", "taints"),
        ("priority", "volumes", "csilimits"), ("priority", "nodeaffinity", "details"),
    )),
    Group("declared", 60, (("declared",), ("declared", "priority"))),
    Group("profile", 350, (
        ("profile",), ("profile", "resources", "quantities"), ("profile", "spread", "owners"),
        ("profile", "podaffinity", "nodeaffinity"), ("profile", "priority", "taints"), ("profile", "images", "volumes"),
    )),
    Group("mixed", 500, (DRAWN, DRAWN, DRAWN, EVERYTHING)),
    Group("large", 160, (DRAWN, DRAWN, ("spread", "podaffinity"), EVERYTHING), nodes=(40, 90)),
)  # fmt: skip
