"""Rows for access control: tokens, the cost charged to them, and stored replies for repeated requests."""

from dataclasses import dataclass
from datetime import datetime

from loopwright.core.values.access import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A bearer token. Only its hash is stored, so a copied database gives no access."""

    id: str
    name: str
    sha256: str
    scope: Scope
    projects: tuple[str, ...] = ()
    """The projects that it can see; empty for all of them."""
    created_at: datetime
    revoked_at: datetime | None = None
    limit_micros: int | None = None
    """The most that everything created with it may cost together, in millionths of a dollar."""
    nesting: int | None = None
    """How many levels of nested loops may be created with it."""
    maker_id: str | None = None
    """The limited token that created it, which is charged for its spending too."""
    steers: bool = False
    """Whether it may also continue work of its projects that was not created with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """A loop or a plan that was created with a limited token: the token is charged for its cost."""

    id: str
    """The token and the subject."""
    token_id: str
    subject_id: str
    """The loop or the plan."""
    depth: int | None = None
    """How many levels of loops its agents may create."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptReply:
    """The first reply to a request with an `Idempotency-Key`: a repeated request gets it again and has no effect."""

    id: str
    """A hash of the token, the key, the method and the path."""
    request_sha256: str
    """The hash of the body: the same key with another body is a mistake of the client."""
    status: int = 0
    """The HTTP status; 0 while the first request is running."""
    body: str = ""
    server: str = ""
    """The daemon that handles it: if it dies, the result of the request is unknown."""
    created_at: datetime
