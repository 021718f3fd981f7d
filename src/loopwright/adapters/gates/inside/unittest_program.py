"""Runs `python -m unittest` with a result that is written down as well, and tries the runner with two canaries.

Started by path in place of `-m unittest`, with the same arguments.
"""

from __future__ import annotations  # older Pythons load it too

import json
import os
import sys
import unittest
from typing import Any, Iterator

TOLD = json.loads(os.environ.pop("LOOPWRIGHT_WITNESS"))
# Tests need not know the scripts that stand in front of programs.
PLACES = os.environ.get("PATH", "").split(os.pathsep)
os.environ["PATH"] = os.pathsep.join(place for place in PLACES if place != TOLD["path"])
WAYS: Any = (
    ("fail", "on purpose"),
    *(
        ("assertEqual", 1, 2),
        ("assertNotEqual", 1, 1),
        ("assertTrue", 0),
        ("assertFalse", 1),
        ("assertIs", 1, 2),
    ),
    *(("assertIsNot", None, None), ("assertIsNone", 1), ("assertIsNotNone", None), ("assertIn", 1, [])),
    *(("assertNotIn", 1, [1]), ("assertIsInstance", 1, str), ("assertNotIsInstance", 1, int)),
    *(("assertRaises", ValueError, int), ("assertRaisesRegex", ValueError, "x", int)),
    *(("assertAlmostEqual", 1.0, 2.0), ("assertNotAlmostEqual", 1.0, 1.0), ("assertGreater", 1, 2)),
    *(
        ("assertGreaterEqual", 1, 2),
        ("assertLess", 2, 1),
        ("assertLessEqual", 2, 1),
        ("assertRegex", "a", "b"),
    ),
    *(("assertNotRegex", "a", "a"), ("assertCountEqual", [1], [2]), ("assertListEqual", [1], [2])),
    *(("assertDictEqual", {1: 1}, {1: 2}), ("assertSetEqual", {1}, {2}), ("assertTupleEqual", (1,), (2,))),
    *(("assertMultiLineEqual", "a", "b"), ("assertSequenceEqual", [1], [2])),
)
# What a test case checks with, each so that it has to fail.
NAME = "{}-{}.jsonl".format(os.getpid(), os.urandom(8).hex())
FILE = open(os.path.join(TOLD["folder"], NAME), "a", encoding="utf-8", errors="replace")


def say(**what: Any) -> None:
    """Write a line, so that nothing is lost if the process is ended the next moment."""
    FILE.write(json.dumps(what) + "\n")
    FILE.flush()


def report(test: Any, outcome: str) -> None:
    """Note how a test ended."""
    say(e="report", id=test.id(), when="call", outcome=outcome, hidden=False)


class Result(unittest.TextTestResult):
    """Says what happened before anyone else hears of it."""

    def addSuccess(self, test: Any) -> None:
        """Note a test that passed."""
        report(test, "passed")
        super().addSuccess(test)

    def addFailure(self, test: Any, err: Any) -> None:
        """Note a test that failed."""
        report(test, "failed")
        super().addFailure(test, err)

    def addError(self, test: Any, err: Any) -> None:
        """Note a test that broke."""
        report(test, "failed")
        super().addError(test, err)

    def addSkip(self, test: Any, reason: str) -> None:
        """Note a test that was skipped."""
        report(test, "skipped")
        super().addSkip(test, reason)

    def addExpectedFailure(self, test: Any, err: Any) -> None:
        """Note a test that was expected to fail."""
        report(test, "xfailed")
        super().addExpectedFailure(test, err)

    def addUnexpectedSuccess(self, test: Any) -> None:
        """Note a test that should have failed."""
        report(test, "failed")
        super().addUnexpectedSuccess(test)

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        """Note a part of a test that failed."""
        if err is not None:
            report(test, "failed")
        super().addSubTest(test, subtest, err)


class MustPass(unittest.TestCase):
    """A canary that has to pass."""

    def runTest(self) -> None:
        """Pass."""
        self.assertEqual(1, 1)


class MustFail(unittest.TestCase):
    """A canary that has to fail."""

    def runTest(self) -> None:
        """Fail in every way there is; one that does not fail is a canary that passes by mistake."""
        for name, *given in WAYS:
            try:
                getattr(self, name)(*given)
            except self.failureException:
                continue
            return
        raise AssertionError("a test must be able to fail")


def flat(suite: Any) -> Iterator[Any]:
    """Yield all tests of a suite."""
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flat(test)
        else:
            yield test


class Runner(unittest.TextTestRunner):
    """The usual runner, with the result above."""

    resultclass: Any = Result

    def run(self, test: Any) -> Any:
        """Run everything, or what is to be run alone, then the canaries."""
        if TOLD["only"]:
            test = unittest.TestSuite(one for one in flat(test) if one.id() in TOLD["only"])
        say(e="collected", ids=[each.id() for each in flat(test)])
        result = super().run(test)
        for kind, canary in (("must_pass", MustPass()), ("must_fail", MustFail())):
            seen = unittest.TestResult()
            canary.run(seen)
            failed = bool(seen.failures or seen.errors)
            outcome = "failed" if failed else "skipped" if seen.skipped else "passed"
            say(e="canary", kind=kind, name=TOLD[kind], outcome=outcome)
        say(e="end", exit=0)
        return result


if __name__ == "__main__":
    if not sys.flags.isolated and not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.getcwd()  # as with -m
    say(e="start", runner="unittest", version="")
    try:
        unittest.main(module=None, argv=["python -m unittest", *sys.argv[1:]], testRunner=Runner)
    finally:
        FILE.close()
