"""JUnit reports that real commands write into a tree."""

import os

import pytest
from tests.integration.gates.desks import command, ended

from loopwright.adapters.gates.commands import CommandGate, OutputLimits
from loopwright.core.values.findings import VerdictStatus

GOOD = '<testsuite><testcase name="ok"/></testsuite>'
BAD = '<testsuite><testcase name="no"><failure message="why"/></testcase></testsuite>'


def checks(verdict):
    return [(c.name, c.status.value, c.message) for c in verdict.checks]


def problem(verdict):
    """The message about a report that proves nothing; there must be one, and the verdict must be a failure."""
    assert verdict.status is VerdictStatus.FAILED
    (message,) = [c.message for c in verdict.checks if c.name.startswith("report ") and c.status == "error"]
    return message


@pytest.mark.capability("C081")
def test_a_report_gives_a_check_for_each_test(desk):
    verdict, _, _ = desk.run(command(f"mkdir -p out && echo '{GOOD}' >out/r.xml", junit="out/r.xml"))
    assert verdict.status is VerdictStatus.PASSED
    assert checks(verdict) == [("ok", "passed", "")]


@pytest.mark.capability("C081")
def test_exit_code_0_with_a_failed_test_in_the_report_is_a_failure(desk):
    verdict, _, _ = desk.run(command(f"echo '{BAD}' >r.xml; exit 0", junit="r.xml"))
    assert verdict.status is VerdictStatus.FAILED
    assert checks(verdict) == [("no", "failed", "why")]


def test_a_clean_report_does_not_hide_a_bad_exit_code(desk):
    verdict, _, _ = desk.run(command(f"echo '{GOOD}' >r.xml; exit 1", junit="r.xml"))
    assert verdict.status is VerdictStatus.FAILED
    assert checks(verdict) == [("check", "failed", "exit code 1"), ("ok", "passed", "")]


def test_an_old_report_does_not_count(desk, wording):
    (desk.tree / "r.xml").write_text(GOOD)
    verdict, _, _ = desk.run(command("true", junit="r.xml"))
    wording(problem(verdict))


def test_two_commands_may_write_the_same_report(desk):
    verdict, _, _ = desk.run(
        command(f"echo '{GOOD}' >r.xml", "one", junit="r.xml"),
        command(f"echo '{BAD}' >r.xml", "two", junit="r.xml"),
    )
    assert [(c.id, c.status.value) for c in verdict.checks] == [
        ("1:one/ok", "passed"),
        ("2:two/no", "failed"),
    ]


@pytest.mark.parametrize(
    ("script", "path", "words"),
    [
        ("echo '<testsuites/>' >r.xml", "r.xml", "lists no tests"),
        ("echo garbage >r.xml", "r.xml", "not well-formed"),
        ("mkdir r.xml", "r.xml", "not a plain file"),
        ("mkfifo r.xml", "r.xml", "not a plain file"),
        ("ln -s ../outside.xml r.xml", "r.xml", "symbolic link"),
        ("ln -s .. up", "up/outside.xml", "symbolic link"),
        ("true", "../outside.xml", "must stay inside the tree"),
        ("true", "a/../../outside.xml", "must stay inside the tree"),
        ("true", "/etc/passwd", "must stay inside the tree"),
        ("true", ".", "must stay inside the tree"),
        ("touch a", "a/r.xml", "symbolic link or a file"),
        ("head -c 2000 /dev/zero >r.xml", "r.xml", "larger than 1000 bytes"),
    ],
)
def test_a_report_that_cannot_be_trusted_fails_the_gate_with_the_reason(desk, script, path, words):
    outside = desk.tree.parent / "outside.xml"
    outside.write_text(GOOD)
    gate = CommandGate(limits=OutputLimits(junit_bytes=1000))
    verdict, _, _ = desk.run(command(script, junit=path), gate=gate)
    assert words in problem(verdict)
    assert outside.read_text() == GOOD


def test_a_link_in_the_place_of_an_old_report_is_removed_and_not_what_it_points_to(desk):
    outside = desk.tree.parent / "outside.xml"
    outside.write_text(GOOD)
    (desk.tree / "r.xml").symlink_to(outside)
    verdict, _, _ = desk.run(command(f"echo '{GOOD}' >r.xml", junit="r.xml"))
    assert verdict.status is VerdictStatus.PASSED
    assert outside.read_text() == GOOD


def test_a_folder_in_the_place_of_a_report_stands_in_the_way(desk, wording):
    (desk.tree / "r.xml").mkdir()
    verdict, _, _ = desk.run(command(f"rmdir r.xml; echo '{GOOD}' >r.xml", junit="r.xml"))
    wording(problem(verdict))


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_a_report_that_may_not_be_read_fails_the_gate(desk, wording):
    verdict, _, _ = desk.run(command(f"echo '{GOOD}' >r.xml; chmod 0 r.xml", junit="r.xml"))
    wording(problem(verdict))


def test_a_report_that_was_changed_after_it_was_taken_is_a_broken_gate(desk, wording):
    asked = command(f"echo '{BAD}' >r.xml", junit="r.xml")
    desk.run(asked)
    (desk.directory / "gate" / "1.xml").write_text(GOOD)
    verdict = CommandGate().verdict(desk.request(asked), ended(0))
    assert verdict.status is VerdictStatus.INCONCLUSIVE
    wording(verdict.reason)
