"""Sign in with a token: a cookie that no script can read and no other site can send."""

from typing import Annotated, Final

from fastapi import APIRouter, Form, Request
from starlette.responses import RedirectResponse, Response

from loopwright.server.context import Home
from loopwright.server.guard import COOKIE
from loopwright.server.pages.render import inside, page
from loopwright.services.access.tokens import caller_of

router = APIRouter(include_in_schema=False)

_A_MONTH_S: Final = 30 * 24 * 3600


@router.get("/login")
async def login_page(request: Request, home: Home, next: str = "/", code: str = "") -> Response:
    """Show the form; with the code of a link, sign in at once."""
    token = home.links.take(code) if code else None
    if token is not None:
        return _signed_in(request, token, next)
    return page(request, "login.html", next=inside(next), wrong=bool(code), signed_in=False)


@router.post("/login")
async def login(
    request: Request, home: Home, token: Annotated[str, Form()] = "", next: Annotated[str, Form()] = "/"
) -> Response:
    """Sign in with a token."""
    if await caller_of(home.at, token.strip()) is None:
        return page(request, "login.html", next=inside(next), wrong=True, signed_in=False)
    return _signed_in(request, token.strip(), next)


@router.post("/logout")
async def logout() -> Response:
    """Sign out."""
    reply = RedirectResponse("/login", status_code=303)
    reply.delete_cookie(COOKIE)
    return reply


def _signed_in(request: Request, token: str, wanted: str) -> Response:
    reply = RedirectResponse(inside(wanted), status_code=303)
    reply.set_cookie(
        COOKIE,
        token,
        max_age=_A_MONTH_S,
        httponly=True,
        samesite="lax",
        secure=request.url.scheme == "https",
    )
    return reply
