"""A command whose tests all run in a wider command of the same gate is not run separately."""

import sys

import pytest
from tests.integration.gates.desks import Desk, command
from tests.wording_plugin import Wording

from loopwright.adapters.gates.commands import CommandGate
from loopwright.core.values.findings import VerdictStatus

TESTS = command(f"{sys.executable} -B -m pytest -q -p no:cacheprovider tests", "tests")
NARROW = command(f"{TESTS.command}/test_a.py", "narrow")
PASSES, FAILS = "def test_it():\n    pass\n", "def test_it():\n    assert 0\n"
SKIPS = "import pytest\n\ndef test_it():\n    pytest.skip('not here')\n"


def write(desk: Desk, **files: str) -> None:
    (desk.tree / "tests").mkdir()
    for name, text in files.items():
        (desk.tree / "tests" / f"{name}.py").write_text(text)


def outputs(desk: Desk) -> tuple[str, ...]:
    return tuple((desk.directory / "gate" / f"{n}.out").read_text() for n in (1, 2))


def test_a_narrower_command_shares_the_run_of_the_wider_one(desk: Desk, wording: Wording) -> None:
    write(desk, test_a=PASSES, test_b=PASSES)
    verdict, _, _ = desk.run(NARROW, TESTS, may_share=frozenset({NARROW.command}))
    assert verdict.status is VerdictStatus.PASSED
    narrow, tests = outputs(desk)
    wording(narrow)
    assert "2 passed" in tests
    seen = [one for one in CommandGate().witnessed(desk.directory, 2) or () if one is not None]
    assert [len(one.passed) for one in seen] == [1, 2]
    assert [one.problems for one in seen] == [(), ()]


@pytest.mark.parametrize(
    "files",
    [
        {"test_a": FAILS, "test_b": PASSES},
        pytest.param({"test_a": PASSES, "test_b": FAILS}, marks=pytest.mark.more),
        {"test_a": SKIPS, "test_b": PASSES},
        pytest.param({"test_b": PASSES}, marks=pytest.mark.more),
    ],
    ids=["its test fails", "another test fails", "its test is skipped", "it has no tests"],
)
def test_it_runs_by_itself_unless_its_tests_passed_in_the_wider_one(
    desk: Desk, files: dict[str, str]
) -> None:
    write(desk, **files)
    desk.run(NARROW, TESTS, may_share=frozenset({NARROW.command}))
    narrow, tests = outputs(desk)
    assert "not run separately" not in narrow
    assert narrow != tests


def test_it_runs_by_itself_where_it_may_not_share(desk: Desk) -> None:
    write(desk, test_a=PASSES)
    desk.run(NARROW, TESTS)
    assert "not run separately" not in outputs(desk)[0]


GO = r"""#!/bin/sh
# Prints what the real go prints of two packages, and of this run's canaries in them.
end() {
    for action in run "$3"; do
        printf '{"Action":"%s","Package":"%s","Test":"%s"}\n' "$action" "$1" "$2"
    done
}
names=$(printf '%s\n' "$@" | sed -n 's/^-run=^(\(.*\))$$/\1/p')
for package in example.com/app/one example.com/app/one/inner; do
    case "$*" in
    list*) printf '%s\t%s\tone\n' "$package" "$PWD" ;;
    *-overlay=*) end "$package" "${names%|*}" pass; end "$package" "${names#*|}" fail ;;
    *) end "$package" TestIt pass ;;
    esac
done
"""


@pytest.mark.parametrize(
    ("path", "shares"), [("./one/", True), ("./", False), pytest.param("./on", False, marks=pytest.mark.more)]
)
def test_a_package_of_go_shares_the_run_of_all_packages(desk: Desk, path: str, shares: bool) -> None:
    (desk.tree / "go.mod").write_text("module example.com/app // here\n")
    (desk.tree / "bin").mkdir()
    (desk.tree / "bin" / "go").write_text(GO)
    (desk.tree / "bin" / "go").chmod(0o755)
    narrow = command(f"go test -count=1 {path}", "narrow")
    env = {"PATH": f"{desk.tree}/bin:/usr/bin:/bin"}
    desk.run(narrow, command("go test -count=1 ./...", "all"), may_share=frozenset({narrow.command}), **env)
    said, _ = outputs(desk)
    assert ("its 1 tests passed" in said) is shares, "a package below it is another one"
