"""What every forge must keep, against a fake of it on the loopback interface."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fakes.forges import FakeForge, FakeGitHub, FakeGitLab, Trouble
from tests.refusals import raises_code

from loopwright.adapters.forge.choosing import open_forge
from loopwright.core.values.errors import Busy, Refused
from loopwright.ports import Forge, Request, Wanted

BRANCH = "loopwright/plan_1/main"
WANTED = Wanted(branch=BRANCH, base="trunk", title="Rate limiting", body="| a | table |")
VARIABLES = {FakeGitHub: ("github", "GITHUB_TOKEN"), FakeGitLab: ("gitlab", "GITLAB_TOKEN")}


@pytest.fixture(params=[FakeGitHub, FakeGitLab], ids=["github", "gitlab"])
def fake(request: pytest.FixtureRequest) -> Iterator[FakeForge]:
    with request.param("acme/app", branches={"trunk", BRANCH}) as fake:
        yield fake


def opened(fake: FakeForge, *, path: str = "acme/app", token: str | None = None) -> Forge:
    kind, variable = VARIABLES[type(fake)]
    return open_forge(
        f"git@forge.example:{path}.git",
        hosts=[f"forge.example {kind} {fake.url}"],
        token_file=None,
        env={variable: fake.token if token is None else token},
    )


def ask(forge: Forge, wanted: Wanted = WANTED) -> Request:
    return asyncio.run(forge.request(wanted))


def test_a_request_is_opened_once_and_found_again(fake: FakeForge) -> None:
    first = ask(opened(fake))
    again = ask(opened(fake))
    assert (first.created, again.created) == (True, False)
    assert (first.n, first.url) == (again.n, again.url)
    (made,) = fake.opened
    assert (made.title, made.body, made.branch, made.base) == (
        "Rate limiting",
        "| a | table |",
        BRANCH,
        "trunk",
    )


def test_one_that_a_person_closed_is_not_taken_for_it(fake: FakeForge) -> None:
    first = ask(opened(fake))
    fake.close(first.n)
    assert ask(opened(fake)).n != first.n


def test_an_answer_that_was_lost_on_the_way_opens_no_second_one(fake: FakeForge) -> None:
    fake.troubles = [None, Trouble(status=502, then_do=True)]
    with pytest.raises(Busy):
        ask(opened(fake))
    assert len(fake.opened) == 1
    assert ask(opened(fake)).created is False
    assert len(fake.opened) == 1


def test_a_race_for_the_same_branch_ends_with_the_other_ones_request(fake: FakeForge) -> None:
    real, state = fake.answer, iter([True])

    def somebody_was_quicker(asked):
        if asked.method == "POST" and next(state, False):
            fake.open(title="theirs", body="", branch=BRANCH, base="trunk")
        return real(asked)

    fake.answer = somebody_was_quicker  # type: ignore[method-assign]
    assert ask(opened(fake)).created is False
    assert [one.title for one in fake.opened] == ["theirs"]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda fake: opened(fake, token="wrong-token-0815"), ("does not know the token", "TOKEN")),
        (lambda fake: opened(fake, path="acme/other"), ("no such repository", "TOKEN")),
    ],
)
def test_a_refusal_is_told_in_plain_words_without_the_token(
    fake: FakeForge, make: Callable[[FakeForge], Forge], words: tuple[str, ...]
) -> None:
    with pytest.raises(Refused) as refused:
        ask(make(fake))
    told = f"{refused.value} {refused.value.hint}"
    assert all(word in told for word in words), told
    assert "wrong-token-0815" not in told + repr(make(fake).__dict__)


def test_a_base_that_the_forge_does_not_have_is_told(fake: FakeForge) -> None:
    with raises_code("pull_request_refused") as refused:
        ask(opened(fake), replace(WANTED, base="nowhere"))
    assert "nowhere is there" in (refused.value.hint or "")


@pytest.mark.parametrize(
    ("trouble", "after_s"),
    [
        (Trouble(status=429, headers={"Retry-After": "7"}), 7.0),
        (Trouble(status=429), 60.0),
        (Trouble(status=403, headers={"Retry-After": "9"}), 9.0),
        (Trouble(status=403, headers={"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1"}), 1.0),
        (Trouble(status=503, headers={"Retry-After": "99999"}), 3600.0),
        (Trouble(status=500), None),
    ],
)
def test_a_forge_that_wants_to_be_left_alone_is_asked_later(
    fake: FakeForge, trouble: Trouble, after_s: float | None
) -> None:
    fake.troubles = [trouble]
    with pytest.raises(Busy) as busy:
        ask(opened(fake))
    assert busy.value.after_s == after_s
    assert ask(opened(fake)).created


@pytest.mark.parametrize("status", [301, 307])
def test_a_token_does_not_follow_a_redirect(fake: FakeForge, status: int) -> None:
    fake.troubles = [Trouble(status=status, headers={"Location": f"{fake.url}/elsewhere"})]
    with pytest.raises(Refused, match="moved"):
        ask(opened(fake))
    assert len(fake.asked) == 1


def test_a_permission_that_the_token_lacks_is_told(fake: FakeForge) -> None:
    fake.troubles = [Trouble(status=403, message="Resource not accessible")]
    with raises_code("forge_refused"):
        ask(opened(fake))


def test_a_forge_that_is_not_there_is_asked_later() -> None:
    with FakeGitHub("acme/app") as gone:
        forge = opened(gone)
    with raises_code("busy"):
        ask(forge)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("/srv/git/app.git", "not a repository on a forge"),
        ("git@git.example.com:acme/app.git", "git.example.com"),
        ("https://github.evil.example/acme/app", "not known"),
    ],
)
def test_a_token_goes_to_no_host_that_was_not_named(address: str, words: str) -> None:
    with pytest.raises(Refused, match=words):
        open_forge(address, hosts=[], token_file=None, env={"GITHUB_TOKEN": "t", "GITLAB_TOKEN": "t"})


def test_a_token_goes_nowhere_without_encryption() -> None:
    with raises_code("forge_not_encrypted"):
        open_forge(
            "git@ghe.example.com:a/b.git",
            hosts=["ghe.example.com github http://ghe.example.com/api/v3"],
            token_file=None,
            env={"GITHUB_TOKEN": "t"},
        )


def test_a_token_in_a_file_is_used_if_only_its_owner_can_read_it(fake: FakeForge, tmp_path: Path) -> None:
    kind, _ = VARIABLES[type(fake)]
    file = tmp_path / "token"
    file.write_text(f"{fake.token}\n")
    given = {"hosts": [f"forge.example {kind} {fake.url}"], "token_file": str(file), "env": {}}
    file.chmod(0o644)
    with raises_code("forge_token_exposed"):
        open_forge("https://forge.example/acme/app.git", **given)
    file.chmod(0o600)
    assert ask(open_forge("https://forge.example/acme/app.git", **given)).created


def test_without_a_token_it_is_said_where_to_put_one() -> None:
    with pytest.raises(Refused) as refused:
        open_forge("https://github.com/acme/app", hosts=[], token_file=None, env={})
    assert "GITHUB_TOKEN or GH_TOKEN" in (refused.value.hint or "")
