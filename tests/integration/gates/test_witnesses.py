"""What is seen inside real test runners, honest ones and deceived ones."""

import ast
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.acceptance.gates.bare_python import bare_python
from tests.acceptance.gates.calculator import NOT_OURS
from tests.cases import each_case
from tests.integration.gates.desks import Desk, command, ended
from tests.waiting import eventually
from tests.wording_plugin import Wording

from loopwright.adapters.gates.commands import CommandGate
from loopwright.adapters.gates.processes import Runners, children, named
from loopwright.core.gates.witnesses import NO_END, NOTHING
from loopwright.core.values.findings import Verdict, Witnessed
from loopwright.core.values.policy import GateCommand

PYTEST = f"{sys.executable} -B -m pytest -q {NOT_OURS}"
UNITTEST = f"{sys.executable} -B -m unittest -q"
MIXED = """
import pytest

def test_good(): assert True
def test_bad(): assert False
@pytest.mark.skip
def test_left(): assert True
@pytest.mark.xfail
def test_expected(): assert False
@pytest.fixture
def broken(): raise ValueError
def test_broken(broken): pass
"""
CASES = """
import unittest

class Cases(unittest.TestCase):
    def test_good(self): self.assertEqual(1, 1)
    def test_bad(self): self.assertEqual(1, 2)
    @unittest.skip("")
    def test_left(self): pass
    def test_parts(self):
        with self.subTest(1): self.fail()
"""
CANARY = "the test runner cannot be believed: a canary test that has to fail passed"


def see(
    desk: Desk, *commands: GateCommand, only: frozenset[str] = frozenset(), **files: str
) -> tuple[Verdict, list[Witnessed | None]]:
    for name, text in files.items():
        path = desk.tree / name.replace("__", "/").replace("_py", ".py").replace("_mjs", ".mjs").replace(
            "_ini", ".ini"
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    gate = CommandGate(term_grace_s=1.0)
    verdict, _, _ = desk.run(*commands, gate=gate, only=only)
    seen = gate.witnessed(desk.directory, len(commands))
    assert seen is not None
    return verdict, seen


def test_pytest_tells_every_test_and_nothing_of_the_canaries_shows(desk: Desk) -> None:
    verdict, (seen,) = see(desk, command(PYTEST), test_it_py=MIXED)
    assert seen == Witnessed(
        passed=frozenset({"test_it.py::test_good"}),
        failed=frozenset({"test_it.py::test_bad", "test_it.py::test_broken"}),
        skipped=frozenset({"test_it.py::test_left", "test_it.py::test_expected"}),
        xfailed=frozenset({"test_it.py::test_expected"}),
    )
    assert "1 failed, 1 passed, 1 skipped, 1 xfailed, 1 error" in verdict.commands[0].tail
    assert verdict.commands[0].exit_code == 1


def test_a_pytest_below_make_or_with_a_path_of_its_own_is_seen_too(desk: Desk) -> None:
    passing = "def test_good(): assert True\n"
    makefile = desk.tree / "Makefile"
    makefile.write_text(f"test:\n\t{PYTEST}\n")
    verdict, seen = see(
        desk,
        command("make test", "make"),
        command(f"PYTHONPATH=. {PYTEST}", "path"),
        command(f"{PYTEST} && {PYTEST} -k good", "two"),
        command("true", "none"),
        command("sh -c 'printenv TOX_OVERRIDE'", "tox"),
        test_it_py=passing,
    )
    assert [one and sorted(one.passed) for one in seen] == [["test_it.py::test_good"]] * 3 + [None, None]
    assert all(one is None or not one.problems for one in seen)
    assert {result.exit_code for result in verdict.commands} == {0}
    assert verdict.commands[-1].tail == "testenv.pass_env+=PYTHONPATH\n", (
        "tox hands it on to its environments"
    )


def test_tests_that_are_spread_over_processes_are_seen(desk: Desk) -> None:
    _, (seen,) = see(
        desk,
        command(f"{sys.executable} -B -m pytest -q -p no:cacheprovider -p no:randomly -n 2"),
        test_it_py=MIXED,
    )
    assert seen is not None
    assert (seen.passed, seen.problems) == (frozenset({"test_it.py::test_good"}), ())
    assert len(seen.failed) == 2


def test_what_a_test_starts_itself_is_not_taken_for_the_run(desk: Desk) -> None:
    inner = (
        f"import pytest, subprocess\ndef test_it():\n    subprocess.run({PYTEST!r} + ' inner', shell=True)\n"
        f"    assert pytest.main({[*NOT_OURS.split(), 'inner']!r}) == 1\n"
    )
    _, (seen,) = see(
        desk, command(f"{PYTEST} test_it.py"), test_it_py=inner, inner__test_x_py="def test_x(): assert 0\n"
    )
    assert seen == Witnessed(passed=frozenset({"test_it.py::test_it"}))


GREEN = """
import pytest
@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    report.outcome = "passed"
    return report
"""
LATE_GREEN = """
import pytest
@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report):
    report.outcome = "passed"
"""
NO_ASSERTS = "import unittest\nunittest.TestCase.assertEqual = lambda *a: None\n"
NO_FUNCTIONS = "import _pytest.python\n_pytest.python.Function.runtest = lambda self: None\n"
LIES = {
    "turns reports green": ({"conftest_py": GREEN}, CANARY),
    "ends the process": ({"conftest_py": "import os\ndef pytest_sessionfinish(): os._exit(0)\n"}, NO_END),
    "ends the process from the source": (
        {"app_py": "import os; os._exit(0)\n", "test_it_py": "import app\ndef test_bad(): assert 0\n"},
        NO_END,
    ),
    "empties the collection": ({"pytest_ini": "[pytest]\npython_files = no.py\n"}, NOTHING),
    "switches the asserts of unittest off": (
        {"app_py": NO_ASSERTS, "test_it_py": "import app\ndef test_it(): pass\n"},
        CANARY,
    ),
    "runs no test function": (
        {"app_py": NO_FUNCTIONS, "test_it_py": "import app\ndef test_bad(): assert 0\n"},
        CANARY,
    ),
}
RARER = {"ends the process", "runs no test function"}
"""Lies that another one resembles."""


@pytest.mark.parametrize(
    "lie", [pytest.param(one, marks=[pytest.mark.more] if one in RARER else []) for one in LIES]
)
def test_a_pytest_is_not_believed_when_it(desk: Desk, lie: str) -> None:
    files, problem = LIES[lie]
    _, (seen,) = see(desk, command(PYTEST), **{"test_it_py": "def test_bad(): assert False\n", **files})
    assert seen is not None
    assert problem in seen.problems


def test_a_report_that_is_changed_when_it_is_handed_on_was_seen_before(desk: Desk) -> None:
    verdict, (seen,) = see(
        desk, command(PYTEST), conftest_py=LATE_GREEN, test_it_py="def test_bad(): assert False\n"
    )
    assert "1 passed" in verdict.commands[0].tail, "the lie works"
    assert seen == Witnessed(failed=frozenset({"test_it.py::test_bad"}))


def test_a_hook_of_the_project_that_cannot_bear_the_canaries_does_no_harm(
    desk: Desk, wording: Wording
) -> None:
    hook = "def pytest_runtest_makereport(item, call):\n    item.callspec.params\n"
    params = "import pytest\n@pytest.mark.parametrize('n', [1])\ndef test_good(n): pass\n"
    verdict, (seen,) = see(desk, command(PYTEST), conftest_py=hook, test_it_py=params)
    assert seen is not None
    assert len(seen.problems) == 2
    wording(seen.problems[0])
    assert verdict.commands[0].exit_code == 0


def test_unittest_tells_every_test(desk: Desk) -> None:
    verdict, (seen,) = see(desk, command(UNITTEST), test_cases_py=CASES)
    assert seen == Witnessed(
        passed=frozenset({"test_cases.Cases.test_good"}),
        failed=frozenset({"test_cases.Cases.test_bad", "test_cases.Cases.test_parts"}),
        skipped=frozenset({"test_cases.Cases.test_left"}),
    )
    assert verdict.commands[0].command == UNITTEST, "the record has the command as it was asked for"
    assert "FAILED (failures=2, skipped=1)" in verdict.commands[0].tail


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("unittest.TestCase.assertEqual = lambda *a: None", CANARY),
        ("unittest.TestCase.run = lambda self, result=None: None", CANARY),
        ("import os; os._exit(0)", NO_END),
    ],
)
def test_a_unittest_is_not_believed_when_the_source_bends_it(desk: Desk, text: str, problem: str) -> None:
    _, (seen,) = see(
        desk,
        command(UNITTEST.replace("-q", "discover -q")),
        test_cases_py=CASES,
        test_aaa_py=f"import unittest\n{text}\n",
    )
    assert seen is not None
    assert problem in seen.problems


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
@pytest.mark.parametrize(
    "given", ["node --test", pytest.param("sh all.sh", marks=pytest.mark.more), "sh own.sh"]
)
def test_node_tells_every_test_wherever_it_is_started_from(desk: Desk, given: str) -> None:
    text = """
    import test from 'node:test';
    import assert from 'node:assert';
    test('good', () => assert.equal(process.env.LOOPWRIGHT_WITNESS, undefined));
    test('bad', () => assert.equal(1, 2));
    test('left', { skip: true }, () => {});
    """
    scripts = {"all.sh": "node --test\n", "own.sh": "NODE_OPTIONS=--no-warnings node --test\n"}
    verdict, (seen,) = see(desk, command(given), **{"a.test_mjs": text}, **scripts)
    assert seen == Witnessed(
        passed=frozenset({"a.test.mjs::good"}),
        failed=frozenset({"a.test.mjs::bad"}),
        skipped=frozenset({"a.test.mjs::left"}),
    )
    assert verdict.commands[0].exit_code == 1
    assert "fail 1" in verdict.commands[0].tail


def test_pytest_runs_a_test_alone_wherever_it_is_started_from(desk: Desk) -> None:
    only = frozenset({"two/test_it.py::test_good"})
    _, (seen,) = see(
        desk,
        command(f"{PYTEST} one && {PYTEST} two"),
        only=only,
        one__test_one_py=MIXED,
        two__test_it_py=MIXED,
    )
    assert seen == Witnessed(passed=only, problems=(NOTHING,)), (
        "the other run of the command has none of them"
    )


def test_unittest_runs_a_test_alone(desk: Desk) -> None:
    only = frozenset({"test_cases.Cases.test_good"})
    _, (seen,) = see(desk, command(UNITTEST.replace("-q", "discover -q")), only=only, test_cases_py=CASES)
    assert seen == Witnessed(passed=only)


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_a_file_that_ends_before_its_tests_is_no_test_of_node_that_passed(desk: Desk) -> None:
    leaves = "import test from 'node:test';\ntest('leaves', () => process.exit());\n"
    _, (seen,) = see(
        desk,
        command("node --test"),
        **{
            "leaves.test_mjs": leaves,
            "dies.test_mjs": "import 'no-such';\n",
            "plain.test_mjs": "let n = 1;\n",
        },
    )
    assert seen is not None
    assert seen.unloaded == {"dies.test.mjs"}
    # By paths that are the same in every tree.
    assert (seen.passed, seen.failed, seen.skipped) == (
        frozenset({"plain.test.mjs"}),
        frozenset({"dies.test.mjs"}),
        frozenset({"leaves.test.mjs"}),
    )


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_node_runs_a_test_alone(desk: Desk) -> None:
    text = """
    import test, { describe, it } from 'node:test';
    import assert from 'node:assert';
    test('bad', () => assert.equal(1, 2));
    describe("a 'suite'", () => { it("isn't $bad (at 1/2)", () => {}); it('other', () => assert.equal(1, 2)); });
    """
    only = frozenset({"a.test.mjs:: isn't $bad (at 1/2)"})
    _, (seen,) = see(desk, command("node --test"), only=only, **{"a.test_mjs": text})
    assert seen is not None
    assert (seen.passed, seen.failed, seen.problems) == (only, frozenset(), ())


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_node_tests_that_a_name_pattern_leaves_out_are_not_skipped(desk: Desk) -> None:
    text = "import test from 'node:test';\ntest('old', () => {});\ntest.skip('a new one', () => {});\n"
    _, (seen,) = see(desk, command("node --test --test-name-pattern=new"), **{"a.test_mjs": text})
    assert seen is not None
    assert (seen.passed, seen.skipped) == (frozenset(), frozenset({"a.test.mjs::a new one"}))
    assert seen.problems == ()


JEST = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="jest tests" tests="3" failures="1" errors="0" time="0.9">
  <testsuite name="sum" errors="0" failures="1" skipped="1" timestamp="2026-01-02T00:00:00" time="0.4" tests="3">
    <testcase classname="sum adds" name="sum adds" time="0.01"></testcase>
    <testcase classname="sum negates" name="sum negates" time="0.01"><failure>Error: expected 1</failure></testcase>
    <testcase classname="sum later" name="sum later" time="0"><skipped/></testcase>
  </testsuite>
</testsuites>
"""
VITEST = """<?xml version="1.0" encoding="UTF-8" ?>
<testsuites name="vitest tests" tests="2" failures="0" errors="0" time="0.2">
  <testsuite name="tests/sum.test.ts" tests="2" failures="0" errors="0" skipped="0" time="0.1">
    <testcase classname="tests/sum.test.ts" name="sum &gt; adds" time="0.001"></testcase>
    <testcase classname="tests/sum.test.ts" name="sum &gt; negates" time="0.001"></testcase>
  </testsuite>
</testsuites>
"""
GO = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="2" failures="1" errors="0" time="0.3">
  <testsuite tests="2" failures="1" time="0.003000" name="example.com/sum" timestamp="2026-01-02T00:00:00Z">
    <properties><property name="go.version" value="go1.23"></property></properties>
    <testcase classname="example.com/sum" name="TestAdd" time="0.000000"></testcase>
    <testcase classname="example.com/sum" name="TestTable/negative" time="0.000000">
      <failure message="Failed" type="">sum_test.go:9: got 1</failure>
    </testcase>
  </testsuite>
</testsuites>
"""


@pytest.mark.parametrize(
    ("report", "passed", "failed", "skipped"),
    [
        (JEST, {"sum adds::sum adds"}, {"sum negates::sum negates"}, {"sum later::sum later"}),
        (
            VITEST,
            {"tests/sum.test.ts::sum > adds", "tests/sum.test.ts::sum > negates"},
            set[str](),
            set[str](),
        ),
        (GO, {"example.com/sum::TestAdd"}, {"example.com/sum::TestTable/negative"}, set[str]()),
    ],
    ids=["jest", "vitest", "go"],
)
def test_the_report_of_a_runner_that_is_not_watched_tells_its_tests(
    desk: Desk, report: str, passed: set[str], failed: set[str], skipped: set[str]
) -> None:
    (desk.tree / "recorded").write_text(report)
    _, (seen,) = see(desk, command("cp recorded out.xml", junit="out.xml"))
    assert seen == Witnessed(
        passed=frozenset(passed), failed=frozenset(failed), skipped=frozenset(skipped), reported=True
    )


def test_a_runner_that_is_watched_is_believed_more_than_its_report(desk: Desk) -> None:
    _, (seen,) = see(
        desk, command(f"{PYTEST} --junitxml=out.xml", junit="out.xml"), test_it_py="def test_good(): pass\n"
    )
    assert seen == Witnessed(passed=frozenset({"test_it.py::test_good"}))


@pytest.mark.parametrize("text", ["true", "echo nonsense > out.xml"])
def test_a_report_that_is_missing_or_unreadable_tells_nothing(desk: Desk, text: str) -> None:
    verdict, (seen,) = see(desk, command(text, junit="out.xml"))
    assert seen is None
    assert verdict.status == "failed"


def test_a_run_that_is_taken_over_keeps_its_witness(desk: Desk) -> None:
    gate = CommandGate(term_grace_s=1.0)
    (desk.tree / "test_it.py").write_text("def test_good(): pass\n")
    request = desk.request(command(PYTEST))
    with desk.start(gate, request) as process:
        process.communicate(timeout=60)
    gate.spec(request)
    (seen,) = gate.witnessed(desk.directory, 1) or [None]
    assert seen == Witnessed(passed=frozenset({"test_it.py::test_good"}))
    assert gate.verdict(request, ended(0)).status == "passed"


def test_the_folder_of_the_witness_is_not_looked_for_by_its_name(desk: Desk, tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "secret").write_text("do not tell")
    swap = f"""
import json, os, shutil
(seen,) = [json.loads(one)["folder"] for one in os.environ.values() if one.startswith('{{"folder"')]
shutil.rmtree(seen)
os.symlink({str(hidden)!r}, seen)
"""
    verdict, _ = see(desk, command(f"{sys.executable} swap.py"), swap_py=swap)
    assert verdict.status == "passed"
    taken = [path for path in desk.directory.rglob("*") if path.is_file()]
    assert not [path.name for path in taken if b"do not tell" in path.read_bytes()]


def test_a_run_without_files_tells_nothing(tmp_path: Path) -> None:
    assert CommandGate().witnessed(tmp_path, 1) is None


def test_the_witness_needs_no_newer_python_than_3_8() -> None:
    folder = Path(__file__).parents[3] / "src" / "loopwright" / "adapters" / "gates" / "inside"
    for program in ("pytest_plugin.py", "unittest_program.py"):
        ast.parse((folder / program).read_text(), feature_version=(3, 8))


MISSING = "import no_such_module\ndef test_it(): pass\n"


@pytest.mark.parametrize("options", [pytest.param("", marks=pytest.mark.more), "-x"])
def test_a_file_that_cannot_be_imported_hides_no_other_test_of_pytest(desk: Desk, options: str) -> None:
    verdict, (seen,) = see(desk, command(f"{PYTEST} {options}"), test_a_py=MISSING, test_it_py=MIXED)
    assert seen is not None
    assert (seen.unloaded, seen.passed) == ({"test_a.py"}, {"test_it.py::test_good"})
    assert seen.failed == {"test_a.py", "test_it.py::test_bad", "test_it.py::test_broken"}
    assert verdict.commands[0].exit_code == 1


def test_a_module_that_unittest_cannot_load_is_told_as_such(desk: Desk) -> None:
    _, (seen,) = see(desk, command(UNITTEST), test_a_py=MISSING, test_cases_py=CASES)
    assert seen is not None
    assert seen.unloaded == {"unittest.loader._FailedTest.test_a"} < seen.failed
    assert "test_cases.Cases.test_good" in seen.passed


PASSING = "def test_good(): assert True\n"
INNER = """
import subprocess, sys
def test_inner():
    assert subprocess.run([sys.executable, "-m", "pytest", "check_x.py"], env={}).returncode == 1
"""
MAKEFILE = """
path: ; PYTHONPATH=src python -B -m pytest -q test_it.py
script: ; PYTHONPATH=src pytest -q test_it.py
emptied: ; env -i PATH="$$PATH" python3 -m pytest -q test_it.py
own: ; PYTHONPATH=src venv/bin/python -m pytest -q test_it.py
isolated: ; env -i venv/bin/python -I -m pytest -q
unittest: ; PYTHONPATH=src python3 -m unittest -q
"""


def test_python_tests_are_watched_whatever_the_command_does_to_its_environment(desk: Desk) -> None:
    files = {
        "Makefile": MAKEFILE,
        "test_it.py": PASSING,
        "test_inner.py": INNER,
        "check_x.py": "def test_x(): assert 0\n",
        "test_cases.py": CASES,
    }
    for name, content in files.items():
        (desk.tree / name).write_text(content)
    bare_python(desk.tree / "venv")
    bare = bare_python(desk.tree.parent / "bare")
    (bare / "pytest").write_text(f"#!{bare}/python\nimport pytest\nraise SystemExit(pytest.main())\n")
    (bare / "pytest").chmod(0o755)
    gate = CommandGate(term_grace_s=1.0)
    targets = ("path", "script", "emptied", "own", "isolated", "unittest")
    verdict, _, _ = desk.run(
        *(command(f"make {one}", one) for one in targets), gate=gate, PATH=f"{bare}:/usr/bin:/bin"
    )
    seen = dict(zip(targets, gate.witnessed(desk.directory, len(targets)) or (), strict=True))
    for target in ("path", "script", "emptied", "own"):
        assert seen[target] == Witnessed(passed=frozenset({"test_it.py::test_good"})), target
    isolated, unittest = seen["isolated"], seen["unittest"]
    assert isolated is not None
    assert {"test_it.py::test_good", "test_inner.py::test_inner"} <= isolated.passed
    assert not [one for one in isolated.failed if "check_x" in one], (
        "what a test starts is not what is judged"
    )
    assert unittest is not None
    assert unittest.passed == {"test_cases.Cases.test_good"}
    assert verdict.left_open == ()
    assert not list(desk.tree.rglob("*.pth")), "nothing of it is left"


def test_a_runner_that_did_not_report_is_named(desk: Desk, wording: Wording) -> None:
    runner = f"env -i {sys.executable} -B -m pytest -q {NOT_OURS}\n"
    verdict, (seen,) = see(desk, command("sh all.sh"), **{"all.sh": runner, "test_it_py": PASSING})
    assert seen is None
    assert verdict.status == "passed"
    (told,) = verdict.left_open
    wording(told)
    assert verdict.is_excused


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="this system does not list processes")
def test_the_process_of_a_test_runner_is_seen_from_outside_until_it_reports(tmp_path: Path) -> None:
    (tmp_path / "pytest").write_text("import sys\nsys.stdin.read()\n")
    # A shell gives what it starts in the background no input unless it is told to.
    line = ["sh", "-c", f'exec 3<&0; "{sys.executable}" -B "{tmp_path}/pytest" <&3 & wait']
    with subprocess.Popen(line, stdin=subprocess.PIPE, start_new_session=True) as shell:
        runners = Runners(shell.pid)
        try:
            eventually(lambda: runners.look(time.monotonic()) or runners.unwatched(()))
            (pid,) = children(shell.pid)
        finally:
            os.killpg(shell.pid, signal.SIGKILL)
    assert runners.unwatched({shell.pid}) == [], "one that reported may have been started in its place"
    assert (runners.unwatched(()), runners.unwatched({pid})) == (["pytest"], [])


@each_case(
    ("line", "runner"),
    [
        ("/venv/bin/python3.12 -B -W error -m pytest -q", "pytest"),
        ("python /venv/bin/pytest --version", ""),
        ("python -m coverage run -m pytest", "pytest"),
        ("python /venv/bin/coverage run -m unittest discover", "unittest"),
        ("python -m pip install pytest", ""),
        ("python /venv/bin/pip install pytest", ""),
        ("python -c pytest", ""),
        ("node --test test/", "node --test"),
        ("node /x/node_modules/.bin/jest --ci", "jest"),
        ("node /x/node_modules/vitest/vitest.mjs run", "vitest"),
        ("node server.js", ""),
        ("/usr/lib/go/bin/go test ./...", "go test"),
        ("go test -c ./...", ""),
        ("go vet ./...", ""),
        ("ruff check pytest", ""),
    ],
)
def test_a_process_is_known_as_a_test_runner_by_its_words(line: str, runner: str) -> None:
    assert named(line.split()) == runner
