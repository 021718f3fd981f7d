"""Tests that should have run on some work and did not: skipped, expected to fail, or gone.

A test that failed before the work is either what the work should fix or an old failure, and the new run shows
which. A test that is now skipped or gone shows neither.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from loopwright.core.values.findings import CommandResult, Verdict, VerdictStatus

if TYPE_CHECKING:
    from loopwright.core.values.findings import Baseline, Witnessed

_SHOWN: Final = 10
_SEPARATORS: Final = frozenset(":[/.")
"""The separators between a file, class or package and its tests in an id."""
UNLOADED: Final = "unittest.loader._FailedTest."
"""The id prefix that unittest uses for a module that could not be loaded."""
NOT_THE_SAME: Final = "no test that failed without it was seen to pass with it"


def unanswered(
    before: "Witnessed", found: "Witnessed", spared: tuple[str, ...] = ()
) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the tests that failed before and did not run now, by kind: skipped, deselected or missing.

    If a file, class or package could not be loaded before, any of its tests that ran counts for it.
    """
    ran = found.passed | found.failed
    left = before.failed - ran
    if spared:
        left = frozenset(each for each in left if not each.startswith(spared))
    left = _without_answer(left, ran)
    skipped = left - _without_answer(left - found.skipped, found.skipped)
    deselected = (left - skipped) - _without_answer(left - found.deselected, found.deselected)
    for what, ids in (
        ("skipped", skipped),
        ("deselected", deselected),
        ("missing", left - skipped - deselected),
    ):
        if ids:
            yield what, ids


def _without_answer(wanted: frozenset[str], ran: Collection[str]) -> frozenset[str]:
    """Return the ids that did not run, and of which no inner test ran."""
    if not wanted:
        return wanted
    wholes = {test[:n] for test in ran for n, each in enumerate(test) if each in _SEPARATORS} | set(ran)
    return frozenset(each for each in wanted if not _answered(each, wholes, ran))


def _answered(test: str, wholes: Collection[str], ran: Iterable[str]) -> bool:
    if test.startswith(UNLOADED):
        module = test.removeprefix(UNLOADED)
        return any(f".{module}." in f".{each}" for each in ran)
    return test in wholes or test.removesuffix("/__init__.py") in wholes


def nothing_passed(found: "Witnessed", before: "Witnessed | None") -> str:
    """Return an objection if no test passed; empty if one did, or if all were skipped before too."""
    seen = found.failed | found.skipped | found.deselected
    if found.passed or not seen:
        return ""
    if before is not None and not before.passed and not before.failed and found.skipped <= before.skipped:
        return ""  # a command that checked nothing before is the subject of the red proof
    return f"none of its tests passed: {listed(found.skipped or seen)}"


def with_new_skips(
    verdict: Verdict,
    seen: Sequence["Witnessed | None"],
    before: "Baseline | None",
    brought: tuple[str, ...],
) -> Verdict:
    """Note newly skipped and expected-to-fail tests among those that the work adds or changes.

    `brought` has their id prefixes.
    """
    if verdict.status is not VerdictStatus.PASSED or not brought:
        return verdict
    known = frozenset[str]()
    if before is not None:
        known = known.union(*(one.skipped for one in before.seen.values()))
    said = []
    for result, found in zip(verdict.commands, seen, strict=False):
        ids = {each for each in new_skips(found, known) if each.startswith(brought)} if found else set()
        if ids:
            said.append(
                f"{result.name}: {counted(ids)} that the work brought or changed "
                f"{'was' if len(ids) == 1 else 'were'} skipped or expected to fail: {listed(ids)}"
            )
    return replace(verdict, notes=(*verdict.notes, *dict.fromkeys(said)))


def new_skips(found: "Witnessed", known: Collection[str]) -> Iterator[str]:
    """Yield tests that are skipped now and were not skipped before.

    A single skipped parameter set of a test that passed with others is left out: the reason is usually the
    platform. So is a test that is expected to fail.
    """
    passed = {test.partition("[")[0] for test in found.passed}
    for test in found.skipped:
        if test not in known and (test in found.xfailed or test.partition("[")[0] not in passed):
            yield test


def unloaded_skips(without: "Witnessed | None", found: "Witnessed") -> Iterator[str]:
    """Yield skipped tests in files that could not even be loaded without the work."""
    if without is None or not without.failed:
        return
    for test in new_skips(found, without.skipped):
        wholes = (test[:n] for n, each in enumerate(test) if each in _SEPARATORS)
        if any(whole in without.failed for whole in wholes):
            yield test


def refused_without(
    without: Mapping[str, "Witnessed"], with_work: Mapping[str, "Witnessed"], names: Mapping[str, str]
) -> tuple[str, ...]:
    """Return which tests ran without the work and not with it, by command."""
    return tuple(
        f"{names[command]}: {counted(ids)} that {how} without the work {'is' if len(ids) == 1 else 'are'} "
        f"{what} with it: {listed(ids)}"
        for command, before in without.items()
        if (found := with_work.get(command)) is not None
        for how, what, ids in (
            *(("failed", *one) for one in unanswered(before, found)),
            ("passed", "skipped", _within(before.passed - found.passed, found.skipped)),
            ("passed", "deselected", _within(before.passed - found.passed, found.deselected)),
        )
        if ids
    )


def _within(tests: Iterable[str], wholes: Collection[str]) -> frozenset[str]:
    """Return the tests that are among these, or in one of these files or classes."""
    parts = {test: [test[:n] for n, each in enumerate(test) if each in _SEPARATORS] for test in tests}
    return frozenset(test for test, some in parts.items() if any(one in wholes for one in (test, *some)))


def is_shown(
    ran_without: Iterable[CommandResult],
    without: Mapping[str, "Witnessed"],
    with_work: Mapping[str, "Witnessed"],
) -> bool:
    """Return whether something that failed without the work is known to pass with it.

    If no tests are visible, the exit code decides. If all runs died before a test was known, any test that
    passes now does.
    """
    for result in ran_without:
        if not result.refused:
            continue
        found, before = with_work.get(result.command), without.get(result.command)
        if found is None:
            return True
        failed = before.failed if before is not None else frozenset()
        if found.passed and (not failed or _without_answer(failed, found.passed) != failed):
            return True
    return False


def now_passing(before: Iterable["Witnessed"], now: Iterable["Witnessed"]) -> tuple[str, ...]:
    """Return the tests, or files that could not be loaded, that failed before the work and pass with it."""
    failed = frozenset[str]().union(*(one.failed for one in before))
    passed = frozenset[str]().union(*(one.passed - one.failed for one in now))
    return tuple(sorted(failed - _without_answer(failed, passed)))


def counted(ids: Iterable[str]) -> str:
    """Return a number of tests in words."""
    count = len(list(ids))
    return f"{count} test{'s' * (count != 1)}"


def listed(ids: Iterable[str]) -> str:
    """Name tests in a list short enough to read."""
    named = sorted(ids)
    return ", ".join(named[:_SHOWN]) + (f" and {len(named) - _SHOWN} more" if len(named) > _SHOWN else "")
