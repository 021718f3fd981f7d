"""Keep the first reply to a request with an `Idempotency-Key`, and give it to every repeat."""

from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from typing import Final

from loopwright.core.rows.access_rows import KeptReply
from loopwright.core.values.errors import Refused, UserError
from loopwright.ports import Tx
from loopwright.services.homes.session import Session

KEPT_FOR: Final = timedelta(days=1)
_PRUNED: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request that a client may repeat."""

    token_id: str
    key: str
    method: str
    path: str
    body: bytes

    @property
    def id(self) -> str:
        """Return the id of its reply."""
        return sha256("\n".join((self.token_id, self.key, self.method, self.path)).encode()).hexdigest()


async def begin(at: Session, request: Request, server: str) -> KeptReply | None:
    """Record that a request is being carried out; return the stored reply of an earlier one.

    Raise if the same key came with another body, or if the first request has no reply yet.
    """
    wanted = sha256(request.body).hexdigest()

    def note(tx: Tx) -> KeptReply | None:
        known = tx.get(KeptReply, request.id)
        if known is None:
            _prune(tx)
            tx.insert(KeptReply(id=request.id, request_sha256=wanted, server=server, created_at=tx.now()))
            return None
        if known.request_sha256 != wanted:
            raise UserError(
                "this Idempotency-Key was used with another body",
                code="idempotency_key_reused",
                hint="use a new key for a new request",
            )
        if known.status:
            return known
        raise Refused(
            "the daemon failed or ended while it carried this request out, so its effect is unknown",
            code="request_outcome_unknown",
            hint="look at what is there, then repeat the request with a new Idempotency-Key",
        )

    return await at.home.store.transact("reply.begin", note)


async def keep(at: Session, request: Request, status: int, body: str) -> None:
    """Store the reply to a request."""
    await at.home.store.transact(
        "reply.keep", lambda tx: tx.update(KeptReply, request.id, status=status, body=body)
    )


def _prune(tx: Tx) -> None:
    oldest = tx.find(KeptReply, order_by=("created_at",), limit=_PRUNED)
    for old in oldest:
        if old.created_at < tx.now() - KEPT_FOR:
            tx.delete(KeptReply, old.id)
