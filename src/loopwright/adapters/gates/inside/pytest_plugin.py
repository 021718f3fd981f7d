"""A pytest plugin that writes down which tests there are and how each ended, and tries the runner with two canaries.

It is found by its entry point, from outside of the tree. The canaries go through the same hooks as every test, when
all tests have ended, and are counted nowhere: one must be seen to fail and one to pass.
"""

from __future__ import annotations  # older Pythons load it too

import json
import os
import unittest
from typing import Any, Callable, Iterator

import pytest

VARIABLE = "LOOPWRIGHT_WITNESS"
WAYS: Any = (
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


def told_from_outside() -> Any:
    """Return what the harness asks for; nothing in what the tests start, which is not what is being judged.

    It is in the environment, and beside this file for a command that empties its environment.
    """
    # Taken away at once, so that what the tests start does not have it.
    given = os.environ.pop(VARIABLE, None)
    if given is not None:
        return json.loads(given)
    try:
        with open(
            os.path.join(os.path.dirname(os.path.abspath(__file__)), "told.json"), encoding="utf-8"
        ) as file:
            told = json.load(file)
        reporting = {name.partition("-")[0] for name in os.listdir(told["folder"])}
        pid = os.getpid()
        while pid > 1:
            if str(pid) in reporting:
                return None
            with open("/proc/{}/stat".format(pid), encoding="utf-8", errors="replace") as file:
                pid = int(file.read().rpartition(")")[2].split()[1])
    except OSError:
        return None  # no gate listens, or this system does not tell which process started which
    return told


TOLD = told_from_outside()
if TOLD is not None:
    # Tests need not know the scripts that stand in front of programs.
    places = os.environ.get("PATH", "").split(os.pathsep)
    os.environ["PATH"] = os.pathsep.join(place for place in places if place != TOLD["path"])


def pytest_configure(config: Any) -> None:
    """Begin to watch, in the process that is in charge of the run; a run inside of it is not what is being judged."""
    if TOLD is not None and not Witness.active and not hasattr(config, "workerinput"):
        told = TOLD
        Witness.active = True
        # Tests are judged one by one: neither a file that cannot be imported nor a failure hides the others. The run
        # still ends as a failure.
        config.option.continue_on_collection_errors = True
        config.option.maxfail = 0
        config.pluginmanager.register(Witness(told), told["must_pass"])


def must_fail() -> Iterator[Callable[[], object]]:
    """Yield ways to fail; every one of them has to."""

    def plain() -> None:
        raise AssertionError("plain")

    def raises_nothing() -> None:
        with pytest.raises(ValueError):
            pass

    def nearly() -> None:
        if pytest.approx(2) != 1:
            raise AssertionError("nearly")

    yield plain
    yield raises_nothing
    yield nearly
    yield lambda: pytest.fail("on purpose")
    yield from unittest_ways(unittest.TestCase())


def unittest_ways(case: Any) -> Iterator[Callable[[], object]]:
    """Yield what a test case checks with, each so that it has to fail."""
    yield lambda: case.fail("on purpose")
    for name, *given in WAYS:
        yield lambda name=name, given=given: getattr(case, name)(*given)  # type: ignore[misc]


class Canary(pytest.Item):
    """One of our tests; hooks of the project see it like any other."""

    function: Any = staticmethod(must_fail)
    cls: Any = None
    module: Any = None
    instance: Any = None
    obj: Any = None
    fixturenames: Any = ()
    funcargs: Any = {}
    fails = False

    def runtest(self) -> None:
        """Pass, or fail in every way there is; one that does not fail is a canary that passes by mistake."""
        if not self.fails:
            unittest.TestCase().assertEqual(1, 1)
            return
        for way in must_fail():
            try:
                way()
            except (Exception, pytest.fail.Exception):
                # `pytest.fail` and `pytest.raises` raise what is not an Exception. What asks the whole run to end
                # (SystemExit, KeyboardInterrupt, pytest.exit) ends it, as in any other test.
                continue
            return
        raise AssertionError(self.name)

    def reportinfo(self) -> Any:
        """Return its place: none."""
        return self.name, None, self.name

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        """Return its name: to show more, pytest would read and parse the source of every function on the stack."""
        return self.name


def canaries(session: Any, name: str, fails: bool) -> Iterator[Any]:
    """Yield one of our tests, and one of the class of test functions: that class may be patched alone."""
    # Private to pytest: a version without it loses the canary, not the run.
    from _pytest.fixtures import FuncFixtureInfo

    own = Canary.from_parent(session, name=name)
    own.fails = fails
    yield own

    def function() -> None:
        assert not fails, name

    # Without the project's own fixtures, which may start anything.
    bare = FuncFixtureInfo(argnames=(), initialnames=(), names_closure=[], name2fixturedefs={})
    plain = pytest.Function.from_parent(session, name=name, callobj=function, fixtureinfo=bare)
    plain.repr_failure = own.repr_failure  # type: ignore[method-assign]
    yield plain


class Witness:
    """Writes one line for each thing that happened."""

    active = False

    def __init__(self, told: dict[str, Any]) -> None:
        self.told = told
        self.only = frozenset(told["only"])
        name = "{}-{}.jsonl".format(os.getpid(), os.urandom(8).hex())
        self.file = open(os.path.join(told["folder"], name), "a", encoding="utf-8", errors="replace")
        self.raised: dict[tuple[str, str], bool] = {}
        self.say(e="start", runner="pytest", version=pytest.__version__)

    def say(self, **what: Any) -> None:
        """Write a line, so that nothing is lost if the process is ended the next moment."""
        self.file.write(json.dumps(what) + "\n")
        self.file.flush()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: Any) -> None:
        """Leave all tests out but those that are to be run alone, without a report of the others."""
        if self.only:
            items[:] = [item for item in items if item.nodeid in self.only]

    def pytest_collection_finish(self, session: Any) -> None:
        """Note what was collected."""
        self.say(e="collected", ids=[item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: Any) -> None:
        """Note what another process collected, where tests are spread over several."""
        self.say(e="collected", ids=list(ids))

    def pytest_deselected(self, items: Any) -> None:
        """Note what was left out."""
        self.say(e="deselected", ids=[item.nodeid for item in items])

    def pytest_collectreport(self, report: Any) -> None:
        """Note what could not be collected, or was skipped as a whole."""
        if report.outcome != "passed":
            self.say(e="collect", id=report.nodeid, outcome=report.outcome)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> None:
        """Note what really happened, before anyone makes a report of it."""
        raised = call.excinfo is not None and not call.excinfo.errisinstance(
            (pytest.skip.Exception, pytest.xfail.Exception, unittest.SkipTest)
        )
        self.raised[item.nodeid, call.when] = raised

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note how a test ended, and whether that is what happened."""
        expected = hasattr(report, "wasxfail")
        raised = self.raised.pop((report.nodeid, report.when), False)
        self.say(
            e="report",
            id=report.nodeid,
            when=report.when,
            outcome="xfailed" if expected and report.outcome == "skipped" else report.outcome,
            hidden=bool(raised and report.outcome == "passed" and not expected),
        )

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: Any, exitstatus: Any) -> None:
        """Try the runner when every test has ended, and say that this is the end."""
        if self.only and not session.items:
            session.exitstatus = 0  # the tests that are wanted are in another run of the same command
        for kind, fails in (("must_pass", False), ("must_fail", True)):
            self.say(e="canary", kind=kind, name=self.told[kind], outcome=self.outcome(session, kind, fails))
        self.say(e="end", exit=int(exitstatus))

    def pytest_unconfigure(self) -> None:
        """Leave nothing open, since some projects take that for an error."""
        Witness.active = False
        self.file.close()

    def outcome(self, session: Any, kind: str, fails: bool) -> str:
        """Return how a canary ended; a hook that cannot bear it is told as such."""
        try:
            # Private to pytest, as above.
            from _pytest.runner import runtestprotocol

            ends = []
            for canary in canaries(session, self.told[kind], fails):
                found = {each.outcome for each in runtestprotocol(canary, log=False, nextitem=None)}
                ends.append("failed" if "failed" in found else "passed" if found == {"passed"} else "skipped")
        except Exception as error:
            return "a hook broke on it: {}".format(type(error).__name__)
        wanted = "failed" if fails else "passed"
        return next((end for end in ends if end != wanted), wanted)
