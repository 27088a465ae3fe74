"""Failures as the API server words them: an exception that carries a `metav1.Status`.

Clients decide by code and reason (reliability of binds hangs on 409 against 404), people read the message; both follow
the real server.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

__all__ = [
    "ApiStatusError",
    "FieldProblem",
    "already_exists",
    "bad_request",
    "conflict",
    "expired",
    "forbidden",
    "internal",
    "invalid",
    "method_not_allowed",
    "not_found",
    "success",
    "too_large_version",
    "unknown_path",
    "unsupported_media_type",
]

Json = dict[str, Any]

MODIFIED_MESSAGE = "the object has been modified; please apply your changes to the latest version and try again"
EXPIRED_CONTINUE_MESSAGE = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


class FieldProblem(NamedTuple):
    """One cause of an Invalid answer: where, which kind of wrong, in words."""

    field: str
    reason: str
    """"FieldValueInvalid", "FieldValueRequired", "FieldValueForbidden" or "FieldValueNotSupported"."""
    message: str


class ApiStatusError(Exception):
    """The request is answered with `code` and a Status body."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: Json | None = None,
        metadata: Json | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.metadata = metadata or {}

    def body(self) -> Json:
        """Return the Status object."""
        status: Json = {"kind": "Status", "apiVersion": "v1", "metadata": self.metadata, "status": "Failure"}
        status["message"] = self.message
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        status["code"] = self.code
        return status


def success(details: Json | None = None, *, code: int | None = None) -> Json:
    """Return the Status that answers a bind (code 201) or a deletion (with details)."""
    status: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details is not None:
        status["details"] = details
    if code is not None:
        status["code"] = code
    return status


def _details(name: str, kind: str, group: str = "") -> Json:
    details = {"name": name, "group": group, "kind": kind}
    return {key: value for key, value in details.items() if value}


def bad_request(message: str) -> ApiStatusError:
    """400: the request itself is malformed."""
    return ApiStatusError(400, "BadRequest", message)


def forbidden(resource: str, name: str, message: str) -> ApiStatusError:
    """403: an admission rule said no; `resource` is the plural."""
    return ApiStatusError(
        403, "Forbidden", f'{resource} "{name}" is forbidden: {message}', details=_details(name, resource)
    )


def not_found(resource: str, name: str, group: str = "") -> ApiStatusError:
    """404 for an object; `resource` is the plural."""
    qualified = f"{resource}.{group}" if group else resource
    return ApiStatusError(404, "NotFound", f'{qualified} "{name}" not found', details=_details(name, resource, group))


def unknown_path() -> ApiStatusError:
    """404 for a resource that the server does not have."""
    return ApiStatusError(404, "NotFound", "the server could not find the requested resource", details={})


def method_not_allowed() -> ApiStatusError:
    """405: the path exists, the verb does not."""
    message = "the server does not allow this method on the requested resource"
    return ApiStatusError(405, "MethodNotAllowed", message, details={})


def already_exists(resource: str, name: str, group: str = "") -> ApiStatusError:
    """409 on create."""
    qualified = f"{resource}.{group}" if group else resource
    details = _details(name, resource, group)
    return ApiStatusError(409, "AlreadyExists", f'{qualified} "{name}" already exists', details=details)


def conflict(resource: str, name: str, message: str = MODIFIED_MESSAGE, group: str = "") -> ApiStatusError:
    """409: the object is not in the state that the request takes for granted."""
    qualified = f"{resource}.{group}" if group else resource
    text = f'Operation cannot be fulfilled on {qualified} "{name}": {message}'
    return ApiStatusError(409, "Conflict", text, details=_details(name, resource, group))


def expired(message: str, metadata: Json | None = None) -> ApiStatusError:
    """410: the asked version is compacted; list again."""
    return ApiStatusError(410, "Expired", message, metadata=metadata)


def unsupported_media_type(message: str) -> ApiStatusError:
    """415: the body's content type is none that the verb takes."""
    return ApiStatusError(415, "UnsupportedMediaType", message)


def invalid(kind: str, name: str, problems: Sequence[FieldProblem], group: str = "") -> ApiStatusError:
    """422: the object breaks the schema's rules; all problems at once."""
    texts = [f"{problem.field}: {problem.message}" for problem in problems]
    joined = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    qualified = f"{kind}.{group}" if group else kind
    causes = [{"reason": p.reason, "message": p.message, "field": p.field} for p in problems]
    details = {**_details(name, kind, group), "causes": causes}
    return ApiStatusError(422, "Invalid", f'{qualified} "{name}" is invalid: {joined}', details=details)


def unprocessable_patch() -> ApiStatusError:
    """422: a JSON patch whose test or path does not hold."""
    message = "the server rejected our request due to an error in our request"
    return ApiStatusError(422, "Invalid", message, details={})


def internal(message: str) -> ApiStatusError:
    """500 as the real server words unclassified errors: a message without a reason."""
    return ApiStatusError(500, "", message)


def too_large_version(asked: int, current: int) -> ApiStatusError:
    """504: a list at a version that does not exist yet."""
    details = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    return ApiStatusError(504, "Timeout", message, details=details)
