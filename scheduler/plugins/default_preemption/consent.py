"""Consent: extenders that have the preempt verb strike candidates off, or choose other victims.

Source: ``callExtenders``.
"""

from __future__ import annotations

from collections.abc import Iterable

from scheduler.api import ExtenderError, NodesView, Pod, PreemptionExtender, Status, Victims
from scheduler.telemetry.logging import get_logger

__all__ = ["ask_extenders"]

_log = get_logger(__name__)


def ask_extenders(
    extenders: Iterable[PreemptionExtender], pod: Pod, candidates: dict[str, Victims], nodes: NodesView
) -> dict[str, Victims] | Status:
    """Return the candidates that all interested extenders agree to; an Error if one fails and may not be ignored.

    Extenders without the verb are not asked: one that does not want the pod there says so in the next attempt.
    """
    for extender in extenders:
        if not candidates:
            break
        if not extender.supports_preemption or not extender.is_interested(pod):
            continue
        try:
            agreed = extender.preempt(pod, candidates, nodes)
        except ExtenderError as error:
            if not extender.is_ignorable:
                return Status.error(str(error), error)
            _log.warning("ignorable extender failed", extender=extender.name, pod=pod.pod_key, error=str(error))
            continue
        candidates = {name: victims for name, victims in agreed.items() if victims.pods}
        for name in agreed:
            if name not in candidates and not extender.is_ignorable:
                return Status.error(f'expected at least one victim pod on node "{name}"')
    return candidates
