"""Accounts as rows: which runs draw from them, what closes them, and what opens them again."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from loopwright.core.envelopes import ACCOUNT, SPREAD, because, envelope_id, needs_person, to_do
from loopwright.core.errors import NotFound
from loopwright.core.events import happened
from loopwright.core.failures import RULES, Failure, Level
from loopwright.core.model import Attempt, Command, Envelope, QuotaWindow, Run
from loopwright.core.retry import Failed, pause_until
from loopwright.core.states import ENVELOPE, AttemptState, EnvelopeState, RunState, step
from loopwright.engine.moves import MACHINE, cancel_attempt, move_attempt, need
from loopwright.ports import AgentResult, Ids, Tx

_FINDING_OUT: Final = frozenset({AttemptState.PREPARING, AttemptState.WORKING})


def standing(tx: Tx) -> Mapping[str, Envelope]:
    """Return every envelope as it stands; a probe that nobody drives any more is none."""
    found = {one.id: one for one in tx.find(Envelope)}
    for envelope in [one for one in found.values() if one.probe is not None]:
        probe = tx.get(Attempt, envelope.probe or "")
        if probe is None or probe.state not in _FINDING_OUT or probe.wait_reason:
            found[envelope.id] = replace(envelope, probe=None, probed_at=None)
    return found


def begin_probe(tx: Tx, id: str, attempt: Attempt) -> None:
    """Let one attempt find out whether a closed envelope is open again."""
    tx.update(Envelope, id, probe=attempt.id, probed_at=None, updated_at=tx.now())
    tx.append(happened("envelope_probing", MACHINE, envelope=id, by=attempt.id))


def admit(tx: Tx, attempt: Attempt, run: Run, *, fence: int) -> bool:
    """Let a run draw from its envelope, or park its attempt: it may have closed while that waited for its turn."""
    agent = run.agent or attempt.agent
    envelope = _of(tx, agent)
    if envelope.state is EnvelopeState.CLOSED and envelope.probe != attempt.id:
        if attempt.interrupt == "cancel":
            cancel_attempt(tx, attempt, fence=fence)
        else:
            waits = _parked(envelope)
            move_attempt(tx, attempt, AttemptState.WAITING, fence=fence, about=_about(envelope), **waits)
        return False
    now = tx.now()
    probed: dict[str, Any] = {"probed_at": now} if envelope.state is EnvelopeState.CLOSED else {}
    tx.update(Envelope, envelope.id, runs=envelope.runs + 1, last_run_id=run.id, updated_at=now, **probed)
    return True


def close(tx: Tx, attempt: Attempt, run: Run, failed: Failed, *, chance: float) -> None:
    """Close the envelope that a run drew from; another one that says the same changes nothing."""
    envelope, now, rule = _of(tx, run.agent or attempt.agent), tx.now(), RULES[failed.failure]
    opened = envelope.state is EnvelopeState.OPEN
    probed = envelope.probe == attempt.id
    closings = envelope.closings + (opened or probed)
    until = pause_until(rule, closings, now=now, retry_at=failed.retry_at, chance=chance)
    if until == failed.retry_at:
        until += SPREAD * chance
    if not opened and not probed:
        # One of many that ran at the time: it knows no better, unless its service named a later time.
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


def parked(tx: Tx, attempt: Attempt, run: Run) -> dict[str, Any]:
    """Return what to write on an attempt that waits for the envelope that its run drew from."""
    return _parked(_of(tx, run.agent or attempt.agent))


def hear(tx: Tx, run: Run, result: AgentResult, state: RunState, failure: Failure | None) -> None:
    """Take in what the end of a run tells of its envelope: its windows, and whether the service answered the probe."""
    envelope = tx.get(Envelope, envelope_id(run.agent or ""))
    if envelope is None:
        return
    if result.windows:
        known: dict[str, QuotaWindow] = {one.name: one for one in (*envelope.windows, *result.windows)}
        envelope = tx.update(Envelope, envelope.id, windows=tuple(known.values()), updated_at=tx.now())
    answered = failure is None or RULES[failure].level is Level.ATTEMPT
    if envelope.probe == run.attempt_id and state is not RunState.CANCELLED and answered:
        open_again(tx, envelope.id)


def open_again(tx: Tx, id: str, actor: str = MACHINE) -> None:
    """Open a closed envelope: whatever waits for it goes on."""
    envelope = need(tx.get(Envelope, id), "the envelope")
    if envelope.state is EnvelopeState.OPEN:
        return
    step("envelope", ENVELOPE, id, envelope.state, EnvelopeState.OPEN)
    tx.update(
        Envelope,
        id,
        expect={"state": envelope.state},
        state=EnvelopeState.OPEN,
        until=None,
        closed_at=None,
        closings=0,
        probe=None,
        probed_at=None,
        updated_at=tx.now(),
    )
    tx.append(happened("envelope_opened", actor, envelope=id, agent=envelope.agent))


def reopen(tx: Tx, _ids: Ids, command: Command) -> str:
    """Take a person's word that an account is in order again."""
    known = {name: one for one in tx.find(Envelope) for name in (one.id, one.agent)}
    envelope = known.get(command.target)
    if envelope is None:
        names = ", ".join(sorted(one.agent for one in tx.find(Envelope)))
        raise NotFound(
            f"there is no account named {command.target}",
            hint=f"one of {names}" if names else "no agent has drawn from any yet",
        )
    if envelope.state is EnvelopeState.OPEN:
        return "already open"
    waiting = tx.count(Attempt, envelope_id=envelope.id, state=AttemptState.WAITING)
    open_again(tx, envelope.id, command.actor)
    return "open; 1 task goes on" if waiting == 1 else f"open; {waiting} tasks go on"


def _of(tx: Tx, agent: str) -> Envelope:
    envelope = tx.get(Envelope, envelope_id(agent))
    if envelope is None:
        now = tx.now()
        envelope = Envelope(
            id=envelope_id(agent), agent=agent, account=ACCOUNT, created_at=now, updated_at=now
        )
        tx.insert(envelope)
    return envelope


def _about(envelope: Envelope) -> dict[str, Any]:
    until = envelope.until.isoformat() if envelope.until else None
    failure = envelope.failure.value if envelope.failure else None
    return {"envelope": envelope.id, "until": until, "failure": failure}


def _parked(envelope: Envelope) -> dict[str, Any]:
    # Opened meanwhile, it goes on at once.
    reason = to_do(envelope) if needs_person(envelope) else envelope.reason or because(envelope)
    return {
        "wake_at": envelope.until or envelope.updated_at,
        "wait_reason": reason,
        "envelope_id": envelope.id,
    }
