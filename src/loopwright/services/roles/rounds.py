"""One run of a manager or an orchestrator: a plan of one task, whose agent gets the tools for loops and a token."""

import secrets
from dataclasses import dataclass
from typing import Any, Final

from loopwright.adapters.agents.loop_tools import forget_token, keep_token
from loopwright.core.policy import fallback
from loopwright.core.rows.access_rows import Token
from loopwright.core.rows.model import Loop, Plan, Project, Role
from loopwright.core.values.access import Bounds, Caller, Scope
from loopwright.core.values.errors import NotFound
from loopwright.core.values.policy import Answering
from loopwright.core.values.states import ENDED_PLAN, PlanState
from loopwright.ports import Tx
from loopwright.services.access.tokens import NewToken, create_token, revoke_token, set_limit
from loopwright.services.daemon.note import running
from loopwright.services.driving.driver import Rested
from loopwright.services.homes.context import glance_at, needed_place, settings_for
from loopwright.services.homes.session import Session, opened
from loopwright.services.plans.agent_answers import Answered, Asked, Who, ask
from loopwright.services.preflight.checks import check_accounts, check_named, check_sandbox, who_works
from loopwright.services.preflight.run_inputs import check_prompts, project_settings
from loopwright.services.remote.seen import acting_as

KIND: Final = "role"
"""The source kind of the loops of these agents."""
NESTING: Final = 3
"""Its own run, the loops that it creates, and nothing deeper."""
_KEYS: Final = {Role.MANAGER: "manage", Role.ORCHESTRATOR: "orchestrate"}
_TICK_S: Final = 5.0
_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"summary": {"type": "string", "description": "What you did and why, in a few sentences."}},
    "required": ["summary"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What one run is for."""

    role: Role
    title: str
    text: str
    """What the agent is told: a goal, or what happened."""
    agent: str
    """Optionally with a model after a colon."""
    max_cost: int | None
    spending: int | None


def source_of(role: Role) -> str:
    """Return what identifies the loop of a role in a project."""
    return f"{KIND}:{role.value}"


def rounds_of(tx: Tx, project_id: str, role: Role) -> list[Plan]:
    """Return the runs of a role in a project, the newest first."""
    loops = [
        one.id
        for one in tx.find(Loop, project_id=project_id, source_kind=KIND)
        if one.source_path.startswith(source_of(role))
    ]
    return tx.find(Plan, loop_id=loops, order_by=("-created_at",)) if loops else []


async def begin(at: Session, project: Project, wanted: Round, by: Caller | None = None) -> Answered:
    """Let a role work once, and return what it came to; it waits while the daemon's worker drives it.

    `by` asked for it with a limited token, which is charged for everything that follows.
    """
    daemon = running(at.home.root)
    if daemon is None:
        raise NotFound("no daemon runs here", code="daemon_missing", hint="start it: `loopwright up`")
    maker = by if by is not None and by.bounds is not None else await _purse(at, project, wanted)
    made: NewToken = await create_token(
        at,
        f"{wanted.role.value} {secrets.token_hex(4)}",
        scope=Scope.OPERATE,
        projects=(project.id,),
        steers=True,
        maker=maker,
    )
    name = made.view.row.id
    keep_token(at.home.root, name, url=daemon.url, token=made.text)
    try:
        with acting_as(at, maker.actor, project, maker.bounds):
            return await _ask(wanted, name)
    finally:
        forget_token(at.home.root, name)
        await revoke_token(at, name)


async def _purse(at: Session, project: Project, wanted: Round) -> Caller:
    """Return the holder of the token that all runs of a role in a project spend from; it is given to no agent."""
    name = f"{wanted.role.value} of {project.name}"[:64]

    def find(tx: Tx) -> Token | None:
        known = tx.find(Token, name=name, revoked_at=None)
        return next((one for one in known if one.projects == (project.id,)), None)

    known = await at.home.store.read(find)
    if known is None:
        made = await create_token(
            at,
            name,
            scope=Scope.OPERATE,
            projects=(project.id,),
            limit=wanted.spending,
            nesting=NESTING,
            steers=True,
        )
        known = made.view.row
    elif known.limit_micros != wanted.spending:
        await set_limit(at, known.id, wanted.spending)
    return Caller(
        token_id=known.id,
        name=known.name,
        scope=Scope.OPERATE,
        projects=frozenset({project.id}),
        bounds=Bounds(token_id=known.id, depth=NESTING, steers=True),
    )


async def _ask(wanted: Round, token: str) -> Answered:
    place = needed_place()
    with glance_at(place.root) as repository:
        base = await repository.base()
        found = await project_settings(repository, base.sha, place)
        await check_prompts(repository, base.sha, place)
    most = "off" if wanted.max_cost is None else f"{wanted.max_cost / 1_000_000:.6f}"
    settings = settings_for(flags={"max_cost": most, "autonomy": "auto"}, project_text=found.text)
    agent, model = fallback.named(wanted.agent)
    check_named(settings, f"{wanted.role.value}.agent", agent, model)
    check_accounts(settings, who_works(settings, agent))
    check_sandbox(settings)
    asked = Asked(
        key=_KEYS[wanted.role],
        title=wanted.title,
        text=wanted.text,
        answering=Answering(
            role=wanted.role.value,
            file=f"loopwright-{wanted.role.value}.json",
            fence=f"loopwright-{wanted.role.value}",
            schema=_SCHEMA,
            asks=False,
            acts=token,
        ),
        check="the report is JSON",
        arguments=("json.tool",),
        source=source_of(wanted.role),
        new=True,
    )
    async with opened(settings) as at:
        return await ask(at, place, base, asked, Who(agent=agent, model=model, fallback=False), _until_ended)


async def _until_ended(at: Session, plan: Plan, _submitter: str) -> Rested:
    """Wait until a plan has ended: the daemon's worker drives it."""

    def status(tx: Tx) -> PlanState | None:
        row = tx.get(Plan, plan.id)
        return row.status if row is not None else None

    while (state := await at.home.store.read(status)) is not None and state not in ENDED_PLAN:
        await at.home.store.changed(_TICK_S)
    return Rested(plan_id=plan.id)
