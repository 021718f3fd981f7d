"""The HTTP application: routes, errors, the guard in front, and the feed of events behind."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection, Mapping
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route

from loopwright import __version__
from loopwright.core.rows.events import RecordedEvent
from loopwright.core.values.errors import LoopwrightError
from loopwright.server import problems
from loopwright.server.api import (
    actions,
    attention,
    discoveries,
    events,
    figures,
    health,
    inspection,
    lessons,
    locks,
    loops,
    plans,
    projects,
    questions,
    results,
    runs,
    templates,
    tokens,
    webhooks,
)
from loopwright.server.context import Limits, Served
from loopwright.server.feed import Feed
from loopwright.server.guard import OPEN_PATHS, FailedLogins, Guard
from loopwright.server.journal import Figures, Journal
from loopwright.server.mcp import endpoint
from loopwright.server.pages import demo, files, palette, session
from loopwright.server.pages import home as pages_home
from loopwright.server.pages import lessons as pages_lessons
from loopwright.server.pages import loops as pages_loops
from loopwright.server.pages import plans as pages_plans
from loopwright.server.pages import projects as pages_projects
from loopwright.server.pages import runs as pages_runs
from loopwright.server.pages import system as pages_system
from loopwright.server.pages import webhooks as pages_webhooks
from loopwright.server.pages.errors import shown
from loopwright.server.repeats import Repeats
from loopwright.server.shapes import Problem, event_document
from loopwright.services.access.tokens import caller_of
from loopwright.services.homes.session import Session
from loopwright.services.issues.watching import IssueWatch
from loopwright.services.remote.drafting import planner
from loopwright.services.remote.starting import starter
from loopwright.services.roles.delegating import Orchestrators
from loopwright.services.roles.managing import Managers
from loopwright.services.webhooks.sending import Sender

_PARTS = (
    health,
    projects,
    templates,
    loops,
    plans,
    results,
    runs,
    questions,
    actions,
    events,
    inspection,
    figures,
    attention,
    discoveries,
    lessons,
    locks,
    tokens,
    webhooks,
)
_PAGES = (
    files,
    session,
    palette,
    demo,
    pages_home,
    pages_projects,
    pages_loops,
    pages_plans,
    pages_runs,
    pages_lessons,
    pages_system,
    pages_webhooks,
)
_SUMMARY = "Create, watch, steer and answer loops of coding agents."

_PROBLEMS: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": Problem, "description": "The request failed; `code` names the cause."},
    "5XX": {"model": Problem, "description": "The server failed."},
}

_REFUSALS: Final = {
    "not_found": "no endpoint has the path {0.url.path}",
    "method_not_allowed": "{0.url.path} does not take {0.method}",
}
"""What to say about requests that no endpoint takes."""


def make_app(at: Session, *, hosts: Collection[str], limits: Limits | None = None) -> FastAPI:
    """Return the application for an open home."""
    feed = Feed(at, events.message)
    counted = Figures()
    limits = limits or Limits()
    orchestrators = Orchestrators(at)
    app = describe()
    tools = endpoint.Endpoint(app, hosts)
    app.router.routes.append(Route(endpoint.PATH, tools))

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await feed.open()
        background = [
            asyncio.create_task(feed.run(), name="feed"),
            asyncio.create_task(starter(at).run(), name="starter"),
            asyncio.create_task(planner(at).run(), name="planner"),
            asyncio.create_task(Sender(at, _rendered).run(), name="webhooks"),
            asyncio.create_task(IssueWatch(at).run(), name="issues"),
            asyncio.create_task(Managers(at).run(), name="managers"),
            asyncio.create_task(tools.run(), name="mcp"),
        ]
        try:
            yield
        finally:
            for task in background:
                task.cancel()
            await asyncio.wait(background)
            await orchestrators.close()

    app.router.lifespan_context = lifespan
    app.state.served = Served(at=at, feed=feed, figures=counted, limits=limits, orchestrators=orchestrators)
    app.add_middleware(Repeats, at=at)
    app.add_middleware(
        Guard,
        find_caller=lambda token, origin: caller_of(at, token, origin),
        hosts=hosts,
        failed=FailedLogins(),
        body_s=limits.body_s,
    )
    app.add_middleware(Journal, figures=counted)  # the outermost: it notes what the guard refuses too
    return app


def _rendered(event: RecordedEvent) -> Mapping[str, Any]:
    return event_document(event).model_dump(mode="json", by_alias=True)


def describe() -> FastAPI:
    """Return the application without a home: enough to describe every endpoint."""
    app = FastAPI(
        title="Loopwright",
        version=__version__,
        summary=_SUMMARY,
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        responses=_PROBLEMS,
    )
    for part in (*_PARTS, *_PAGES):
        app.include_router(part.router)
    document = app.openapi
    app.openapi = lambda: _completed(document())  # type: ignore[method-assign] # as FastAPI advises
    app.add_exception_handler(LoopwrightError, _of_error)
    app.add_exception_handler(problems.HttpProblem, _of_http)
    app.add_exception_handler(RequestValidationError, _of_invalid)
    app.add_exception_handler(HTTPException, _of_starlette)
    app.add_exception_handler(problems.NotModified, _of_unmodified)
    return app


def _completed(document: dict[str, Any]) -> dict[str, Any]:
    """Add what FastAPI cannot say: the media type of problems, and where the token goes."""
    for operation in (one for path in document["paths"].values() for one in path.values()):
        for status in _PROBLEMS:
            reply = operation["responses"][status]
            [shape] = reply["content"].values()
            reply["content"] = {problems.MEDIA_TYPE: shape}
    document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{"token": []}]
    for path in OPEN_PATHS & document["paths"].keys():
        document["paths"][path]["get"]["security"] = []
    return document


async def _of_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, LoopwrightError)
    return shown(request, problems.of_error(error))


async def _of_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, problems.HttpProblem)
    return shown(request, problems.of_http(error))


async def _of_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    found: list[dict[str, Any]] = list(error.errors())
    return shown(request, problems.of_invalid(found))


async def _of_starlette(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "_")
    said = _REFUSALS[code].format(request) if code in _REFUSALS else str(error.detail)
    refused = problems.HttpProblem(code, said, headers=error.headers)
    return shown(request, problems.of_http(refused))


async def _of_unmodified(_: Request, error: Exception) -> Response:
    assert isinstance(error, problems.NotModified)
    return Response(status_code=HTTPStatus.NOT_MODIFIED, headers={"ETag": error.tag})
