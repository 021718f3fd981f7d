"""What the tests of a moved file are called now: ids that were seen before the work, as they must be after it."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from loopwright.core.findings import Verdict, VerdictStatus
from loopwright.core.gate_files import is_test_file

if TYPE_CHECKING:
    from loopwright.core.witnesses import Baseline, Witnessed

Moved = Sequence[tuple[str, str]]
_ARROW: Final = " -> "


def told(old: str, new: str) -> str:
    """Say in one text that a file was moved."""
    return f"{old}{_ARROW}{new}"


def read(moved: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return the places that such texts tell."""
    return tuple((old, new) for old, _, new in (one.partition(_ARROW) for one in moved) if old != new)


def with_moved(before: "Baseline", moved: Moved, seen: Iterable["Witnessed | None"]) -> "Baseline":
    """Return what was seen before the work, with the tests of moved files called as they are called now.

    A test that is there under its old name was not moved.
    """
    if not moved:
        return before
    here = {test for one in seen if one is not None for test in _all(one)}
    return replace(before, seen={command: _renamed(one, moved, here) for command, one in before.seen.items()})


def with_unseen_moves(
    verdict: Verdict, seen: Iterable["Witnessed | None"], moved: Moved, exempt: Collection[str] = ()
) -> Verdict:
    """Name moved tests that nobody saw run: whether they are still found where they are now is not known."""
    if verdict.status is not VerdictStatus.PASSED or not moved:
        return verdict
    here = {test for one in seen if one is not None for test in _all(one)}
    later = {old for old, _ in moved}
    said = [
        f"{old} was moved to {new}, and none of its tests was seen to run there"
        for old, new in moved
        if new not in later and new not in exempt and is_test_file(new) and not new.endswith(".go")
        # Go names packages, not files, and finds every file of one.
        if not any(_rest(test, form) is not None for _, form in _forms(old, new) for test in here)
    ]
    return replace(verdict, left_open=(*verdict.left_open, *said))


def _all(one: "Witnessed") -> frozenset[str]:
    return one.passed | one.failed | one.skipped | one.deselected


def _renamed(one: "Witnessed", moved: Moved, here: Collection[str]) -> "Witnessed":
    def called(tests: frozenset[str]) -> frozenset[str]:
        return frozenset(_now(test, moved, here) for test in tests)

    return replace(
        one,
        passed=called(one.passed),
        failed=called(one.failed),
        skipped=called(one.skipped),
        xfailed=called(one.xfailed),
        deselected=called(one.deselected),
    )


def _now(test: str, moved: Moved, here: Collection[str]) -> str:
    """Follow a test from place to place, each move once: they may be told in any order."""
    left = list(moved)
    while test not in here:
        step = next(
            (
                (one, f"{form}{rest}")
                for one in left
                for was, form in _forms(*one)
                if (rest := _rest(test, was)) is not None
            ),
            None,
        )
        if step is None:
            break
        left.remove(step[0])
        test = step[1]
    return test


def _forms(old: str, new: str) -> Iterator[tuple[str, str]]:
    """Yield how ids of a file's tests begin before and after: by path or module, wherever the runner was started."""
    was, now = old.split("/"), new.split("/")
    shared = 0
    while was[shared] == now[shared] and shared + 1 < min(len(was), len(now)):
        shared += 1
    for n in range(shared + 1):
        one, other = "/".join(was[n:]), "/".join(now[n:])
        yield one, other
        yield (
            one.removesuffix(".py").replace("/", "."),
            other.removesuffix(".py").replace("/", "."),
        )


def _rest(test: str, form: str) -> str | None:
    """Return what follows in an id; None where it does not begin so."""
    rest = test.removeprefix(form)
    return rest if test.startswith(form) and rest[:1] in ("", ":", ".") else None
