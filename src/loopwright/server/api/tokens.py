"""Tokens: make, list and revoke them."""

from datetime import datetime
from http import HTTPStatus

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from loopwright.core.values.access import Scope
from loopwright.core.values.errors import Refused
from loopwright.server.context import Admin, Home, Paging, Reader
from loopwright.server.shapes import NEXT, SnakeRequest
from loopwright.services.access import tokens
from loopwright.services.remote.pages import cut

router = APIRouter(prefix="/api/tokens", tags=["tokens"])


class TokenDocument(BaseModel):
    """A token, without the token itself."""

    id: str
    name: str
    scope: Scope
    projects: list[str] = Field(description="The projects that the token may see; empty for all projects.")
    spending_limit: int | None = Field(
        default=None,
        description="The limit for everything created with the token, in millionths of a dollar.",
    )
    spent: int | None = Field(default=None, description="Millionths of a dollar; null without a limit.")
    nesting: int | None = Field(
        default=None, description="How deep loops that are created with the token may be nested."
    )
    steers: bool = Field(
        default=False, description="Whether it may also continue work that was not created with it."
    )
    created_at: datetime
    revoked_at: datetime | None = None


class NewToken(SnakeRequest):
    """A token to make."""

    name: str = Field(min_length=1, max_length=64)
    scope: Scope = Scope.READ
    projects: list[str] = Field(default_factory=list, max_length=1000)
    spending_limit: int | None = Field(
        default=None, gt=0, le=10**15, description="Millionths of a dollar for everything created with it."
    )
    nesting: int | None = Field(
        default=None,
        ge=0,
        le=100,
        description="How deep loops that are created with the token may be nested.",
    )

    steers: bool = Field(default=False, description="Let it also continue work that was not created with it.")


class MadeToken(TokenDocument):
    """A new token."""

    token: str = Field(description="The secret token. It is shown only once.")


class TokenPage(BaseModel):
    """Some tokens."""

    tokens: list[TokenDocument]
    next: str | None = NEXT


@router.get("")
async def list_tokens(home: Home, caller: Admin, page: Paging) -> TokenPage:
    """List the tokens, the newest first; revoked ones too."""
    known = await tokens.list_tokens(home.at, within=caller.projects)
    found = cut(known, page, lambda one: (one.row.created_at.isoformat(), one.row.id))
    return TokenPage(tokens=list(map(_document, found.items)), next=found.next)


@router.post("", status_code=HTTPStatus.CREATED)
async def create_token(wanted: NewToken, response: Response, home: Home, caller: Admin) -> MadeToken:
    """Make a token."""
    response.headers["Cache-Control"] = "no-store"
    made = await tokens.create_token(
        home.at,
        wanted.name,
        scope=wanted.scope,
        projects=wanted.projects,
        limit=wanted.spending_limit,
        nesting=wanted.nesting,
        steers=wanted.steers,
        maker=caller,
    )
    return MadeToken(**_document(made.view).model_dump(), token=made.text)


@router.delete("/{token_id}")
async def revoke_token(token_id: str, home: Home, caller: Admin) -> TokenDocument:
    """Revoke a token."""
    return _document(await tokens.revoke_token(home.at, token_id, within=caller.projects))


class LoginLink(BaseModel):
    """A code that signs one browser in."""

    code: str = Field(description="For `/login?code=...`; it works once, within two minutes.")


@router.post("/login-links", status_code=HTTPStatus.CREATED)
async def create_login_link(request: Request, response: Response, home: Home, caller: Reader) -> LoginLink:
    """Make a code that signs a browser in as the holder of this token."""
    response.headers["Cache-Control"] = "no-store"
    token = request.headers.get("authorization", "").partition(" ")[2].strip()
    if not token:
        raise Refused(
            f"{caller.name} is signed in by a cookie, which makes no links",
            code="token_header_missing",
            hint="send the token in the header `Authorization: Bearer TOKEN`",
        )
    return LoginLink(code=home.links.make(token))


def _document(view: tokens.TokenView) -> TokenDocument:
    token = view.row
    return TokenDocument(
        id=token.id,
        name=token.name,
        scope=token.scope,
        projects=list(token.projects),
        spending_limit=token.limit_micros,
        spent=view.spent_micros,
        nesting=token.nesting,
        steers=token.steers,
        created_at=token.created_at,
        revoked_at=token.revoked_at,
    )
