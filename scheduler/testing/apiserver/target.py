"""What a request addresses, and the JSON that comes with it."""

from __future__ import annotations

import datetime as dt
from typing import Any, NamedTuple

import msgspec

from scheduler.testing.apiserver.resources import Resource
from scheduler.testing.apiserver.status import Json, bad_request
from scheduler.testing.apiserver.store import Stored

__all__ = ["Target", "parse_json", "timestamp", "uid_mismatch", "without_nulls"]


class Target(NamedTuple):
    """What a request addresses: one object of a resource, or (without a name) the collection."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}" if self.resource.namespaced else self.name

    @property
    def prefix(self) -> str:
        """What the keys of the addressed collection begin with."""
        return f"{self.namespace}/" if self.resource.namespaced and self.namespace else ""


def timestamp(moment: dt.datetime) -> str:
    """Return a time as metav1.Time prints it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def without_nulls(value: Any) -> Any:
    """Return JSON without null members: for the API a null is an absent field."""
    if isinstance(value, dict):
        return {key: without_nulls(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [without_nulls(each) for each in value]
    return value


def uid_mismatch(uid: str, stored: Stored) -> str:
    """Return the message of a UID precondition that does not hold."""
    return f"Precondition failed: UID in precondition: {uid}, UID in object meta: {stored.data['metadata']['uid']}"


def parse_json(body: bytes, kind: str) -> Json:
    """Decode a request body.

    Raises:
        ApiStatusError: 400, not a JSON object.

    """
    try:
        decoded = msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        text = f"the object provided is unrecognized (must be of type {kind})"
        raise bad_request(f"{text}: couldn't get version/kind; json parse error: {error}") from None
    if not isinstance(decoded, dict):
        raise bad_request(f"the object provided is unrecognized (must be of type {kind})")
    return decoded
