"""What the real server makes of ``matchLabelKeys``: it writes the new pod's own label values into the selectors.

A spread constraint or an affinity term can say "among the pods that have the same value of this label as I have"
(``matchLabelKeys``) or "another value" (``mismatchLabelKeys``). On creation the server turns both into expressions of
the selector, which is where a scheduler reads them. A key that the pod lacks is passed over, and so is a term without
a selector, which selects nothing.

Source: ``pkg/registry/core/pod/strategy.go``.
"""

from __future__ import annotations

from collections.abc import Iterator

from scheduler.testing.apiserver.status import Json

__all__ = ["merge_label_keys"]

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def merge_label_keys(pod: Json) -> None:
    """Write the label keys of a new pod into its selectors, in place.

    A pod that was read from a server already has the expressions; they are not put in twice.
    """
    labels = (pod.get("metadata") or {}).get("labels") or {}
    for rule in _rules(pod.get("spec") or {}):
        _merge(rule, "matchLabelKeys", "In", labels)
        _merge(rule, "mismatchLabelKeys", "NotIn", labels)


def _rules(spec: Json) -> Iterator[Json]:
    """Return every object that can have a selector with label keys beside it."""
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        yield from terms.get(_REQUIRED) or ()
        yield from (weighted.get("podAffinityTerm") or {} for weighted in terms.get(_PREFERRED) or ())
    yield from spec.get("topologySpreadConstraints") or ()


def _merge(rule: Json, field: str, operator: str, labels: Json) -> None:
    selector = rule.get("labelSelector")
    if selector is None:
        return
    for key in rule.get(field) or ():
        if key not in labels:
            continue
        added = {"key": key, "operator": operator, "values": [labels[key]]}
        kept = [each for each in selector.get("matchExpressions") or () if each != added]
        selector["matchExpressions"] = [*kept, added]
