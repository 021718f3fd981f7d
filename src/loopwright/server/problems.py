"""Errors as RFC 9457 problems: one `application/problem+json` document for each cause, with the services' codes."""

import json
import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from starlette.responses import Response

from loopwright.core.values.errors import (
    Ambiguous,
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


_BY_CODE: Final = {"version_changed": HTTPStatus.PRECONDITION_FAILED}
"""Causes whose status differs from that of their kind."""


class HttpProblem(Exception):
    """A request that HTTP itself refuses: no token, too large, unknown path."""

    def __init__(
        self,
        status: HTTPStatus,
        code: str,
        detail: str,
        *,
        hint: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.hint = hint
        self.headers = dict(headers or {})


class NotModified(Exception):
    """The client has the document already."""

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
    return problem(error.status, error.code, error.detail, hint=error.hint, headers=error.headers)


def of_error(error: LoopwrightError) -> Response:
    """Return the problem of an error that a service raised."""
    status = _BY_CODE.get(error.code) or next(
        (status for kind, status in _STATUS if isinstance(error, kind)), HTTPStatus.INTERNAL_SERVER_ERROR
    )
    more: dict[str, Any] = {}
    if problems := getattr(error, "problems", ()):
        more["problems"] = list(problems)
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
    return problem(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "request_wrong",
        f"{first['in']}: {first['message']}",
        hint="the field `errors` lists every place",
        errors=located,
    )


def of_defect(error: Exception, request_id: str) -> Response:
    """Return the problem of a defect, and log what only the log may say."""
    log.error("a request failed", exc_info=error, extra={"request_id": request_id})
    return problem(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "defect",
        "the server failed; the cause is in its log",
        hint="`loopwright doctor` checks this machine",
    )
