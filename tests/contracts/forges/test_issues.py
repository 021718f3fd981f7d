"""What every forge must say about issues, requests and checks, against a fake of it on the loopback interface."""

import asyncio
from collections.abc import Iterator

import pytest
from tests.contracts.forges.test_forges import VARIABLES
from tests.fakes.forges import FakeForge, FakeGitHub, FakeGitLab, Trouble
from tests.refusals import raises_code

from loopwright.adapters.forge.choosing import open_issues
from loopwright.core.values.errors import Busy
from loopwright.ports import Issues

LABEL = "loopwright"
HEAD = "a" * 40


@pytest.fixture(params=[FakeGitHub, FakeGitLab], ids=["github", "gitlab"])
def fake(request: pytest.FixtureRequest) -> Iterator[FakeForge]:
    with request.param("acme/app") as fake:
        fake.book.writers.add("mia")
        fake.book.head = lambda _: HEAD
        yield fake


def opened(fake: FakeForge) -> Issues:
    kind, variable = VARIABLES[type(fake)]
    return open_issues(
        "git@forge.example:acme/app.git",
        hosts=[f"forge.example {kind} {fake.url}"],
        token_file=None,
        env={variable: fake.token},
    )


def test_labelled_issues_are_listed_without_requests(fake: FakeForge) -> None:
    for n in range(230):
        fake.book.write(f"Issue {n}", "")
    for n in range(1, 221):
        fake.book.label(n, LABEL, by="mia")
    fake.book.issues[3].is_open = False
    fake.open(title="a request", body="", branch="b", base="trunk")
    assert list(asyncio.run(opened(fake).labelled(LABEL))) == [1, 2, *range(4, 221)]


def test_an_issue_says_who_labelled_it_and_when_its_text_was_changed(fake: FakeForge) -> None:
    n = fake.book.write("Slow", "It is slow.", by="eve")
    issues = opened(fake)
    bare = asyncio.run(issues.issue(n, LABEL))
    assert (bare.title, bare.body, bare.author, bare.is_open) == ("Slow", "It is slow.", "eve", True)
    assert (bare.labelled_by, bare.labelled_at, bare.edited_at) == ("", None, None)
    fake.book.label(n, LABEL, by="eve")
    fake.book.label(n, "bug", by="zoe")
    fake.book.label(n, LABEL, by="mia")
    labelled = asyncio.run(issues.issue(n, LABEL))
    assert (labelled.labelled_by, labelled.labels) == ("mia", (LABEL, "bug"))
    assert labelled.edited_at is None
    for change in (fake.book.edit, fake.book.rename):
        before = asyncio.run(issues.issue(n, LABEL))
        change(n, "something else")
        after = asyncio.run(issues.issue(n, LABEL))
        assert after.edited_at is not None
        assert after.labelled_at is not None
        assert after.edited_at > max(after.labelled_at, before.edited_at or after.labelled_at)


def test_a_label_that_a_program_set_is_nobodys(fake: FakeForge) -> None:
    n = fake.book.write("Slow", "It is slow.")
    fake.book.label(n, LABEL, by="mia", is_person=False)
    assert asyncio.run(opened(fake).issue(n, LABEL)).labelled_by == ""


def test_who_may_write_is_asked_of_the_forge(fake: FakeForge) -> None:
    issues = opened(fake)
    fake.book.writers.add("mia-the-second")
    may = [asyncio.run(issues.may_write(one)) for one in ("mia", "eve", "m", "", "../mia")]
    assert may == [True, False, False, False, False]


def test_an_issue_is_commented_labelled_and_closed(fake: FakeForge) -> None:
    n, issues = fake.book.write("Slow", "It is slow."), opened(fake)
    asyncio.run(issues.comment(n, "hello"))
    asyncio.run(issues.change(n, labels=["bug", "taken"]))
    assert [(one.author, one.text) for one in asyncio.run(issues.remarks(n))] == [("robot", "hello")]
    found = asyncio.run(issues.issue(n, LABEL))
    assert (found.labels, found.is_open) == (("bug", "taken"), True)
    asyncio.run(issues.change(n, labels=["bug"], close=True))
    found = asyncio.run(issues.issue(n, LABEL))
    assert (found.labels, found.is_open) == (("bug",), False)


def test_a_request_is_open_merged_or_closed(fake: FakeForge) -> None:
    issues = opened(fake)
    numbers = [fake.open(title="", body="", branch=f"b{n}", base="trunk").n for n in range(3)]
    fake.book.merge(numbers[1])
    fake.close(numbers[2])
    found = [asyncio.run(issues.request_status(n)) for n in numbers]
    assert [one.state for one in found] == ["open", "merged", "closed"]
    assert {one.head for one in found} == {HEAD}


def test_comments_and_reviews_of_a_request_are_read_with_their_place(fake: FakeForge) -> None:
    n, issues = fake.open(title="", body="", branch="b", base="trunk").n, opened(fake)
    asyncio.run(issues.request_comment(n, "from here"))
    fake.book.say(n, "in general", by="mia", review=True)
    fake.book.say(n, "rename this", by="eve", place="app.py:3")
    found = asyncio.run(issues.request_remarks(n))
    assert [(one.author, one.text, one.place) for one in found] == [
        ("robot", "from here", ""),
        ("mia", "in general", ""),
        ("eve", "rename this", "app.py:3"),
    ]
    assert len({one.id for one in found}) == 3


def test_failed_checks_of_a_commit_are_read_with_what_they_say(fake: FakeForge) -> None:
    issues = opened(fake)
    nothing = asyncio.run(issues.checks(HEAD))
    assert (nothing.running, nothing.failed) == (False, ())
    fake.book.check(HEAD, "lint")
    fake.book.check(HEAD, "unit", running=True)
    assert asyncio.run(issues.checks(HEAD)).running
    fake.book.check(HEAD, "unit", failed=True, text="E: it is 41")
    done = asyncio.run(issues.checks(HEAD))
    [failed] = done.failed
    assert (done.running, failed.name) == (False, "unit")
    assert "E: it is 41" in failed.text
    fake.book.check(HEAD, "unit")
    assert asyncio.run(issues.checks(HEAD)).failed == ()


def test_an_issue_that_is_not_there_and_a_forge_in_trouble_are_told_apart(fake: FakeForge) -> None:
    issues = opened(fake)
    with raises_code("issue_not_found" if isinstance(fake, FakeGitHub) else "forge_refused"):
        asyncio.run(issues.issue(99, LABEL))
    fake.troubles = [Trouble(status=503)]
    with pytest.raises(Busy):
        asyncio.run(issues.may_write("mia"))
