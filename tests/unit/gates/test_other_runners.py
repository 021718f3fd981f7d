"""What is read of test runners that not every machine has: as the real ones wrote it down (`tests/data/runners`)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cases import each_case

from loopwright.adapters.gates.inside import __file__ as inside
from loopwright.adapters.gates.witnesses import read_witness
from loopwright.config.gates import TEST_RUNNERS
from loopwright.config.kinds import WrongValue
from loopwright.core.values.findings import Witnessed

RECORDED = Path(__file__).resolve().parents[2] / "data" / "runners"
NAMES = {"must_pass": "test_aa", "must_fail": "test_bb"}
GO = """#!/bin/sh
# Prints what the real go printed, with the names of this run's canaries.
case "$*" in
list*) printf 'example.com/calc\\t%s\\tcalc\\n' "$PWD" ;;
*-overlay=*) sed "s/Test_PASS/Test_test_aa/g; s/Test_FAIL/Test_test_bb/g" RECORDED/go_canaries.jsonl; exit 1 ;;
*) cat RECORDED/go_test.jsonl; exit 1 ;;
esac
"""
RUNNER = {
    "command": "bats",
    "tests": "tap",
    "file": "tests/{name}.bats",
    "passes": "@test {name} { true; }",
    "fails": "@test {name} { false; }",
    "run": "bats tests/{name}.bats",
}


def session(lines: bytes) -> bytes:
    return b'{"e":"session"}\n' + lines


@each_case("runner", ["jest", "vitest"])
def test_what_jest_and_vitest_wrote_down_is_read(runner: str) -> None:
    assert read_witness(session((RECORDED / f"{runner}.seen").read_bytes()), NAMES) == Witnessed(
        passed=frozenset({"a.test.js::good"}),
        failed=frozenset({"a.test.js::sums > bad", "b.test.js"}),
        skipped=frozenset({"a.test.js::sums > left", "a.test.js::sums > later"}),
        unloaded=frozenset({"b.test.js"}),
    )


def go(
    tmp_path: Path, *arguments: str, recorded: Path = RECORDED, script: str = GO
) -> tuple[subprocess.CompletedProcess[str], bytes]:
    """Run our program in front of a go that prints what the real one did; return what was written down."""
    fake = tmp_path / "go"
    fake.write_text(script.replace("RECORDED", str(recorded)))
    fake.chmod(0o755)
    folder = tmp_path / "seen"
    folder.mkdir()
    told = json.dumps({"folder": str(folder), "only": [], **NAMES})
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(Path(inside).parent / "go_program.py"), str(fake), *arguments],
        env={"PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path), "LOOPWRIGHT_WITNESS": told},
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    return done, b"".join(session(path.read_bytes()) for path in folder.iterdir())


def test_go_is_written_down_and_prints_what_it_always_does(tmp_path: Path) -> None:
    done, seen = go(tmp_path, "test", "./...")
    assert read_witness(seen, NAMES) == Witnessed(
        passed=frozenset({"example.com/calc::TestAdd"}),
        failed=frozenset({"example.com/calc::TestBad", "example.com/calc::TestBad/part"}),
        skipped=frozenset({"example.com/calc::TestLeft"}),
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert "--- FAIL: TestBad/part" in done.stdout
    assert "TestAdd" not in done.stdout
    assert "Test_" not in done.stdout, "nothing of the canaries shows"


AHEAD = r"""#!/bin/sh
# The canaries are compiled while a test runs. Their program waits until it has ended.
case "$*" in
list*) printf 'example.com/calc\t%s\tcalc\n' "$PWD" ;;
*-exec=*)
    for word; do case $word in -exec=*) runs=${word#-exec=} ;; esac; done
    touch compiled
    eval "$runs cp ended seen_by_canary"
    sed "s/Test_PASS/Test_test_aa/g; s/Test_FAIL/Test_test_bb/g" RECORDED/go_canaries.jsonl ;;
*)
    echo '{"Action":"run","Package":"example.com/calc","Test":"TestAdd"}'
    until test -e compiled; do sleep 0.01; done
    touch ended
    echo '{"Action":"pass","Package":"example.com/calc","Test":"TestAdd"}' ;;
esac
"""


def test_canaries_of_go_are_compiled_while_tests_run_and_run_when_these_ended(tmp_path: Path) -> None:
    _, seen = go(tmp_path, "test", "./...", script=AHEAD)
    assert read_witness(seen, NAMES) == Witnessed(passed=frozenset({"example.com/calc::TestAdd"}))
    assert (tmp_path / "seen_by_canary").exists()


def test_what_is_no_run_of_tests_goes_to_the_real_go(tmp_path: Path) -> None:
    done, seen = go(tmp_path, "list", "./...")
    assert (done.stdout, seen) == (f"example.com/calc\t{tmp_path}\tcalc\n", b"")


def test_a_go_test_that_began_and_did_not_end_has_failed_and_canaries_that_are_missing_are_told(
    tmp_path: Path,
) -> None:
    torn = tmp_path / "torn"
    torn.mkdir()
    lines = (RECORDED / "go_test.jsonl").read_text().splitlines(keepends=True)
    (torn / "go_test.jsonl").write_text("".join(line for line in lines if '"Action":"pass"' not in line))
    (torn / "go_canaries.jsonl").write_text("")
    _, lines_seen = go(tmp_path, "test", "./...", recorded=torn)
    seen = read_witness(lines_seen, NAMES)
    assert seen is not None
    assert "example.com/calc::TestAdd" in seen.failed
    assert [words.rpartition(" ")[0].rpartition(" has to ")[2] for words in seen.problems] == [
        "fail was not",
        "pass was not",
    ]


def test_a_runner_of_the_settings_is_read_and_shown_as_it_was_written() -> None:
    (runner,) = TEST_RUNNERS.read([RUNNER])
    assert TEST_RUNNERS.show((runner,)) == [RUNNER]
    assert TEST_RUNNERS.read(json.dumps([RUNNER])) == (runner,)


@each_case(
    ("change", "words"),
    [
        ({"run": None}, "run in each test runner"),
        ({"tests": "^ok (?P<id>.*)"}, 'the named groups id, passed and failed; "failed" is missing'),
        ({"tests": "("}, "a regular expression"),
        ({"file": "../{name}"}, "without .."),
        ({"file": "tests/canary.bats"}, "with {name} in it"),
        ({"fail": "x"}, "did you mean"),
    ],
)
def test_a_runner_that_cannot_work_is_refused_with_the_reason(change: dict[str, str], words: str) -> None:
    with pytest.raises(WrongValue) as wrong:
        TEST_RUNNERS.read([{**RUNNER, **change}])
    assert words in str(wrong.value)
