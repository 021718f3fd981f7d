"""Compares what came of a behaviour with what must come of it, in sentences."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import psutil

from loopwright.engine.processes.runs import INTERRUPT
from loopwright.keeper import places
from loopwright.ports import AgentResult
from loopwright.testing.conformance import laws
from loopwright.testing.conformance.behaviours import BEHAVIOURS, Behaviour, Expected
from loopwright.testing.conformance.playing import Played, Subject


def problems(subject: Subject, name: str, played: Sequence[Played]) -> tuple[str, ...]:
    """Return everything that is not as it must be; nothing when all is well."""
    behaviour = BEHAVIOURS[name]
    found: list[str] = []
    for run in played:
        result = run.ended.result
        if result is None:
            found.append("its keeper was lost")
            continue
        found += _of_result(subject, behaviour.expected, result)
        found += _of_run(behaviour.expected, run)
        found += laws.broken(subject.agent, run)
    if behaviour.twice and not found:
        found += _of_conversation(subject, *played)
    if behaviour.copied and not found:
        first, copy, again = played
        found += _of_copy(subject, first, copy)
        found += _of_conversation(subject, first, again)
    found += _of_stopping(behaviour, played[-1])
    found += [f"process {one} is left" for one in left_over(played)]
    return tuple(found)


def _of_result(subject: Subject, expected: Expected, result: AgentResult) -> Iterator[str]:
    can = subject.can
    told = f"{result.failure}: {result.detail}" if result.failure else "nothing failed"
    if expected.claimed is not None and result.claimed != expected.claimed:
        yield f"it is {'claimed' if result.claimed else 'not claimed'}, which is wrong here ({told})"
    elif not result.claimed and result.failure not in (expected.failures or (None,)):
        wanted = " or ".join(expected.failures) or "no failure"
        yield f"expected {wanted}, but {told}"
    if result.claimed and (result.failure or result.asked):
        yield "it is claimed and something else at once"
    keys = [asking.wish.key for asking in result.asked if asking.wish is not None]
    if keys != ([expected.asked] if expected.asked else []):
        yield f"a person is asked about {keys}, not about {expected.asked or 'nothing'}"
    for asking in result.asked:
        if (asking.kind, asking.options) != ("permission", ("yes", "no")):
            yield f"it asks for leave as a {asking.kind} with the options {asking.options}"
    if result.failure and not result.detail:
        yield "it failed, and nothing says how"
    if expected.retry_in_s is not None and "reset_time" in can:
        yield from _of_time(expected.retry_in_s, result.retry_at)
    elif expected.retry_in_s is None and result.retry_at is not None:
        yield f"nothing told when to try again, but it says {result.retry_at}"
    if result.claimed:
        yield from _of_account(can, result)


def _of_time(span: tuple[float, float], retry_at: datetime | None) -> Iterator[str]:
    if retry_at is None:
        yield "it does not say when to try again"
        return
    ahead = retry_at - datetime.now(UTC)
    if not timedelta(seconds=span[0]) <= ahead <= timedelta(seconds=span[1]):
        yield f"it says to try again in {ahead}"


def _of_account(can: frozenset[str], result: AgentResult) -> Iterator[str]:
    if "cost" in can and result.cost_micros is None:
        yield "it can tell its cost, and does not"
    if "usage" in can and (result.usage is None or result.usage.output_tokens is None):
        yield "it can tell its tokens, and does not"
    if "resume" in can and not result.session_ref:
        yield "its conversation has no name, so no run could continue it"


def _of_run(expected: Expected, run: Played) -> Iterator[str]:
    how = run.ended.exit
    if how.ended_by not in expected.ended_by:
        yield f"the process was ended by {how.ended_by} ({how.code}), not by {' or '.join(expected.ended_by)}"
    for name in expected.makes:
        if name not in run.files:
            yield f"{name} was not made"
    for name in expected.makes_not:
        if name in run.files:
            yield f"{name} was made"
    yield from _of_stand_in(expected, run)
    if expected.keeps:
        yield from _of_keeping(expected.keeps, run)
    if run.seconds > expected.at_most_s:
        yield f"it took {run.seconds:.1f} s"


def _of_stand_in(expected: Expected, run: Played) -> Iterator[str]:
    """Return where the stand-in has not done what it was to play: then nothing is known of the adapter."""
    how = run.ended.exit
    if expected.code is not None and how.code != expected.code:
        yield f"the process exited with {how.code}, and to play this it has to exit with {expected.code}"
    if how.output_bytes + how.dropped_bytes < expected.prints:
        yield f"it printed {how.output_bytes} bytes, and to play this it has to print {expected.prints}"


def _of_keeping(word: str, run: Played) -> Iterator[str]:
    """Compare lines with events: an adapter has its own raw events, and one of those proves nothing."""
    printed = sum(word in line.text for line in run.lines)
    kept = sum(word in f"{event.text} {event.data}" for event in run.events if event.kind == "Raw")
    if not printed:
        yield f"no line of the output has the word {word!r}, by which this can be judged"
    elif kept < printed:
        yield f"{printed} lines of the output have the word {word!r}, and {kept} events Raw have it"


def _of_stopping(behaviour: Behaviour, run: Played) -> Iterator[str]:
    if behaviour.stop == "when working" and not run.ended.interrupted:
        kinds = ", ".join(sorted({event.kind for event in run.events})) or "nothing"
        yield f"it was not stopped: it has to be heard working (Text or ToolStart), and told {kinds}"
    in_words = any(entry["n"] >= INTERRUPT for entry in run.writes())
    if behaviour.expected.orderly and in_words and run.ended.exit.ended_by != "itself":
        yield "it was told in its own words to stop, and had to be ended all the same"
    if behaviour.expected.wordless and in_words:
        yield "it was told to stop in words, to which it no longer listens"


def _of_conversation(subject: Subject, one: Played, other: Played) -> Iterator[str]:
    first, second = one.ended.result, other.ended.result
    assert first is not None
    assert second is not None
    if first.session_ref != second.session_ref:
        yield f"the conversation {first.session_ref} continued as {second.session_ref}"
    yield from _of_charges(subject, first, second)


def _of_copy(subject: Subject, one: Played, other: Played) -> Iterator[str]:
    first, copy = one.ended.result, other.ended.result
    assert first is not None
    assert copy is not None
    if first.session_ref == copy.session_ref:
        yield f"the copy of {first.session_ref} is that conversation itself"
    yield from _of_charges(subject, first, copy)


def _of_charges(subject: Subject, first: AgentResult, second: AgentResult) -> Iterator[str]:
    # The stand-in does the same in each run, and counts on: so the difference is what the first run had.
    if "cost" in subject.can and first.cost_micros != second.cost_micros:
        yield f"the same work cost {first.cost_micros} and then {second.cost_micros} micros"
    if "usage" in subject.can and first.usage != second.usage:
        yield f"the same work used {first.usage} and then {second.usage}"


def left_over(played: Sequence[Played]) -> list[str]:
    """Return the processes of these runs that still live, found by their marker or by where they are."""
    ids = {run.spec.run_id for run in played}
    folders = {run.spec.cwd.resolve() for run in played}
    found = []
    for process in psutil.process_iter():
        try:
            marked = process.environ().get(places.MARKER) in ids
            if (marked or process.cwd() in map(str, folders)) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(f"{process.pid} ({process.name()})")
        except (psutil.NoSuchProcess, psutil.AccessDenied, OSError):
            continue
    return found
