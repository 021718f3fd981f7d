"""JUnit reports, good and hostile."""

import time

import pytest
from tests.cases import each_case

from loopwright.adapters.gates.junit import Unreadable, junit_checks

PYTEST = """<?xml version="1.0" encoding="utf-8"?>
<testsuites name="pytest tests"><testsuite name="pytest" errors="1" failures="1" skipped="1" tests="4" time="0.1">
<testcase classname="tests.test_a" name="test_one" time="0.001" />
<testcase classname="tests.test_a" name="test_two" time="0.25"><failure message="assert 1 == 2">def test_two():
&gt;       assert 1 == 2
E       assert 1 == 2</failure></testcase>
<testcase classname="tests.test_a" name="test_three" time="0"><error message="failed on setup">boom</error></testcase>
<testcase classname="tests.test_a" name="test_four" time="0"><skipped type="pytest.skip" message="later">x</skipped>
</testcase></testsuite></testsuites>"""


def parsed(text):
    data = text if isinstance(text, bytes) else text.encode()
    return [(c.name, c.status.value, c.message, c.duration_s) for c in junit_checks(data, prefix="1:t")]


def outcomes(text):
    return [(name, status) for name, status, _, _ in parsed(text)]


@pytest.mark.capability("C081")
def test_each_test_of_a_report_becomes_a_check_with_message_and_duration():
    assert parsed(PYTEST) == [
        ("tests.test_a::test_one", "passed", "", 0.001),
        (
            "tests.test_a::test_two",
            "failed",
            "assert 1 == 2\ndef test_two():\n>       assert 1 == 2\nE       assert 1 == 2",
            0.25,
        ),
        ("tests.test_a::test_three", "error", "failed on setup\nboom", 0.0),
        ("tests.test_a::test_four", "skipped", "later\nx", 0.0),
    ]


CASE = '<testcase name="t"/>'


@each_case(
    ("text", "expected"),
    [
        (f"<testsuite>{CASE}</testsuite>", [("t", "passed")]),
        (f'<testsuite name="s">{CASE}</testsuite>', [("s::t", "passed")]),
        (
            f'<testsuites><testsuite name="a"><testsuite name="b">{CASE}</testsuite>{CASE}</testsuite></testsuites>',
            [("b::t", "passed"), ("a::t", "passed")],
        ),
        ("<testsuite><testcase/></testsuite>", [("(no name)", "passed")]),
        (
            f'<testsuite name="s"><error message="no module"/>{CASE}</testsuite>',
            [("s::t", "passed"), ("s", "error")],
        ),
        (f"<testsuite><skipped/>{CASE}</testsuite>", [("t", "passed")]),
        (f"<testsuite><failure/>{CASE}</testsuite>", [("t", "passed"), ("(no name)", "failed")]),
        (
            '<testsuite><testcase name="t"><skipped/><failure>x</failure></testcase></testsuite>',
            [("t", "failed")],
        ),
        (
            f'<testsuite><testcase name="off" status="notrun"/>{CASE}</testsuite>',
            [("off", "skipped"), ("t", "passed")],
        ),
        ('<testsuite><testcase name="t" status="FAILED"/></testsuite>', [("t", "failed")]),
        ('<testsuite><testcase name="t" result="completed"/></testsuite>', [("t", "passed")]),
        (
            '<testsuite><testcase name="t"><system-out><failure/></system-out></testcase></testsuite>',
            [("t", "passed")],
        ),
        (f'<j:testsuite xmlns:j="urn:x">{CASE}</j:testsuite>', [("t", "passed")]),
        (f"<testsuites><failure/><testsuite>{CASE}</testsuite></testsuites>", [("t", "passed")]),
    ],
)
def test_reports_of_many_tools_are_read(text, expected):
    assert outcomes(text) == expected


@each_case("encoding", ["utf-8", "utf-16", "iso-8859-1"])
def test_a_report_may_have_any_declared_encoding(encoding):
    text = f'<?xml version="1.0" encoding="{encoding}"?><testsuite><testcase name="grün"/></testsuite>'
    assert outcomes(text.encode(encoding)) == [("grün", "passed")]


LAUGHS = (
    '<!DOCTYPE t [<!ENTITY a "ha">'
    + "".join(f'<!ENTITY a{n} "{("&a" + str(n - 1) + ";") * 10}">' for n in range(1, 20))
    + "]><testsuite><testcase name='&a19;'/></testsuite>"
)
OUTSIDE = (
    '<!DOCTYPE t [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
    "<testsuite><testcase name='t'><failure>&x;</failure></testcase></testsuite>"
)


@each_case(
    ("text", "words"),
    [
        ("", "well-formed"),
        ("not xml at all", "well-formed"),
        (PYTEST[: len(PYTEST) // 2], "well-formed"),
        (b"\x00\xff\xfe garbage", "well-formed"),
        (f"<testsuite>{CASE}</testsuite><more/>", "well-formed"),
        ("<testsuite><testcase name='&undefined;'/></testsuite>", "well-formed"),
        ('<?xml version="1.0" encoding="no-such"?><testsuite/>', "encoding"),
        ("<html/>", "not a JUnit report: it begins with <html>"),
        ("<testcase/>", "not a JUnit report"),
        ("<testsuites/>", "lists no tests"),
        ('<testsuites><testsuite tests="0"/></testsuites>', "lists no tests"),
        ("<testsuite><testcase><skipped/></testcase></testsuite>", "all 1 tests were skipped"),
        (f'<testsuite failures="2" errors="1">{CASE}</testsuite>', "counts 3 failures but lists none"),
        ("<testsuite>" * 100, "nested too deeply"),
        ("<testsuites><testcase><testcase/><failure/></testcase></testsuites>", "inside another test"),
        (LAUGHS, "document type"),
        (OUTSIDE, "document type"),
        (
            f"<!DOCTYPE testsuite SYSTEM 'http://127.0.0.1/x.dtd'><testsuite>{CASE}</testsuite>",
            "document type",
        ),
    ],
)
def test_a_report_that_proves_nothing_is_unreadable_and_says_why(text, words):
    began = time.process_time()
    with pytest.raises(Unreadable, match=words):
        parsed(text)
    assert time.process_time() - began < 5


def test_counts_that_are_no_numbers_are_ignored():
    assert outcomes(f'<testsuite failures="many" errors="-1">{CASE}</testsuite>') == [("t", "passed")]


def test_a_huge_failure_text_is_cut_in_the_middle():
    failure = f'<failure message="first">{"x" * 5_000_000}end</failure>'
    text = f'<testsuite><testcase name="t">{failure}</testcase></testsuite>'
    ((_, _, message, _),) = parsed(text)
    assert message.startswith("first\n[cut]\n")
    assert message.endswith("end")
    assert len(message) <= 4096


def test_a_report_with_more_tests_than_can_be_true_is_unreadable():
    report = f"<testsuite>{'<testcase/>' * 11}</testsuite>".encode()
    assert len(junit_checks(report, prefix="t", max_tests=11)) == 11
    with pytest.raises(Unreadable, match="more than 10 tests"):
        junit_checks(report, prefix="t", max_tests=10)
