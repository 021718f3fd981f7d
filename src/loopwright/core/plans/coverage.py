"""Which checks prove what a task requires: every criterion with its evidence, or that there is none."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from loopwright.core.gates.verdicts import command_id, is_bad, is_of
from loopwright.core.values.findings import Verdict


class Kind(StrEnum):
    """The kind of a criterion."""

    ACCEPTANCE = "acceptance"
    """A command of the task."""
    HELD_OUT = "held_out"
    """A command that the agent never sees."""
    WORDS = "criterion"
    """A sentence; it can contain a command."""


class Standing(StrEnum):
    """How well a criterion is covered."""

    PROVEN = "proven"
    """A command checked it on what landed, and passed."""
    REVIEWED = "reviewed"
    """No command checks it, but a reviewer saw what landed."""
    FAILED = "failed"
    """A command checked it on what landed, and failed."""
    NO_EVIDENCE = "no evidence"


BARE: Final = (Standing.FAILED, Standing.NO_EVIDENCE)
"""The results that keep work from being covered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One requirement of a task."""

    kind: Kind
    text: str
    commands: tuple[str, ...] = ()
    """The commands in it; empty if it is only words."""
    name: str = ""
    """The name of a command. A held-out check is also found by its name, which identifies its files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A verdict on something that landed."""

    verdict_id: str
    run_id: str
    role: str
    """The role of the gate run: `gate` before a task landed, `verify` on all tasks together."""
    tree: str
    commit: str | None
    at: datetime
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """A reviewer who saw exactly what a task landed, and did not object."""

    by: str
    review_id: str | None = None
    """The review; None if the user reviewed it."""
    commit: str | None
    at: datetime | None = None
    whole: bool = True
    """Whether all of the change was shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One check, or one review, for or against a criterion."""

    by: str
    """`gate`, `verify`, or the reviewer."""
    passed: bool
    gaps: bool = False
    """What it left open: an old failure, a flaky test, or a change that was shown in part."""
    commit: str | None
    at: datetime | None
    verdict_id: str | None = None
    run_id: str | None = None
    review_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """One criterion with its evidence."""

    kind: Kind
    name: str
    text: str
    standing: Standing
    reason: str = ""
    """Why it has no evidence."""
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known about what a task landed."""

    ran: tuple[Ran, ...] = ()
    looked: tuple[Looked, ...] = ()
    nothing: str = ""
    """Why nothing of it can be checked; empty if it landed."""


def covered(wanted: Wanted, facts: Facts) -> Covered:
    """Return how well one criterion is covered: the newest verdict on what landed decides."""
    if facts.nothing:
        return _covered(wanted, Standing.NO_EVIDENCE, facts.nothing)
    if wanted.commands:
        newest = {ran.tree: ran for ran in sorted(facts.ran, key=lambda one: one.at) if _has(ran, wanted)}
        in_order = sorted(newest.values(), key=lambda one: one.at)
        evidence = tuple(_checked(ran, wanted) for ran in in_order)
        if not evidence:
            return _covered(wanted, Standing.NO_EVIDENCE, "it was not run on what landed")
        standing = Standing.PROVEN if evidence[-1].passed else Standing.FAILED
        return _covered(wanted, standing, evidence=evidence)
    evidence = tuple(
        Evidence(
            by=one.by, passed=True, gaps=not one.whole, commit=one.commit, at=one.at, review_id=one.review_id
        )
        for one in facts.looked
    )
    if not evidence:
        return _covered(wanted, Standing.NO_EVIDENCE, "no command checks it, and the task was not reviewed")
    return _covered(wanted, Standing.REVIEWED, evidence=evidence)


def _covered(
    wanted: Wanted, standing: Standing, reason: str = "", *, evidence: Sequence[Evidence] = ()
) -> Covered:
    return Covered(
        kind=wanted.kind,
        name=wanted.name,
        text=wanted.text,
        standing=standing,
        reason=reason,
        evidence=tuple(evidence),
    )


def _results(ran: Ran, wanted: Wanted) -> list[int]:
    """Return the positions of a verdict's commands that belong to a criterion."""
    return [
        n
        for n, one in enumerate(ran.verdict.commands, 1)
        if one.command in wanted.commands and (wanted.kind is not Kind.HELD_OUT or one.name == wanted.name)
    ]


def _has(ran: Ran, wanted: Wanted) -> bool:
    done = {ran.verdict.commands[n - 1].command for n in _results(ran, wanted)}
    return done >= set(wanted.commands)


def _checked(ran: Ran, wanted: Wanted) -> Evidence:
    bad = [check for check in ran.verdict.checks if is_bad(check)]
    own = [(n, ran.verdict.commands[n - 1]) for n in _results(ran, wanted)]
    refused = any(
        one.refused or any(is_of(check, command_id(n, one.name)) for check in bad) for n, one in own
    )
    return Evidence(
        by=ran.role,
        passed=not refused,
        gaps=any(one.is_excused for _, one in own)
        or bool(ran.verdict.unknown_before or ran.verdict.left_open),
        commit=ran.commit,
        at=ran.at,
        verdict_id=ran.verdict_id,
        run_id=ran.run_id,
    )
