"""Running again, within one gate run, what may have failed by chance."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from loopwright.core.gates.flakes import ALONE, WHOLE, Suspect, excused, failed_again, red_alone, suspects
from loopwright.core.gates.witnesses import held_against
from loopwright.core.values.findings import Baseline, Rerun, Verdict, VerdictStatus, Witnessed
from loopwright.core.values.policy import GateCommand
from loopwright.ports import Exit

_JUDGED: Final = (VerdictStatus.PASSED, VerdictStatus.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What one more run of some commands found."""

    verdict: Verdict
    seen: Sequence[Witnessed | None]
    exit: Exit
    interrupted: bool = False


class Again(Protocol):
    """Runs commands once more on the same tree; asked twice for the same folder, it runs them once."""

    async def __call__(
        self, folder: str, commands: tuple[GateCommand, ...], /, *, only: frozenset[str], fresh: bool
    ) -> Ran:
        """Run `only` these tests where the runner can, or all; in a `fresh` workspace, or where they ran before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """The verdict after everything was run again that had to be."""

    verdict: Verdict
    exit: Exit | None = None
    """How the last of the second runs ended; None when there was none."""
    interrupted: bool = False


async def settle(
    verdict: Verdict,
    seen: Sequence[Witnessed | None],
    before: Baseline | None,
    again: Again,
    *,
    setup: GateCommand | None,
    commands: tuple[GateCommand, ...],
    green_here: Collection[str],
    rewritten: tuple[str, ...],
    own: Collection[str] = (),
) -> Settled:
    """Tell what is flaky from what is red: first alone, then, unless this tree was green before, as a whole.

    `commands` are those of the verdict, in its order; `setup` comes first in every fresh workspace; `own` are those
    that the work is to make pass.
    """
    found = suspects(verdict, seen, before, green_here=green_here, rewritten=rewritten)
    if not found:
        return Settled(verdict=verdict)
    state = Settled(verdict=verdict)
    single = [one for one in found if one.tests]
    if single:
        ran = await again(
            ALONE, _of(commands, single), only=frozenset[str]().union(*(s.tests for s in single)), fresh=False
        )
        if ran.verdict.status not in _JUDGED:
            return _not_settled(state, ran)
        state = _noted(state, ran, ALONE)
        pairs = zip(single, ran.seen, strict=True)
        red = {one.position: red_alone(one, seen[one.position - 1], saw) for one, saw in pairs}
        if red := {position: tests for position, tests in red.items() if tests}:
            return replace(state, verdict=failed_again(state.verdict, red, alone=True))
    whole = [one for one in found if not one.tests or not one.green_here]
    known = {one.position: _known(seen[one.position - 1], one) for one in found}
    if whole:
        others = tuple(command for command in _of(commands, whole) if command != setup)
        ran = await again(WHOLE, (setup, *others) if setup else others, only=frozenset(), fresh=True)
        if ran.verdict.status not in _JUDGED:
            return _not_settled(state, ran)
        state = _noted(state, ran, WHOLE)
        judged = held_against(ran.verdict, ran.seen, before, own)
        if judged.status is not VerdictStatus.PASSED:
            red = {one.position: one.tests for one in whole}
            return replace(state, verdict=failed_again(state.verdict, red, alone=False))
        results = {result.command: result.known_failures for result in judged.commands}
        known |= {one.position: results[commands[one.position - 1].command] for one in whole}
    return replace(state, verdict=excused(state.verdict, found, known))


def _known(saw: Witnessed | None, suspect: Suspect) -> int:
    """Return how many tests failed besides the suspected ones: those had failed before the work."""
    return len(saw.failed - suspect.tests) if saw is not None else 0


def _of(commands: tuple[GateCommand, ...], found: Sequence[Suspect]) -> tuple[GateCommand, ...]:
    return tuple(commands[one.position - 1] for one in found)


def _noted(state: Settled, ran: Ran, folder: str) -> Settled:
    rerun = Rerun(folder=folder, alone=folder == ALONE, commands=ran.verdict.commands)
    return Settled(
        verdict=replace(state.verdict, reruns=(*state.verdict.reruns, rerun)),
        exit=ran.exit,
        interrupted=ran.interrupted,
    )


def _not_settled(state: Settled, ran: Ran) -> Settled:
    """Whether it was chance could not be found out: nothing was learned about the tree."""
    reason = (
        "the gate was interrupted" if ran.interrupted else f"it could not be run again: {ran.verdict.reason}"
    )
    return Settled(
        verdict=replace(state.verdict, status=VerdictStatus.INCONCLUSIVE, reason=reason),
        exit=ran.exit,
        interrupted=ran.interrupted,
    )
