"""Accounts as rows: which runs use them, what closes them, and what opens them again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from loopwright.core.policy.quotas import (
    SPREAD,
    Admission,
    because,
    concerns,
    envelope_id,
    label,
    needs_person,
    newest,
    noticeable,
    to_do,
)
from loopwright.core.policy.retry import Failed, pause_until
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import AUTHORS, Attempt, Command, Plan, Run
from loopwright.core.rows.waiting_rows import Envelope, QuotaWindow
from loopwright.core.values.accounts import ACCOUNT, Account, Accounts, account_named
from loopwright.core.values.errors import BadConfig, NotFound, Refused
from loopwright.core.values.failures import RULES
from loopwright.core.values.states import ENVELOPE, AttemptState, EnvelopeState, step
from loopwright.engine.rows.moves import MACHINE, cancel_attempt, move_attempt, need
from loopwright.engine.rows.world import World
from loopwright.ports import Ids, Invocation, Tx

# How an account changes the start of an agent.


def account(accounts: Accounts, agent: str, name: str | None) -> Account:
    """Return the account that a run uses; raise if the settings of this machine do not contain it."""
    found = account_named(accounts, agent, name)
    if found is None:
        raise BadConfig(
            f"the agent {agent} has no account named {name} on this machine",
            code="account_unknown",
            hint=f"name it in your config.toml as [agents.{agent}.accounts.{name}]",
        )
    return found


def drawing(invocation: Invocation, agent: str, account: Account) -> Invocation:
    """Return how an agent that uses this account is started."""
    if not account.home and not account.variables:
        return invocation
    variable = next((one.moved_by for one in invocation.home if one.moved_by), None)
    if account.home and variable is None:
        raise BadConfig(
            f"the agent {agent} cannot be given another config home: account {account.name} has one",
            code="account_home_conflict",
            hint=f"give the account `variables` instead, such as its key, or take out "
            f"agents.{agent}.accounts.{account.name}.home",
        )
    # Another login of the user would override the login in the account's own home.
    given = tuple(name for name in invocation.inherit if name not in invocation.credentials)
    invocation = replace(invocation, inherit=given, renamed=account.variables)
    if variable is None or not account.home:
        return invocation
    return replace(invocation, env={**invocation.env, variable: account.home})


_FINDING_OUT: Final = frozenset({AttemptState.PREPARING, AttemptState.WORKING})


def standing(tx: Tx) -> Mapping[str, Envelope]:
    """Return every quota window with its current state; a probe without a live leg does not count."""
    found = {one.id: one for one in tx.find(Envelope)}
    for envelope in [one for one in found.values() if one.probe is not None]:
        probe = tx.get(Attempt, envelope.probe or "")
        if probe is None or probe.state not in _FINDING_OUT or probe.wait_reason:
            found[envelope.id] = replace(envelope, probe=None, probed_at=None)
    return found


def names(accounts: Accounts) -> dict[str, Sequence[str]]:
    """Return the names of the accounts in the settings, in their order, by agent."""
    return {agent: [one.name for one in several] for agent, several in accounts.items()}


def account_of(tx: Tx, accounts: Accounts, attempt: Attempt, run: Run) -> str | None:
    """Return the account that a run should use now; None if all of its agent's are closed to it."""
    admission = Admission(standing(tx), tx.now(), names(accounts))
    agent = run.agent or attempt.agent
    return admission.account(agent, attempt.id, _stays(attempt, run), model=run.model)


def _stays(attempt: Attempt, run: Run) -> str | None:
    # An agent cannot continue the conversation of another agent, and a reviewer has its own.
    own = run.role in AUTHORS and attempt.agent == run.agent
    return attempt.account if own else None


def begin_probe(tx: Tx, id: str, attempt: Attempt) -> None:
    """Let one attempt find out whether a closed envelope is open again."""
    tx.update(Envelope, id, probe=attempt.id, probed_at=None, updated_at=tx.now())
    tx.append(happened("envelope_probing", MACHINE, envelope=id, by=attempt.id))


def may_draw(tx: Tx, attempt: Attempt, run: Run, account: str) -> bool:
    """Return whether an account is open to a run that is about to start."""
    return _in_the_way(tx, attempt, run, account) is None


def _in_the_way(tx: Tx, attempt: Attempt, run: Run, account: str) -> Envelope | None:
    closed = [
        one for one in _closed(tx, run.agent or attempt.agent, account, run.model) if one.probe != attempt.id
    ]
    return max(closed, key=lambda one: one.until or one.updated_at, default=None)


def _closed(tx: Tx, agent: str, account: str, model: str | None) -> list[Envelope]:
    """Return what closes an account to a model: its own envelope, that of the model, or both."""
    found = tx.find(Envelope, agent=agent, account=account, state=EnvelopeState.CLOSED)
    return [one for one in found if concerns(one, model)]


def admit(tx: Tx, attempt: Attempt, run: Run, *, fence: int, account: str = ACCOUNT) -> bool:
    """Admit a run to its envelope, or park its attempt: the envelope may have closed while the attempt waited."""
    agent = run.agent or attempt.agent
    envelope = _of(tx, agent, account)
    if closed := _in_the_way(tx, attempt, run, account):
        if attempt.interrupt == "cancel":
            cancel_attempt(tx, attempt, fence=fence)
        else:
            waits = _parked(closed)
            move_attempt(tx, attempt, AttemptState.WAITING, fence=fence, about=_about(closed), **waits)
        return False
    now = tx.now()
    tx.update(Envelope, envelope.id, runs=envelope.runs + 1, last_run_id=run.id, updated_at=now)
    for probed in _closed(tx, agent, account, run.model):
        tx.update(Envelope, probed.id, probed_at=now, updated_at=now)
    return True


def note_account(tx: Tx, attempt: Attempt, plan: Plan, run: Run, account: str) -> None:
    """Report that an attempt leaves the account of its conversation, and why."""
    before = _stays(attempt, run)
    if before is None or before == account:
        return
    left = tx.get(Envelope, envelope_id(attempt.agent, before))
    why = because(left) if left is not None and left.state is EnvelopeState.CLOSED else ""
    told: dict[str, Any] = {"agent": attempt.agent, "was": before, "account": account, "because": why}
    tx.append(happened("account_changed", MACHINE, plan=plan, attempt=attempt, run=run, **told))


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountReport:
    """What the end of a run shows about its account."""

    windows: tuple[QuotaWindow, ...] = ()
    refused: Failed | None = None
    """Why the service refused the run, if that closes the account."""
    answered: bool = False
    """Whether the service worked for the run, which proves that the account is open."""


def settle_account(tx: Tx, run: Run, report: AccountReport, *, chance: float) -> None:
    """Record what the end of a run shows about its account: close it, or open it again, and keep its windows."""
    if report.refused is not None:
        _close(tx, run, report.refused, chance=chance)
    learn(tx, run, report.windows)
    if report.answered:
        for probed in tx.find(
            Envelope, probe=run.attempt_id, agent=run.agent, account=run.account or ACCOUNT
        ):
            open_again(tx, probed.id)


def _close(tx: Tx, run: Run, failed: Failed, *, chance: float) -> None:
    """Close the envelope of a run; a second report of the same changes nothing.

    A limit of one model closes the account to that model alone, under every name that the run used for it.
    """
    envelope, now, rule = _drawn(tx, run, failed), tx.now(), RULES[failed.failure]
    if envelope.models and not concerns(envelope, run.model):
        envelope = tx.update(Envelope, envelope.id, models=(*envelope.models, run.model or ""))
    opened = envelope.state is EnvelopeState.OPEN
    probed = envelope.probe == run.attempt_id
    closings = envelope.closings + (opened or probed)
    until = pause_until(rule, closings, now=now, retry_at=failed.retry_at, chance=chance)
    if opened and _came_meanwhile(run, failed, now):
        until = now
    if until in (failed.retry_at, now):
        until += SPREAD * chance
    if not opened and not probed:
        # One of many that ran at the time: it has no newer information, unless its service named a later time.
        until = (
            max(until, envelope.until or until)
            if rule.honours and failed.retry_at
            else envelope.until or until
        )
    if opened:
        step("envelope", ENVELOPE, envelope.id, envelope.state, EnvelopeState.CLOSED)
    changed = tx.update(
        Envelope,
        envelope.id,
        expect={"state": envelope.state},
        state=EnvelopeState.CLOSED,
        failure=failed.failure if opened or probed else envelope.failure,
        reason=failed.detail[:500] if opened or probed else envelope.reason,
        until=until,
        closed_at=now if opened else envelope.closed_at,
        closings=closings,
        probe=None if probed else envelope.probe,
        probed_at=None if probed else envelope.probed_at,
        updated_at=now,
    )
    if opened or probed:
        event = "envelope_closed" if opened else "envelope_still_closed"
        tx.append(happened(event, MACHINE, agent=changed.agent, reason=because(changed), **_about(changed)))
    for other in tx.find(Attempt, envelope_id=changed.id, state=AttemptState.WAITING):
        tx.update(Attempt, other.id, wake_at=until)


def _came_meanwhile(run: Run, failed: Failed, now: datetime) -> bool:
    """Return whether the time that the service named passed before the agent ended: then a probe may start at once."""
    named, began = failed.retry_at, run.started_at
    return RULES[failed.failure].honours and named is not None and began is not None and began < named <= now


def parked(tx: Tx, run: Run, failed: Failed) -> dict[str, Any]:
    """Return what to write on an attempt that waits for its run's envelope."""
    return _parked(_drawn(tx, run, failed))


def learn(tx: Tx, run: Run, windows: Sequence[QuotaWindow]) -> None:
    """Record what a run reports about its quota."""
    envelope = tx.get(Envelope, envelope_id(run.agent or "", run.account or ACCOUNT))
    if envelope is not None and windows:
        known = newest(envelope.windows, windows)
        tx.update(Envelope, envelope.id, windows=known, updated_at=tx.now())


def open_again(tx: Tx, id: str, actor: str = MACHINE) -> None:
    """Open a closed envelope: everything that waits for it continues."""
    envelope = need(tx.get(Envelope, id), "the envelope")
    if envelope.state is EnvelopeState.OPEN:
        return
    step("envelope", ENVELOPE, id, envelope.state, EnvelopeState.OPEN)
    tx.update(
        Envelope,
        id,
        expect={"state": envelope.state},
        state=EnvelopeState.OPEN,
        models=envelope.models[:1],
        until=None,
        closed_at=None,
        closings=0,
        probe=None,
        probed_at=None,
        updated_at=tx.now(),
    )
    tx.append(happened("envelope_opened", actor, envelope=id, agent=envelope.agent))


def find_named(tx: Tx, name: str) -> list[Envelope]:
    """Return the envelopes that the user names: one by `AGENT/ACCOUNT`, or all of an agent."""
    known = tx.find(Envelope, order_by=("agent", "account", "id"))
    meant = [one for one in known if name in (one.id, label(one), one.agent)]
    if not meant:
        listed = ", ".join(sorted(map(label, known)))
        raise NotFound(
            f"there is no account named {name}",
            code="account_not_found",
            hint=f"one of {listed}" if listed else "no agent has drawn from any yet",
        )
    return meant


def reopen(tx: Tx, _ids: Ids, command: Command) -> str:
    """Open an account because the user says that it works again."""
    meant = find_named(tx, command.target)
    closed = [one for one in meant if one.state is EnvelopeState.CLOSED]
    if not closed:
        return "already open"
    if len(closed) > 1:
        listed = ", ".join(sorted(one.id for one in closed))
        raise Refused(
            f"{command.target} has several closed accounts",
            code="account_ambiguous",
            hint=f"name one of {listed}",
        )
    ids = [one.id for one in tx.find(Envelope, agent=closed[0].agent)]
    waiting = tx.count(Attempt, envelope_id=ids, state=AttemptState.WAITING)
    open_again(tx, closed[0].id, command.actor)
    return "open; 1 task continues" if waiting == 1 else f"open; {waiting} tasks continue"


def _drawn(tx: Tx, run: Run, failed: Failed) -> Envelope:
    return _of(tx, need(run.agent, "an agent"), run.account or ACCOUNT, failed.limited_model)


def _of(tx: Tx, agent: str, account: str, model: str = "") -> Envelope:
    name, now = envelope_id(agent, account, model), tx.now()
    envelope = tx.get(Envelope, name)
    if envelope is None:
        models = (model,) if model else ()
        envelope = Envelope(
            id=name, agent=agent, account=account, models=models, created_at=now, updated_at=now
        )
        tx.insert(envelope)
    return envelope


def _about(envelope: Envelope) -> dict[str, Any]:
    until = envelope.until.isoformat() if envelope.until else None
    failure = envelope.failure.value if envelope.failure else None
    return {"envelope": envelope.id, "until": until, "failure": failure}


def _parked(envelope: Envelope) -> dict[str, Any]:
    # Opened in the meantime, it continues at once.
    reason = to_do(envelope) if needs_person(envelope) else envelope.reason or because(envelope)
    return {
        "wake_at": envelope.until or envelope.updated_at,
        "wait_reason": reason,
        "envelope_id": envelope.id,
    }


# What a running agent reports about its account's quota.

_MOST_WRITES: Final = 500
"""The most writes for one run: an agent with a different report on each line must not keep the whole home busy."""


class QuotaWatch:
    """Records a running agent's reports about its quota: the user sees it, and other runs choose by it."""

    def __init__(self, world: World, run: Run) -> None:
        self._world = world
        self._run = run
        self._known: Sequence[QuotaWindow] | None = None
        """The last written state."""
        self._writes = 0

    async def hear(self, windows: Sequence[QuotaWindow]) -> None:
        """Take in all reports so far; they are written if they changed enough to matter."""
        if self._known is None:
            self._known = await self._world.store.read(self._written)
        if self._writes < _MOST_WRITES and noticeable(self._known, windows):
            self._known, self._writes = windows, self._writes + 1
            await self._world.store.transact("quota.learn", lambda tx: learn(tx, self._run, windows))

    def _written(self, tx: Tx) -> Sequence[QuotaWindow]:
        envelope = tx.get(Envelope, envelope_id(self._run.agent or "", self._run.account or ACCOUNT))
        return envelope.windows if envelope is not None else ()
