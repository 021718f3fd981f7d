"""What is seen inside jest, vitest and go, honest ones and deceived ones; and inside cargo, by configuration."""

import os
import shutil
from pathlib import Path

import pytest
from tests.integration.gates.desks import Desk, command

from loopwright.adapters.gates.commands import CommandGate
from loopwright.config.gates import TEST_RUNNERS
from loopwright.core.values.findings import Verdict, Witnessed

pytestmark = [pytest.mark.runners, pytest.mark.timeout(600)]
FOLDER = Path(__file__).resolve().parents[3] / ".runners"
CANARY = "the test runner cannot be believed: a canary test that has to fail passed"
MIXED = """
test('good', () => { expect(1).toBe(1) });
describe('sums', () => {
  test('bad', () => { expect(1).toBe(2) });
  test.skip('left', () => {});
  test.todo('later');
});
"""
VITEST = "import { describe, expect, test } from 'vitest';\n"
SEEN = Witnessed(
    passed=frozenset({"a.test.js::good"}),
    failed=frozenset({"a.test.js::sums > bad", "b.test.js"}),
    skipped=frozenset({"a.test.js::sums > left", "a.test.js::sums > later"}),
    unloaded=frozenset({"b.test.js"}),
)
PACKAGE = '{"name": "it", "version": "1.0.0", "scripts": {"test": "jest", "own": "NODE_OPTIONS=--no-warnings jest"}}'
DECEIVES = {
    "jest": "globalThis.expect = () => ({ toBe() {}, toThrow() {}, toContain() {}, toEqual() {} });\n",
    "vitest run": "import { expect } from 'vitest';\nexpect.extend({ toBe: () => ({ pass: true }) });\n",
}
MODULE = "module example.com/calc\n\ngo 1.20\n"
CALC = "package calc\n\nfunc Add(a, b int) int { return a + b }\n"
CALC_TEST = """package calc

import "testing"

func TestAdd(t *testing.T) {
	if Add(1, 2) != 3 {
		t.Fatal("wrong")
	}
}
func TestBad(t *testing.T)  { t.Run("part", func(t *testing.T) { t.Fatal("bad") }) }
func TestLeft(t *testing.T) { t.Skip("left") }
"""
LEAVES = """package calc

import "os"

func init() { os.Exit(0) }

func Add(a, b int) int { return 0 }
"""
CARGO = {
    "command": "cargo test",
    "tests": r"^test (?P<id>\S+) \.\.\. (?:(?P<passed>ok)|(?P<failed>FAILED)|(?P<skipped>ignored))",
    "file": "tests/{name}.rs",
    "passes": "#[test]\nfn {name}() {}\n",
    "fails": "#[test]\nfn {name}() { panic!() }\n",
    "run": "cargo test --offline --test {name}",
}


def see(
    desk: Desk, text: str, files: dict[str, str], *runners: dict[str, str]
) -> tuple[Verdict, Witnessed | None]:
    for name, content in files.items():
        path = desk.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    modules = FOLDER / "node_modules"
    if not (desk.tree / "node_modules").exists() and "go.mod" not in files:
        (desk.tree / "node_modules").symlink_to(modules)
    places = [str(modules / ".bin"), str(FOLDER / "go" / "go" / "bin"), os.environ["PATH"]]
    env = {
        "PATH": os.pathsep.join(places),
        "HOME": os.environ.get("HOME", "/"),
        "GOCACHE": str(FOLDER / "go-cache"),
        "CI": "true",
    }
    gate = CommandGate(term_grace_s=1.0)
    verdict, _, _ = desk.run(command(text), gate=gate, runners=TEST_RUNNERS.read(list(runners)), **env)
    seen = gate.witnessed(desk.directory, 1)
    assert seen is not None
    assert verdict.left_open == (), "every runner was watched"
    return verdict, seen[0]


@pytest.mark.parametrize("text", ["jest", "npm test", "npm run own"])
def test_jest_tells_every_test_also_below_npm(desk: Desk, text: str) -> None:
    files = {"package.json": PACKAGE, "a.test.js": MIXED, "b.test.js": "require('./nothing');\n"}
    verdict, seen = see(desk, text, files)
    assert seen == SEEN
    assert "1 failed, 1 skipped, 1 todo, 1 passed, 4 total" in verdict.commands[0].tail
    assert verdict.commands[0].exit_code == 1


def test_vitest_tells_every_test_and_the_reports_of_its_configuration_are_written(desk: Desk) -> None:
    config = "export default { test: { reporters: ['default', ['junit', { outputFile: 'report.xml' }]] } };\n"
    files = {"vitest.config.mjs": config, "a.test.js": VITEST + MIXED, "b.test.js": "import './nothing';\n"}
    verdict, seen = see(desk, "vitest run", files)
    assert seen == SEEN
    assert "1 passed" in verdict.commands[0].tail
    assert "a.test.js" in (desk.tree / "report.xml").read_text()


@pytest.mark.parametrize("text", ["jest -t new", "vitest run -t new"])
def test_tests_that_a_name_pattern_leaves_out_are_deselected_and_not_skipped(desk: Desk, text: str) -> None:
    tests = (
        "describe('a', () => { test('old', () => {}); test.skip('left', () => {}); });\n"
        "test.skip('a new one', () => {});\n"
    )
    config = "export default { test: { globals: true } };\n"
    _, seen = see(desk, text, {"package.json": PACKAGE, "vitest.config.mjs": config, "a.test.js": tests})
    assert seen == Witnessed(
        skipped=frozenset({"a.test.js::a new one"}),
        deselected=frozenset({"a.test.js::a > old", "a.test.js::a > left"}),
    )


@pytest.mark.parametrize("runner", DECEIVES)
def test_expectations_that_are_switched_off_are_found_out(desk: Desk, runner: str) -> None:
    config = {
        "jest.config.js": "module.exports = { setupFilesAfterEnv: ['./setup.js'] };\n",
        "vitest.config.mjs": "export default { test: { globals: true, setupFiles: ['./setup.js'] } };\n",
    }
    setup = DECEIVES[runner]
    files = {**config, "setup.js": setup, "a.test.js": "test('it', () => { expect(1).toBe(2) });\n"}
    verdict, seen = see(desk, runner, files)
    assert verdict.commands[0].exit_code == 0
    assert seen is not None
    assert seen.problems == (CANARY,)


def test_go_tells_every_test_and_prints_what_it_always_does(desk: Desk) -> None:
    files = {
        "go.mod": MODULE,
        "calc.go": CALC,
        "calc_test.go": CALC_TEST,
        "other/other.go": "package other\n",
    }
    verdict, seen = see(desk, "go test ./...", files)
    assert seen == Witnessed(
        passed=frozenset({"example.com/calc::TestAdd"}),
        failed=frozenset({"example.com/calc::TestBad", "example.com/calc::TestBad/part"}),
        skipped=frozenset({"example.com/calc::TestLeft"}),
    )
    assert verdict.commands[0].exit_code == 1
    assert "FAIL\texample.com/calc" in verdict.commands[0].tail
    assert "=== RUN" not in verdict.commands[0].tail
    assert not [path for path in desk.tree.rglob("*") if "test_" in path.name]


def test_a_package_that_leaves_before_its_tests_is_found_out(desk: Desk) -> None:
    files = {"go.mod": MODULE, "calc.go": LEAVES, "calc_test.go": CALC_TEST}
    verdict, seen = see(desk, "go test ./...", files)
    assert verdict.commands[0].exit_code == 0
    assert seen is not None
    assert not seen.passed
    assert "no tests were collected" in seen.problems


@pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo")
def test_a_runner_by_configuration_is_read_and_tried(desk: Desk) -> None:
    files = {
        "Cargo.toml": '[package]\nname = "it"\nversion = "0.1.0"\nedition = "2021"\n',
        "src/lib.rs": "pub fn one() -> i32 { 1 }\n",
        "tests/it.rs": "#[test] fn good() { assert_eq!(it::one(), 1) }\n#[test] fn bad() { panic!() }\n"
        "#[test] #[ignore] fn left() {}\n",
    }
    _, seen = see(desk, "cargo test --offline", files, CARGO)
    assert seen == Witnessed(
        passed=frozenset({"good"}),
        failed=frozenset({"bad"}),
        skipped=frozenset({"left"}),
        reported=True,
        tried=True,
    )
    assert not list((desk.tree / "tests").glob("test_*"))
