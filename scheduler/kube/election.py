"""Leader election as a pure state machine: which lease call comes next, and what its answer means.

Semantics are client-go's (``tools/leaderelection`` v0.36): a lease is held until its duration has passed since *we*
last saw its record change, on our own clock; times inside the record are never compared. The leader renews
optimistically with the version it wrote last and reads the lease only if that fails.

One try (``begin`` … ``answer`` until a bool comes back)::

            ┌─ leader, still valid ─▶ UPDATE ──ok──────────────────────────────▶ True
    begin ──┤                           └─failed─┐
            └─ otherwise ────────────────────────▼
                                                GET ──not found──▶ CREATE ──ok─▶ True / failed ─▶ False
                                                 ├─failed────────────────────────────────────────▶ False
                                                 ├─held by another and not expired ──────────────▶ False
                                                 └─ours, expired or empty ──▶ UPDATE ──ok ▶ True / failed ▶ False

A holder whose record disappears without having been released (deleted, emptied or overwritten by hand) may not know of
it before its next renewal. What it was seen to hold stays reserved for it until it would have run out.

# differs: client-go creates a lease that is gone, and takes one that names nobody, at once; two may write for a moment.

Invariants:
    * ``valid_until_s`` is the time the last successful write was *sent* plus the lease duration minus the margin, and
      0 whenever the last record seen is not ours.
    * All times are seconds on CLOCK_BOOTTIME, handed in.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import Any

import msgspec

__all__ = ["WRITE_MARGIN_S", "Answer", "Call", "Election", "Record", "Verb", "record_of", "with_record"]

WRITE_MARGIN_S = 1.0
RELEASED_S = 1

Lease = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Record:
    """The contents of a lease that take part in the election (``LeaderElectionRecord``)."""

    holder: str = ""
    duration_s: int = 0
    acquire_time: str = ""
    renew_time: str = ""
    transitions: int = 0
    strategy: str = ""
    preferred_holder: str = ""


class Verb(enum.Enum):
    """What to do with the lease."""

    GET = "get"
    CREATE = "create"
    UPDATE = "update"


@dataclass(frozen=True, slots=True)
class Call:
    """The next call. ``lease`` is the object to send (None for GET)."""

    verb: Verb
    sent_at_s: float
    lease: Lease | None = None
    record: Record | None = None
    is_optimistic: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """How a call ended: the lease as the server has it, or None with what went wrong."""

    lease: Lease | None = None
    is_not_found: bool = False


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None
    strategy: str | None = None
    preferred_holder: str | None = None


def record_of(lease: Lease) -> Record:
    """Return the record in a lease object.

    Raises:
        ValueError: a field has the wrong type (``msgspec.ValidationError``).
    """
    spec = msgspec.convert(lease.get("spec") or {}, _Spec)
    return Record(
        spec.holder_identity or "",
        spec.lease_duration_seconds or 0,
        spec.acquire_time or "",
        spec.renew_time or "",
        spec.lease_transitions or 0,
        spec.strategy or "",
        spec.preferred_holder or "",
    )


def with_record(lease: Lease, record: Record) -> Lease:
    """Return the lease object with its spec replaced; metadata, and so the resourceVersion, stays."""
    spec: dict[str, Any] = {
        "holderIdentity": record.holder,
        "leaseDurationSeconds": record.duration_s,
        "acquireTime": record.acquire_time
        or None,  # the server refuses an empty text; somebody may have removed the time
        "renewTime": record.renew_time or None,
        "leaseTransitions": record.transitions,
    }
    if record.preferred_holder:
        spec["preferredHolder"] = record.preferred_holder
    if record.strategy:
        spec["strategy"] = record.strategy
    return {**lease, "spec": spec}


def _is_release(record: Record) -> bool:
    """Tell whether this is what a leader writes when it gives the lease up (parity: nobody, for a second)."""
    return not record.holder and record.duration_s == RELEASED_S


class Election:
    """What one candidate knows about one lease.

    Attributes:
        observed: the last record seen or written.
        observed_at_s: when it was.
        valid_until_s: until when a write may *end* under this leadership; 0 if not leading.
        slow_renewals: how often a leader had to read the lease before renewing it.
        found_version: resource version of the lease as we last found it without leading; "" if there was none.
    """

    def __init__(self, *, identity: str, namespace: str, name: str, duration_s: float, predecessors: str = "") -> None:
        self.observed = Record()
        self.observed_at_s = 0.0
        self.valid_until_s = 0.0
        self.slow_renewals = 0
        self.found_version = ""
        self._identity = identity
        self._predecessors = predecessors
        self._duration_s = duration_s
        self._lease: Lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"namespace": namespace, "name": name},
        }
        self._raw = Record()
        self._reserved_until_s = 0.0
        self._has_lease = False

    @property
    def is_leader(self) -> bool:
        """Tell whether the last record seen names us; it may have expired since."""
        return self.observed.holder == self._identity

    @property
    def lease(self) -> Lease:
        """Return the lease object as last seen."""
        return self._lease

    def begin(self, now_s: float, wall_time: str) -> Call:
        """Return the first call of a try to acquire or renew; ``wall_time`` is what a new record shows."""
        if self.is_leader and self._is_valid(now_s) and self._has_lease:
            return self._update(self._own_record(wall_time), now_s, is_optimistic=True)
        return Call(Verb.GET, now_s)

    def answer(self, call: Call, answer: Answer, now_s: float, wall_time: str) -> Call | bool:
        """Take the answer to a call; return the next call, or whether we lead now."""
        if call.verb is not Verb.GET:
            return self._written(call, answer, now_s)
        if answer.lease is not None:
            return self._read(answer.lease, now_s, wall_time)
        if answer.is_not_found:
            if self._is_reserved(now_s):
                return False
            record = replace(self._own_record(wall_time), acquire_time=wall_time, transitions=0)
            metadata = {key: self._lease["metadata"][key] for key in ("namespace", "name")}
            return Call(Verb.CREATE, now_s, with_record({**self._lease, "metadata": metadata}, record), record)
        return False

    def _written(self, call: Call, answer: Answer, now_s: float) -> Call | bool:
        if answer.lease is None:
            return Call(Verb.GET, now_s) if call.is_optimistic else False
        assert call.record is not None
        self._lease, self._has_lease = answer.lease, True
        self._observe(call.record, now_s)
        self.valid_until_s = call.sent_at_s + self._duration_s - min(WRITE_MARGIN_S, self._duration_s / 10)
        return True

    def _read(self, lease: Lease, now_s: float, wall_time: str) -> Call | bool:
        self._lease, self._has_lease = lease, True
        record = record_of(lease)
        if not self.is_leader:
            version = (lease.get("metadata") or {}).get("resourceVersion")
            self.found_version = version if isinstance(version, str) else ""
        if record != self._raw:
            self._raw = record
            self._observe(record, now_s)
        if self._is_reserved(now_s) and not self.is_leader:
            return False
        if self.is_leader:
            self.slow_renewals += 1
        return self._update(self._own_record(wall_time), now_s)

    def _update(self, record: Record, now_s: float, *, is_optimistic: bool = False) -> Call:
        return Call(Verb.UPDATE, now_s, with_record(self._lease, record), record, is_optimistic)

    def _own_record(self, wall_time: str) -> Record:
        record = Record(self._identity, int(self._duration_s), wall_time, wall_time)
        if self.is_leader:
            return replace(record, acquire_time=self.observed.acquire_time, transitions=self.observed.transitions)
        return replace(record, transitions=self.observed.transitions + 1)

    def _observe(self, record: Record, now_s: float) -> None:
        if _is_release(record):
            self._reserved_until_s = 0.0
        elif record.holder != self.observed.holder:
            self._reserved_until_s = max(self._reserved_until_s, self._taken_until_s())
        self.observed = record
        self.observed_at_s = now_s
        if not self.is_leader:
            self.valid_until_s = 0.0

    def _is_valid(self, now_s: float) -> bool:
        return self.observed_at_s + self.observed.duration_s > now_s

    def _taken_until_s(self) -> float:
        """Return until when the last record seen keeps others from the lease."""
        holder = self.observed.holder
        if not holder or self.is_leader or (self._predecessors and holder.startswith(self._predecessors)):
            return 0.0
        return self.observed_at_s + self.observed.duration_s

    def _is_reserved(self, now_s: float) -> bool:
        """Tell whether the present holder, or one who may not know yet that it is none any more, still has its time."""
        return now_s < max(self._taken_until_s(), self._reserved_until_s)

    # --- giving it up ------------------------------------------------------------------------------------------------

    def resign(self) -> None:
        """Close the write gate; the lease itself is untouched."""
        self.valid_until_s = 0.0

    def release(self, lease: Lease, now_s: float, wall_time: str) -> Call | None:
        """Return the write that frees the lease just read, or None if it is not ours any more."""
        record = record_of(lease)
        self._lease = lease
        if record.holder != self._identity:
            self._observe(record, now_s)
            return None
        return self._update(Record("", RELEASED_S, wall_time, wall_time, record.transitions), now_s)

    def released(self, call: Call, lease: Lease, now_s: float) -> None:
        """Take the answer to the write of ``release``."""
        assert call.record is not None
        self._lease = lease
        self._observe(call.record, now_s)
