"""Rows of the control plane: tokens, what is charged to them, and the replies that repeated requests get again."""

from dataclasses import dataclass
from datetime import datetime

from loopwright.core.values.access import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A bearer token. Only its hash is stored, so a copied database opens no door."""

    id: str
    name: str
    sha256: str
    scope: Scope
    projects: tuple[str, ...] = ()
    """The projects that it may see; empty for all of them."""
    created_at: datetime
    revoked_at: datetime | None = None
    limit_micros: int | None = None
    """What everything that is created with it may cost together, in millionths of a dollar."""
    nesting: int | None = None
    """How many levels of loops may be created with it from inside each other."""
    maker_id: str | None = None
    """The limited token that made it: what it spends counts for that one too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """A loop or a plan that was created with a limited token: what it costs counts for the token."""

    id: str
    """The token and the subject."""
    token_id: str
    subject_id: str
    """The loop or the plan."""
    depth: int | None = None
    """How many levels of loops its agents may create."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptReply:
    """The first reply to a request with an `Idempotency-Key`, so that a repeat gets it again and does nothing."""

    id: str
    """A hash of the token, the key, the method and the path."""
    request_sha256: str
    """Of the body: the same key with another body is a mistake of the client."""
    status: int = 0
    """The HTTP status; 0 while the first request is being carried out."""
    body: str = ""
    server: str = ""
    """The daemon that carries it out: if it dies, the outcome of the request is unknown."""
    created_at: datetime
