"""Make, list and revoke tokens, and find the caller of one."""

import hmac
import os
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from loopwright.adapters.machine.host import new_id
from loopwright.core.rows.access_rows import Token
from loopwright.core.rows.model import Project
from loopwright.core.values.access import Caller, Scope
from loopwright.core.values.errors import NotAllowed, NotFound, Refused, UserError
from loopwright.core.values.ids import Kind
from loopwright.ports import Tx
from loopwright.services.homes.session import Session

__all__ = [
    "FILE",
    "NewToken",
    "Token",
    "caller_of",
    "create_token",
    "first_token",
    "list_tokens",
    "revoke_token",
]

PREFIX: Final = "lw_"
"""Every token begins with this, so that secret scanners can find one."""
FIRST: Final = "owner"
"""The name of the token that the first start of the daemon makes."""
FILE: Final = "api-token"
"""The file in the home with that token; only you can read it."""
_LONGEST_NAME: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken:
    """A token that was just made."""

    row: Token
    text: str
    """The token itself. It is shown once and stored nowhere."""


async def create_token(
    at: Session,
    name: str,
    *,
    scope: Scope = Scope.READ,
    projects: Collection[str] = (),
    within: frozenset[str] | None = None,
) -> NewToken:
    """Make a token for some projects, or for all of them; it reaches no further than `within`, its maker's projects."""
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

    def insert(tx: Tx) -> Token:
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
        )
        tx.insert(token)
        return token

    return NewToken(row=await at.home.store.transact("token.create", insert), text=text)


async def list_tokens(at: Session, *, within: frozenset[str] | None = None) -> tuple[Token, ...]:
    """Return all tokens that reach no further than `within`, the newest first; revoked ones too."""
    found = await at.home.store.read(lambda tx: tx.find(Token, order_by=("-created_at",)))
    return tuple(one for one in found if _is_within(one, within))


async def revoke_token(at: Session, token_id: str, *, within: frozenset[str] | None = None) -> Token:
    """Revoke a token; revoking it twice is the same as once."""

    def revoke(tx: Tx) -> Token:
        token = tx.get(Token, token_id)
        if token is None or not _is_within(token, within):
            raise NotFound(f"there is no token {token_id}", code="token_not_found")
        return token if token.revoked_at else tx.update(Token, token.id, revoked_at=tx.now())

    return await at.home.store.transact("token.revoke", revoke)


async def caller_of(at: Session, text: str) -> Caller | None:
    """Return the caller with this token; None if it is unknown or revoked."""
    wanted = _hash(text)
    found = await at.home.store.read(lambda tx: tx.find(Token, sha256=wanted, revoked_at=None, limit=1))
    # The look-up is by hash; the comparison takes the same time wherever two hashes differ.
    token = next((one for one in found if hmac.compare_digest(one.sha256, wanted)), None)
    if token is None:
        return None
    projects = frozenset(token.projects) or None
    return Caller(token_id=token.id, name=token.name, scope=token.scope, projects=projects)


async def first_token(at: Session) -> Path:
    """Make the owner's token if the home has none, and return the file that holds it."""
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
