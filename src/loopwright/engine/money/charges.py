"""What is charged to a limited token: the loops and plans that were created with it, and their cost."""

from collections.abc import Iterable
from dataclasses import dataclass

from loopwright.core.rows.access_rows import Charge, Token
from loopwright.core.rows.model import Loop, Plan
from loopwright.core.values.access import Bounds
from loopwright.core.values.errors import NotAllowed
from loopwright.core.values.states import ENDED_PLAN
from loopwright.core.values.wording import dollars, to_type
from loopwright.ports import Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSpending:
    """The cost of everything that is charged to a token, and its limit."""

    token: Token
    limit: int
    spent: int
    unknown: bool
    """Whether the cost of a run is unknown."""
    plans: frozenset[str]

    @property
    def left(self) -> int:
        """What may still be spent."""
        return self.limit - self.spent


def chain_of(tx: Tx, token_id: str) -> tuple[Token, ...]:
    """Return a token and the limited tokens that created it."""
    found: list[Token] = []
    known = tx.get(Token, token_id)
    while known is not None:
        found.append(known)
        known = tx.get(Token, known.maker_id) if known.maker_id else None
    return tuple(found)


def plans_of_token(tx: Tx, token_id: str) -> list[Plan]:
    """Return the plans that are charged to a token: created with it, or with a token that it created."""
    family, last = {token_id}, {token_id}
    while last:
        last = {one.id for one in tx.find(Token, maker_id=last)} - family
        family |= last
    charged = {one.subject_id for one in tx.find(Charge, token_id=family)}
    return tx.find(Plan, id=charged) if charged else []


def spending_of_token(tx: Tx, token: Token) -> TokenSpending | None:
    """Return what a token has spent of its limit; None without one."""
    if token.limit_micros is None:
        return None
    plans = plans_of_token(tx, token.id)
    return TokenSpending(
        token=token,
        limit=token.limit_micros,
        spent=sum(one.spent_micros for one in plans),
        unknown=any(one.unknown_costs for one in plans),
        plans=frozenset(one.id for one in plans),
    )


def spending_of_plan(tx: Tx, plan: Plan) -> TokenSpending | None:
    """Return the spending of the token that leaves a plan the least; None if no token limits it."""
    tokens = [one.token_id for one in tx.find(Charge, subject_id=plan.id)]
    return _tightest(tx, tokens)


def _tightest(tx: Tx, tokens: Iterable[str]) -> TokenSpending | None:
    chain = {one.id: one for token in tokens for one in chain_of(tx, token)}
    known = [found for one in chain.values() if (found := spending_of_token(tx, one)) is not None]
    return min(known, key=lambda one: (not one.unknown, one.left), default=None)


def depth_in(tx: Tx, plan_id: str) -> int | None:
    """Return how many levels of loops the agents of a plan may create; None if no token limits it."""
    return min(
        (one.depth for one in tx.find(Charge, subject_id=plan_id) if one.depth is not None), default=None
    )


def bounds_of_loop(tx: Tx, loop: Loop) -> Bounds | None:
    """Return the bounds under which a loop starts: those of the start request, else of its creation."""
    asked = (loop.start or {}).get("bounds")
    if asked is not None:
        return Bounds(**asked)
    return _bounds_of(tx, loop.id)


def bounds_of_plan(tx: Tx, plan: Plan) -> Bounds | None:
    """Return the bounds under which a plan was created."""
    return _bounds_of(tx, plan.id)


def _bounds_of(tx: Tx, subject_id: str) -> Bounds | None:
    made = next(iter(tx.find(Charge, subject_id=subject_id, order_by=("id",), limit=1)), None)
    if made is None:
        return None
    return Bounds(token_id=made.token_id, depth=None if made.depth is None else made.depth + 1)


def check_creation(tx: Tx, bounds: Bounds | None) -> None:
    """Refuse to create or start anything that costs money if the bounds leave nothing for it."""
    if bounds is None:
        return
    if bounds.depth == 0:
        raise NotAllowed(
            "no more levels of loops may be created with this token here",
            code="nesting_too_deep",
            hint="do the work in this run, or ask the owner for a token with a larger --nesting",
        )
    found = _tightest(tx, [bounds.token_id])
    if found is None:
        return
    if found.unknown:
        raise NotAllowed(
            f"the token {found.token.name!r} has a spending limit, and the cost of one of its runs is unknown",
            code="token_limit_reached",
            hint=f"the owner sets the limit again: `{to_type('tokens', 'limit', found.token.name, 'AMOUNT')}`",
        )
    if found.left <= 0:
        raise NotAllowed(
            f"the token {found.token.name!r} has spent {dollars(found.spent)} of {dollars(found.limit)}",
            code="token_limit_reached",
            hint=f"the owner raises it: `{to_type('tokens', 'limit', found.token.name, 'AMOUNT')}`",
        )


def check_spending(tx: Tx, bounds: Bounds | None, subjects: Iterable[str]) -> None:
    """Refuse to let a bounded caller continue work, unless one of these is charged to its token and it may spend."""
    if bounds is None:
        return
    check_creation(tx, bounds)
    if bounds.steers:
        return
    charged = [one.token_id for one in tx.find(Charge, subject_id=list(subjects))]
    if not any(bounds.token_id == one.id for token in charged for one in chain_of(tx, token)):
        raise NotAllowed(
            "this work was not created with your token, and a limited token can only continue its own",
            code="work_of_another_token",
            hint="create a loop with your token, or ask the owner to continue this work",
        )


def check_start(tx: Tx, bounds: Bounds | None, loop: Loop) -> None:
    """Refuse to let a bounded caller start a loop whose unfinished plan is charged to another token, or to none."""
    plan = tx.get(Plan, loop.plan_id) if loop.plan_id else None
    if plan is not None and plan.status not in ENDED_PLAN:
        check_spending(tx, bounds, [plan.id])
    else:
        check_creation(tx, bounds)


def charge(tx: Tx, bounds: Bounds | None, subject_id: str) -> None:
    """Charge a loop or a plan to the token that it is created with."""
    if bounds is not None:
        _insert(tx, bounds.token_id, subject_id, bounds.inner_depth)


def inherit_charges(tx: Tx, plan: Plan) -> None:
    """Charge a plan to the tokens of its loop, and of the plan that it was made for."""
    for one in tx.find(Charge, subject_id=[plan.loop_id, *filter(None, [plan.made_for])]):
        _insert(tx, one.token_id, plan.id, one.depth)


def _insert(tx: Tx, token_id: str, subject_id: str, depth: int | None) -> None:
    known = tx.get(Charge, f"{token_id}:{subject_id}")
    if known is None:
        tx.insert(
            Charge(id=f"{token_id}:{subject_id}", token_id=token_id, subject_id=subject_id, depth=depth)
        )
    elif depth is not None and (known.depth is None or known.depth > depth):
        tx.update(Charge, known.id, depth=depth)
