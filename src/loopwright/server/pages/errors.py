"""Errors as pages, for browsers."""

import json
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response

from loopwright.server.pages.render import page


def shown(request: Request, problem: Response) -> Response:
    """Return a problem as a page if a browser asked for a page, else as it is."""
    if request.url.path.startswith("/api/") or "text/html" not in request.headers.get("accept", ""):
        return problem
    said = json.loads(bytes(problem.body))
    return page(
        request,
        "error.html",
        status=HTTPStatus(problem.status_code),
        said=said,
        request_path=request.url.path,
        asks=0,
    )
