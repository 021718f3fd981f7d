"""Errors as RFC 9457 problems: one `application/problem+json` document for each cause, with the services' codes."""

import json
import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from starlette.responses import Response

from loopwright.core.values.errors import (
    Ambiguous,
    BadPlan,
    Held,
    IllegalTransition,
    LoopwrightError,
    MachineTrouble,
    NotAllowed,
    NotFound,
    Refused,
    StaleVersion,
    StoreUnavailable,
    UserError,
)

log = logging.getLogger(__name__)

MEDIA_TYPE: Final = "application/problem+json"

_STATUS: Final[tuple[tuple[type[LoopwrightError], HTTPStatus], ...]] = (
    (Ambiguous, HTTPStatus.CONFLICT),
    (NotFound, HTTPStatus.NOT_FOUND),
    (NotAllowed, HTTPStatus.FORBIDDEN),
    (Refused, HTTPStatus.CONFLICT),
    (Held, HTTPStatus.CONFLICT),
    (IllegalTransition, HTTPStatus.CONFLICT),
    (StaleVersion, HTTPStatus.CONFLICT),
    (UserError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (StoreUnavailable, HTTPStatus.SERVICE_UNAVAILABLE),
    (MachineTrouble, HTTPStatus.SERVICE_UNAVAILABLE),
)
"""The status of each kind of error; the first that fits counts."""


BY_CODE: Final = {"version_changed": HTTPStatus.PRECONDITION_FAILED, "answer_empty": HTTPStatus.BAD_REQUEST}
"""Causes whose status differs from that of their kind."""

HTTP_CODES: Final[Mapping[str, tuple[HTTPStatus, str]]] = {
    "address_too_long": (HTTPStatus.REQUEST_URI_TOO_LONG, "The path and the query are too long."),
    "bad_request": (HTTPStatus.BAD_REQUEST, "The body cannot be read."),
    "body_too_large": (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The body is larger than 1 MiB."),
    "body_too_slow": (HTTPStatus.REQUEST_TIMEOUT, "The body did not arrive in time."),
    "defect": (
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "Loopwright has a defect; the daemon's log has the details.",
    ),
    "head_too_large": (HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "The headers are too large."),
    "host_wrong": (HTTPStatus.MISDIRECTED_REQUEST, "The daemon does not answer to this host name."),
    "idempotency_key_wrong": (HTTPStatus.UNPROCESSABLE_ENTITY, "The `Idempotency-Key` is empty or too long."),
    "method_not_allowed": (HTTPStatus.METHOD_NOT_ALLOWED, "The path does not take this method."),
    "not_found": (HTTPStatus.NOT_FOUND, "No endpoint has this path."),
    "not_ready": (HTTPStatus.SERVICE_UNAVAILABLE, "The daemon cannot start work now."),
    "origin_wrong": (HTTPStatus.FORBIDDEN, "A page of another site sent the request."),
    "reply_not_kept": (
        HTTPStatus.CONFLICT,
        "The request was carried out, but its reply contained a secret and was not kept.",
    ),
    "request_wrong": (HTTPStatus.UNPROCESSABLE_ENTITY, "Fields are unknown, missing or wrong; see `errors`."),
    "token_missing": (HTTPStatus.UNAUTHORIZED, "The request has no token."),
    "token_unknown": (HTTPStatus.UNAUTHORIZED, "The token does not exist or was revoked."),
    "too_many_failed_logins": (HTTPStatus.TOO_MANY_REQUESTS, "The client sent too many wrong tokens."),
}
"""Causes that only HTTP has: the status, and what it means."""


class HttpProblem(Exception):
    """A request that HTTP itself refuses: no token, too large, unknown path."""

    def __init__(
        self, code: str, detail: str, *, hint: str = "", headers: Mapping[str, str] | None = None, **more: Any
    ) -> None:
        super().__init__(detail)
        self.status, _ = HTTP_CODES[code]
        self.code = code
        self.more = more
        self.detail = detail
        self.hint = hint
        self.headers = dict(headers or {})


class NotModified(Exception):
    """The client already has the document."""

    def __init__(self, tag: str) -> None:
        super().__init__(tag)
        self.tag = tag


def problem(
    status: HTTPStatus,
    code: str,
    detail: str,
    *,
    hint: str = "",
    headers: Mapping[str, str] | None = None,
    **more: Any,
) -> Response:
    """Return a problem document."""
    body: dict[str, Any] = {
        "type": f"urn:loopwright:error:{code}",
        "title": status.phrase,
        "status": int(status),
        "code": code,
        "detail": detail,
    }
    if hint:
        body["hint"] = hint
    return Response(
        json.dumps({**body, **more}, ensure_ascii=False),
        status_code=int(status),
        media_type=MEDIA_TYPE,
        headers=dict(headers or {}),
    )


def of_http(error: HttpProblem) -> Response:
    """Return the problem of a request that HTTP refuses."""
    return problem(
        error.status, error.code, error.detail, hint=error.hint, headers=error.headers, **error.more
    )


def status_of(kind: type[LoopwrightError]) -> HTTPStatus:
    """Return the status of a kind of error."""
    return next(
        (status for known, status in _STATUS if issubclass(kind, known)), HTTPStatus.INTERNAL_SERVER_ERROR
    )


def of_error(error: LoopwrightError) -> Response:
    """Return the problem of an error that a service raised."""
    status = BY_CODE.get(error.code) or status_of(type(error))
    more: dict[str, Any] = {}
    if isinstance(error, BadPlan):
        more["errors"] = [{"in": error.source, "message": one} for one in error.problems]
    if isinstance(error, Ambiguous):
        more["choices"] = [one.handle for one in error.choices]
    headers = {"Retry-After": "5"} if status is HTTPStatus.SERVICE_UNAVAILABLE else None
    hint = getattr(error, "hint", None) or ""
    return problem(status, error.code, str(error), hint=hint, headers=headers, **more)


def of_invalid(errors: list[dict[str, Any]]) -> Response:
    """Return the problem of a request whose parts have wrong types or values, each with its place."""
    located = [
        {"in": ".".join(map(str, one.get("loc", ()))), "message": str(one.get("msg", ""))} for one in errors
    ]
    first = located[0] if located else {"in": "request", "message": "is not valid"}
    return of_http(
        HttpProblem(
            "request_wrong",
            f"{first['in']}: {first['message']}",
            hint="the field `errors` lists every place",
            errors=located,
        )
    )


def of_defect(error: Exception, request_id: str) -> Response:
    """Return the problem of a defect, and log the details that the client must not see."""
    log.error("a request failed", exc_info=error, extra={"request_id": request_id})
    return of_http(
        HttpProblem(
            "defect",
            f"the server failed; the cause is in its log, under the request id {request_id}",
            hint="`loopwright doctor` checks this machine",
        )
    )
