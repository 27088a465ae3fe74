"""Registrations whose hints look at one thing, with the indexes that say so (``HintIndex``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from scheduler.api import ClusterEvent, Pod, QueueingHint, QueueingHintFn
from scheduler.api.events import HintIndex, IndexedRegistration, Offer, WantedKey
from scheduler.model.storage import PersistentVolumeClaim

__all__ = ["about_claims", "about_itself", "by_event"]

_UIDS = "uids"


def by_event(event: ClusterEvent, helps: Callable[[object | None, object | None], bool]) -> IndexedRegistration:
    """Return the registration of a hint that says the same of all pods; ``helps(old, new)`` is that answer."""

    def hint(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        del pod
        return QueueingHint.QUEUE if helps(old, new) else QueueingHint.SKIP

    def offered(old: object | None, new: object | None) -> Iterable[Offer] | None:
        return None if helps(old, new) else ()

    return IndexedRegistration(event, hint, index=HintIndex(_nothing, offered))


def about_itself(event: ClusterEvent, hint: QueueingHintFn) -> IndexedRegistration:
    """Return the registration of a hint that Skips changes of other pods than the one that waits."""
    return IndexedRegistration(event, hint, index=_BY_UID)


def about_claims(
    event: ClusterEvent, hint: QueueingHintFn, claims_of: Callable[[Pod], Iterable[str]]
) -> IndexedRegistration:
    """Return the registration of a hint that Skips claims which are not among ``claims_of(pod)`` by name."""

    def wanted(pod: Pod) -> Iterable[WantedKey]:
        return [(pod.metadata.namespace, name) for name in claims_of(pod)]

    def offered(old: object | None, new: object | None) -> Iterable[Offer] | None:
        del old
        return [(new.metadata.namespace, (new.metadata.name,))] if isinstance(new, PersistentVolumeClaim) else None

    return IndexedRegistration(event, hint, index=HintIndex(wanted, offered))


def _nothing(pod: Pod) -> Iterable[WantedKey]:
    del pod
    return ()


def _own_uid(pod: Pod) -> Iterable[WantedKey]:
    return ((_UIDS, pod.metadata.uid),)


def _changed_pod(old: object | None, new: object | None) -> Iterable[Offer] | None:
    return [(_UIDS, (new.metadata.uid,))] if isinstance(old, Pod) and isinstance(new, Pod) else None


_BY_UID = HintIndex(_own_uid, _changed_pod)
