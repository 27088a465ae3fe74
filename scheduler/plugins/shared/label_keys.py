"""Label keys: what labels offer and label selectors demand, to find waiting pods by (``HintIndex``).

Labels offer each of their pairs, each of their keys, and ``ANY``. A selector demands things of which any labels that it
matches offer at least one; the fewer labels offer them, the better.

    labels    app=web, tier=front           offer    ("app", "web"), ("tier", "front"), "app", "tier", ANY
    selector  app=web, tier in (x, front)   demands  ("app", "web")
              tier exists                            "tier"
              tier not in (x)                        ANY: all labels may match
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scheduler.model.meta import LabelSelector, LabelSelectorRequirement

__all__ = ["ANY", "Thing", "changed_keys", "commonness", "demanded", "offered"]

Thing = tuple[str, str] | str
"""A label's key and value, or its key alone, or ``ANY``."""

ANY = ""
"""What all labels offer."""

_MANY_VALUES = 16


def offered(labels: Mapping[str, str]) -> list[Thing]:
    """Return what the labels offer."""
    return [*labels.items(), *labels, ANY]


def changed_keys(before: Mapping[str, str], after: Mapping[str, str]) -> set[str]:
    """Return the keys whose value is another one, or that came or went."""
    changed = {key for key, value in after.items() if before.get(key) != value}
    return changed if before.keys() <= after.keys() else changed | (before.keys() - after.keys())


def demanded(selector: LabelSelector | None) -> Sequence[Thing]:
    """Return what a valid selector demands; nothing if it matches nothing."""
    if selector is None:
        return ()
    if selector.match_labels:
        # Which of the pairs is rare is not known; a long value mostly says more than a short one.
        return (max(selector.match_labels.items(), key=lambda pair: len(pair[1])),)
    return min((_of(requirement) for requirement in selector.match_expressions), key=commonness, default=(ANY,))


def commonness(things: Sequence[Thing]) -> tuple[int, int]:
    """Return what orders demands by how many labels meet them: pairs before keys before ``ANY``, few before many."""
    if ANY in things:
        return 2, 1
    return int(any(isinstance(thing, str) for thing in things)), len(things)


def _of(requirement: LabelSelectorRequirement) -> Sequence[Thing]:
    key, values = requirement.key, requirement.values
    match requirement.operator:
        case "In" if len(values) <= _MANY_VALUES:
            return [(key, value) for value in values]
        case "In" | "Exists":
            return (key,)
        case _:
            return (ANY,)
