"""Create, list and revoke tokens, and find the caller of one."""

import asyncio
import hmac
import os
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from loopwright.adapters.machine.host import new_id
from loopwright.config.kinds import DOLLARS, WrongValue
from loopwright.core.rows.access_rows import Token
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Plan, Project, Run
from loopwright.core.values.access import OWNER, Bounds, Caller, Scope
from loopwright.core.values.errors import NotAllowed, NotFound, Refused, UserError
from loopwright.core.values.ids import Kind
from loopwright.core.values.states import ENDED_PLAN
from loopwright.core.values.wording import dollars
from loopwright.engine.money.charges import chain_of, depth_in, plans_of_token, spending_of_token
from loopwright.engine.rows.reservations import freed
from loopwright.ports import Tx
from loopwright.services.access.nesting import Address, run_of_client
from loopwright.services.homes.context import actor
from loopwright.services.homes.session import Session

__all__ = [
    "FILE",
    "NewToken",
    "Origin",
    "Token",
    "TokenView",
    "caller_of",
    "create_token",
    "first_token",
    "list_tokens",
    "read_limit",
    "revoke_token",
    "set_limit",
]

PREFIX: Final = "lw_"
"""Every token begins with this, so that secret scanners can find one."""
FIRST: Final = "owner"
"""The name of the token that the daemon creates on its first start."""
FILE: Final = "api-token"
"""The file in the home with that token; only you can read it."""
_LONGEST_NAME: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken:
    """A new token."""

    view: "TokenView"
    text: str
    """The token itself. It is shown once and stored nowhere."""


async def create_token(
    at: Session,
    name: str,
    *,
    scope: Scope = Scope.READ,
    projects: Collection[str] = (),
    limit: int | None = None,
    nesting: int | None = None,
    steers: bool = False,
    maker: Caller = OWNER,
) -> NewToken:
    """Create a token for some projects, or for all of them; it allows no more than its creator's token.

    `limit` is the most that everything created with it may cost, in millionths of a dollar, and `nesting` how
    many levels of nested loops may be created with it. With `steers` it may also continue work of its projects
    that was not created with it.
    """
    within = maker.projects
    nesting = _nesting_within(maker.bounds, nesting)
    if not name.strip() or len(name) > _LONGEST_NAME or not name.isprintable():
        raise UserError(
            f"{name!r} cannot be the name of a token",
            code="token_name_wrong",
            hint=f"use 1 to {_LONGEST_NAME} printable characters",
        )
    if within is not None and not projects:
        raise NotAllowed(
            "your token sees some projects only, so it cannot make a token for all of them",
            code="token_reaches_too_far",
            hint="name the projects",
        )
    text = PREFIX + secrets.token_urlsafe(32)

    def insert(tx: Tx) -> TokenView:
        if tx.find(Token, name=name, revoked_at=None, limit=1):
            raise Refused(
                f"there is already a token named {name!r}",
                code="token_name_taken",
                hint="choose another name, or revoke that token first",
            )
        for project in projects:
            if tx.get(Project, project) is None or (within is not None and project not in within):
                raise NotFound(f"there is no project {project}", code="project_not_found")
        token = Token(
            id=new_id(Kind.TOKEN),
            name=name,
            sha256=_hash(text),
            scope=scope,
            projects=tuple(sorted(projects)),
            created_at=tx.now(),
            limit_micros=limit,
            nesting=nesting,
            steers=steers and (maker.bounds is None or maker.bounds.steers),
            maker_id=maker.bounds.token_id if maker.bounds is not None else None,
        )
        tx.insert(token)
        return token_view(tx, token)

    return NewToken(view=await at.home.store.transact("token.create", insert), text=text)


def read_limit(text: str) -> int | None:
    """Read a spending limit in dollars; None for `off`."""
    try:
        limit: int | None = DOLLARS.read(text)
    except WrongValue as wrong:
        raise UserError(
            f"a spending limit is wrong: {wrong}", code="flag_value_wrong", hint="name dollars, such as 5"
        ) from wrong
    return limit


def _nesting_within(bounds: Bounds | None, wanted: int | None) -> int | None:
    """Return the nesting depth of a token that is created under these bounds: at least one less than theirs."""
    if bounds is None or bounds.depth is None:
        return wanted
    most = bounds.depth - 1
    if most < 0 or (wanted is not None and wanted > most):
        raise NotAllowed(
            f"your token has the nesting depth {bounds.depth} here, so a token that it makes has {most} at most"
            if most >= 0
            else "your token has the nesting depth 0 here, so it makes no tokens",
            code="nesting_too_deep",
        )
    return most if wanted is None else wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenView:
    """A token, and what it has spent."""

    row: Token
    spent_micros: int | None
    """By everything that was created with it; None without a limit."""


async def list_tokens(at: Session, *, within: frozenset[str] | None = None) -> tuple[TokenView, ...]:
    """Return all tokens that allow no more than `within`, the newest first; revoked ones too."""

    def load(tx: Tx) -> tuple[TokenView, ...]:
        found = tx.find(Token, order_by=("-created_at",))
        return tuple(token_view(tx, one) for one in found if _is_within(one, within))

    return await at.home.store.read(load)


def token_view(tx: Tx, token: Token) -> TokenView:
    """Return a token with what it has spent."""
    spending = spending_of_token(tx, token)
    return TokenView(row=token, spent_micros=spending.spent if spending is not None else None)


async def set_limit(at: Session, token_id: str, limit: int | None) -> TokenView:
    """Change the most that everything created with a token may cost; None removes the limit.

    Like every new limit it accepts the spending so far, known or not.
    """

    def change(tx: Tx) -> TokenView:
        token = tx.get(Token, token_id)
        if token is None:
            raise NotFound(f"there is no token {token_id}", code="token_not_found")
        said = f"{token.name}: {'none' if limit is None else dollars(limit)}"
        token = tx.update(Token, token.id, limit_micros=limit)
        charged = plans_of_token(tx, token.id)
        for plan in charged:
            if plan.unknown_costs:
                tx.update(Plan, plan.id, unknown_costs=0)
            if plan.status not in ENDED_PLAN:
                tx.append(happened("limits_set", actor(), plan=plan, changes=[f"token {said}"]))
        for project in {plan.project_id for plan in charged}:
            freed(tx, project)
        return token_view(tx, token)

    return await at.home.store.transact("token.limit", change)


async def revoke_token(at: Session, token_id: str, *, within: frozenset[str] | None = None) -> TokenView:
    """Revoke a token; revoking it again changes nothing."""

    def revoke(tx: Tx) -> TokenView:
        token = tx.get(Token, token_id)
        if token is None or not _is_within(token, within):
            raise NotFound(f"there is no token {token_id}", code="token_not_found")
        if token.revoked_at is None:
            token = tx.update(Token, token.id, revoked_at=tx.now())
        return token_view(tx, token)

    return await at.home.store.transact("token.revoke", revoke)


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a request comes from."""

    run_id: str | None = None
    """The run that it says it was sent from."""
    client: Address | None = None
    server: Address | None = None


async def caller_of(at: Session, text: str, origin: Origin | None = None) -> Caller | None:
    """Return the caller with this token; None if it is unknown or revoked."""
    origin = origin or Origin()
    wanted = _hash(text)
    chain = await at.home.store.read(lambda tx: _known(tx, wanted))
    if not chain:
        return None
    token = chain[0]
    depth = min((one.nesting for one in chain if one.nesting is not None), default=None)
    run_id = origin.run_id
    if run_id is None and depth is not None and origin.client is not None and origin.server is not None:
        # A program that does not name a run may still be inside one.
        run_id = await asyncio.to_thread(run_of_client, origin.client, origin.server)
    if run_id is not None:
        depth = await at.home.store.read(lambda tx: _depth_inside(tx, run_id, depth))
    is_limited = depth is not None or any(one.limit_micros is not None for one in chain)
    return Caller(
        token_id=token.id,
        name=token.name,
        scope=token.scope,
        projects=frozenset(token.projects) or None,
        bounds=Bounds(token_id=token.id, depth=depth, steers=token.steers, run_id=run_id)
        if is_limited
        else None,
    )


def _known(tx: Tx, wanted: str) -> tuple[Token, ...]:
    """Return the token with this hash, and the limited tokens that created it."""
    for found in tx.find(Token, sha256=wanted, revoked_at=None, limit=1):
        # The look-up is by hash; the comparison takes the same time wherever two hashes differ.
        if hmac.compare_digest(found.sha256, wanted):
            return chain_of(tx, found.id)
    return ()


def _depth_inside(tx: Tx, run_id: str, depth: int | None) -> int:
    """Return how many levels of loops may be created from inside a run; none unless a token allows it."""
    run = tx.get(Run, run_id)
    own = depth_in(tx, run.plan_id) if run is not None else None
    return min((one for one in (depth, own) if one is not None), default=0)


async def first_token(at: Session) -> Path:
    """Create the owner's token if the home has none, and return the file that contains it."""
    file = at.home.root / FILE
    known = await at.home.store.read(lambda tx: tx.find(Token, name=FIRST, revoked_at=None, limit=1))
    if known and file.is_file() and hmac.compare_digest(_hash(file.read_text().strip()), known[0].sha256):
        return file
    for old in known:
        await revoke_token(at, old.id)
    made = await create_token(at, FIRST, scope=Scope.ADMIN)
    written = file.with_name(f".{FILE}.{os.getpid()}")
    written.unlink(missing_ok=True)
    descriptor = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as out:
        out.write(made.text + "\n")
    written.replace(file)
    return file


def _is_within(token: Token, projects: frozenset[str] | None) -> bool:
    return projects is None or (bool(token.projects) and projects.issuperset(token.projects))


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()
