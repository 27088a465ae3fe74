"""Lists: options, pages and consistency.

All pages of one list show the version of the first page; when the history no longer reaches back that far, the server
answers 410 with a token to go on inconsistently, as the real one does.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from scheduler.testing.apiserver.events_view import from_core
from scheduler.testing.apiserver.resources import Resource
from scheduler.testing.apiserver.selectors import Predicate, compile_selectors
from scheduler.testing.apiserver.status import (
    EXPIRED_CONTINUE_MESSAGE,
    ApiStatusError,
    FieldProblem,
    bad_request,
    expired,
    invalid,
    too_large_version,
)
from scheduler.testing.apiserver.store import Converter, Store, Stored, encode_json
from scheduler.testing.apiserver.target import Target

__all__ = ["ListOptions", "Page", "encode_list", "list_page", "view_converter"]

INCONSISTENT = -1
"""Version in a token that says: go on with whatever is there now."""


class ListOptions(NamedTuple):
    """The query parameters of list and watch."""

    matches: Predicate | None
    limit: int
    continue_token: str
    resource_version: str
    resource_version_match: str
    watch: bool
    allow_bookmarks: bool
    send_initial_events: bool | None
    timeout_s: float | None

    @classmethod
    def parse(cls, resource: Resource, query: Mapping[str, str]) -> ListOptions:
        """Read and check the parameters.

        Raises:
            ApiStatusError: 400 a selector or version that cannot be read, 422 parameters that exclude one another.

        """
        label, field = query.get("labelSelector", ""), query.get("fieldSelector", "")
        view = resource.group if resource.view_of else ""
        initial = query.get("sendInitialEvents")
        timeout = query.get("timeoutSeconds", "")
        options = cls(
            matches=compile_selectors(resource.plural, label, field, view),
            limit=int(query["limit"]) if query.get("limit", "").isdigit() else 0,
            continue_token=query.get("continue", ""),
            resource_version=query.get("resourceVersion", ""),
            resource_version_match=query.get("resourceVersionMatch", ""),
            watch=is_true(query.get("watch", "")),
            allow_bookmarks=is_true(query.get("allowWatchBookmarks", "")),
            send_initial_events=None if initial is None else is_true(initial),
            timeout_s=float(timeout) if timeout.isdigit() else None,
        )
        problems = options._problems()
        if problems:
            raise invalid("ListOptions", "", problems, "meta.k8s.io")
        return options

    def _problems(self) -> list[FieldProblem]:
        field, match = "resourceVersionMatch", self.resource_version_match

        def no(where: str, why: str) -> FieldProblem:
            return FieldProblem(where, "FieldValueForbidden", f"Forbidden: {why}")

        if self.watch:
            if self.send_initial_events is not None and match != "NotOlderThan":
                return [no(field, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")]
            if self.send_initial_events is None and match:
                return [no(field, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")]
            return []
        problems = []
        if match and not self.resource_version:
            problems.append(no(field, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
        if match and self.continue_token:
            problems.append(no(field, "resourceVersionMatch is forbidden when continue is provided"))
        if match == "Exact" and self.resource_version == "0":
            problems.append(no(field, 'resourceVersionMatch "Exact" is forbidden for resourceVersion "0"'))
        if match not in ("", "Exact", "NotOlderThan"):
            text = f'Unsupported value: "{match}": supported values: "Exact", "NotOlderThan"'
            problems.append(FieldProblem(field, "FieldValueNotSupported", text))
        if self.send_initial_events is not None:
            problems.append(no("sendInitialEvents", "sendInitialEvents is forbidden for list"))
        return problems


def is_true(text: str) -> bool:
    """Return whether a boolean query parameter is set."""
    return text.lower() in ("true", "1", "t")


def parse_version(text: str) -> int:
    """Return a resourceVersion as a number; 0 for an unset one.

    Raises:
        ApiStatusError: 400.

    """
    if text and not text.isdigit():
        detail = f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        raise bad_request(f"invalid resource version: {detail}")
    return int(text or 0)


class Page(NamedTuple):
    """One page of a list."""

    items: list[Stored]
    revision: int
    continue_token: str = ""
    remaining: int | None = None


def list_page(store: Store, target: Target, options: ListOptions) -> Page:
    """Return the asked page.

    Raises:
        ApiStatusError: 400 bad token or version, 410 compacted, 504 a version of the future.

    """
    table = store.table(target.resource)
    start, wanted = "", parse_version(options.resource_version)
    is_exact = options.resource_version_match == "Exact" or (options.limit and wanted and not options.continue_token)
    if options.continue_token:
        start, wanted = _decode_token(options.continue_token)
        is_exact = wanted != INCONSISTENT
    if wanted > store.revision:
        raise too_large_version(wanted, store.revision)
    if is_exact and wanted < table.compacted:
        raise _compacted(options, start)
    revision = wanted if is_exact else store.revision
    if is_exact and wanted < store.revision:
        past = table.at(wanted)
        source: Iterable[tuple[str, Stored]] = (
            (key, past[key]) for key in sorted(past) if key.startswith(target.prefix) and key >= start
        )
    else:
        source = table.scan(target.prefix, start)
    matching = [(key, each) for key, each in source if options.matches is None or options.matches(each.data)]
    if not options.limit or len(matching) <= options.limit:
        return Page([each for _, each in matching], revision)
    shown = matching[: options.limit]
    remaining = len(matching) - options.limit if options.matches is None else None
    return Page([each for _, each in shown], revision, _encode_token(revision, matching[options.limit][0]), remaining)


def _compacted(options: ListOptions, start: str) -> ApiStatusError:
    if options.continue_token:
        return expired(EXPIRED_CONTINUE_MESSAGE, {"continue": _encode_token(INCONSISTENT, start)})
    return expired("The resourceVersion for the provided list is too old.")


def _encode_token(revision: int, start: str) -> str:
    token = encode_json({"v": "meta.k8s.io/v1", "rv": revision, "start": start})
    return base64.urlsafe_b64encode(token).rstrip(b"=").decode()


def _decode_token(text: str) -> tuple[str, int]:
    try:
        token = msgspec.json.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        return str(token["start"]), int(token["rv"])
    except (binascii.Error, msgspec.DecodeError, KeyError, TypeError, ValueError, UnicodeError):
        raise bad_request("invalid continue token: continue key is not valid") from None


def view_converter(resource: Resource) -> Converter | None:
    """Return how stored objects become those of the resource's API version, if they differ."""
    return from_core if resource.view_of else None


def encode_list(resource: Resource, page: Page) -> bytes:
    """Return the list's JSON, joined from the bodies that were encoded when the objects were stored."""
    metadata: dict[str, object] = {"resourceVersion": str(page.revision)}
    if page.continue_token:
        metadata["continue"] = page.continue_token
    if page.remaining is not None:
        metadata["remainingItemCount"] = page.remaining
    head = f'{{"kind":"{resource.kind}List","apiVersion":"{resource.api_version}","metadata":'.encode()
    convert = view_converter(resource)
    bodies = [each.body if convert is None else encode_json(convert(each.data)) for each in page.items]
    return head + encode_json(metadata) + b',"items":[' + b",".join(bodies) + b"]}"
