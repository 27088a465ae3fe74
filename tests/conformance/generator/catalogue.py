"""All features, and a case as a function of seed and number."""

from __future__ import annotations

import random
from collections.abc import Collection
from typing import Any

from tests.conformance.generator.builder import CaseBuilder
from tests.conformance.generator.devices import DRA
from tests.conformance.generator.feature import Feature, Json
from tests.conformance.generator.neighbours import Owners, PodAffinity, Spread
from tests.conformance.generator.placement import (
    Declared,
    Gates,
    Images,
    NodeAffinity,
    NodeName,
    Ports,
    Taints,
    Unschedulable,
)
from tests.conformance.generator.priority import Priority
from tests.conformance.generator.profile import Profile
from tests.conformance.generator.requests import Details, PodLevel, Quantities, Requests, Resources
from tests.conformance.generator.volumes import CSILimits, Volumes

# The order matters: what a seed gives depends on it.
FEATURES: tuple[type[Feature], ...] = (
    Requests, Details, Quantities, Resources, PodLevel, Unschedulable, Taints, NodeAffinity, Ports, NodeName,
    Gates, PodAffinity, Spread, Owners, Images, Priority, Volumes, CSILimits, DRA, Declared, Profile,
)  # fmt: skip
NAMES = tuple(feature.name for feature in FEATURES)


def make_case(
    seed: str,
    number: int,
    features: Collection[str] = (),
    nodes: tuple[int, int] = (1, 60),
    without: Collection[str] = (),
) -> Json:
    """Return case ``number`` of ``seed``; it depends on the arguments only.

    Args:
        seed: any text.
        number: of the case.
        features: names of exactly those that the case has, besides "requests"; none: a few are drawn.
        nodes: fewest and most nodes.
        without: names of features that are never drawn.

    """
    rng = random.Random(f"{seed}/{number}")
    on = {*features, "requests"} if features else draw_features(rng, without)
    # The profile first: pods need its scheduler name.
    in_order = sorted((feature() for feature in FEATURES), key=lambda f: f.name != "profile")
    case = CaseBuilder(rng, on, nodes, in_order).build()
    return {"id": f"s{seed}-{number}", **without_notes(case)}


def draw_features(rng: random.Random, without: Collection[str]) -> set[str]:
    """Return one to five names, and "requests"."""
    classes = [f for f in FEATURES if f is not Requests and f.name not in without]
    wanted = rng.choice([1, 2, 2, 3, 3, 4, 5])
    drawn = {"requests"}
    while len(drawn) <= wanted:
        drawn.add(rng.choices(classes, [f.weight for f in classes])[0].name)
    return drawn


def without_notes(value: Any) -> Any:
    """Return the value without the keys that start with "_"."""
    if isinstance(value, dict):
        return {k: without_notes(v) for k, v in value.items() if not k.startswith("_")}
    if isinstance(value, list):
        return [without_notes(v) for v in value]
    return value
