"""The end of a plan: where its verified work goes, what is never touched, and that a kill changes nothing."""

import hashlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.acceptance.control.workshop import Workshop, refused
from tests.acceptance.sandbox import task
from tests.fakes.forges import FakeGitHub, Trouble

from loopwright.core.rows.model import Finish, Plan, Role, Run, Task
from loopwright.core.values.states import FinishState


def trailer(shop: Workshop, commit: str, key: str) -> str:
    return shop.git("log", "-1", f"--format=%(trailers:key={key},valueonly)", commit).strip()


def tree(shop: Workshop, commit: str) -> str:
    return shop.git("rev-parse", f"{commit}^{{tree}}").strip()


@pytest.mark.capability("C069")
def test_a_verified_plan_is_squashed_into_the_base_with_the_checkout_that_has_it(shop: Workshop) -> None:
    plan = shop.chain("one", "two", settings={"finish": "squash"})
    (shop.repository / "mine.txt").write_text("untracked\n")
    said = shop.run(plan)
    assert said.code == 0, said.out + said.err
    assert "squashed into trunk" in said.out
    row, finish = shop.row(Plan), shop.row(Finish)
    assert shop.git("rev-list", "--count", "trunk").strip() == "2"
    assert tree(shop, "trunk") == tree(shop, row.result_sha)
    assert (shop.repository / "one").read_text() == "one\n"
    assert shop.git("status", "--porcelain").split() == ["??", "mine.txt"]
    assert (finish.state, finish.commit_sha) == (FinishState.FINISHED, shop.git("rev-parse", "trunk").strip())
    # The very tree of the result was gated when the plan was verified: it is not gated twice.
    assert shop.rows(Run, role=Role.FINISH) == []
    frozen = shop.repository / ".loopwright" / "receipts" / f"{finish.id}.json"
    hashed = hashlib.sha256(frozen.read_bytes()).hexdigest()
    assert trailer(shop, "trunk", "Loopwright-Receipt") == f"sha256:{hashed}"
    assert trailer(shop, "trunk", "Loopwright-Finish") == finish.id
    assert shop("receipt", "verify").code == 0
    assert [event.type for event in shop.events("finish_begun", "finish_landing", "finish_done")] == [
        "finish_begun",
        "finish_landing",
        "finish_done",
    ]
    # What the squash has in it is proven by its content, so the branch and the pins may go, whatever is checked out.
    shop.git("switch", "-qc", "older", "trunk~1")
    told = shop("clean", "--yes", "--json").document
    assert [one["delete"] != [] and one["keep"] == [] for one in told["plans"]] == [True]
    # What git deletes after that cannot be looked at again; the home knows why, and of nothing else.
    assert shop("receipt", "verify").code == 0
    shop.git("reflog", "expire", "--expire=now", "--all")
    shop.git("gc", "-q", "--prune=now")
    said = shop("receipt", "verify", "--json")
    assert (said.code, said.document["agrees"], said.document["differences"]) == (1, False, [])
    assert set(said.document["cleaned"]) == {row.result_sha, *(one.landed_sha for one in shop.rows(Task))}
    assert "CANNOT BE VERIFIED ANY MORE" in shop("receipt", "verify").out
    receipt = frozen.with_name(f"{row.id}.json")
    elsewhere = shop(
        "receipt", "verify", str(receipt), env={"LOOPWRIGHT_HOME": str(shop.repository.parent / "no")}
    )
    assert "DIFFERS" in elsewhere.out
    shop.git("branch", "-qD", "trunk")
    shop.git("reflog", "expire", "--expire=now", "--all")
    shop.git("gc", "-q", "--prune=now")
    (differs,) = shop("receipt", "verify", "--json").document["differences"]
    assert (differs["code"], differs["subject"]) == ("commit_missing", finish.commit_sha)


def commit(shop: Workshop, name: str, text: str, *, at: Path | None = None) -> None:
    """Commit a file in the user's own checkout, or in another worktree of it."""
    where = at or shop.repository
    (where / name).write_text(text)
    shop.git("-C", str(where), "add", name)
    shop.git("-C", str(where), "commit", "-qm", f"my {name}")


@pytest.mark.capability("C069")
def test_a_person_accepts_into_a_base_that_moved_and_nothing_of_theirs_is_touched(shop: Workshop) -> None:
    assert shop.run(shop.chain("one", "two")).code == 0
    plan = shop.row(Plan)
    shop.untouched()
    refused(shop("accept"), 2, "leave", "--finish squash")
    refused(shop("accept", "--tasks", "two", "--finish", "squash"), 2, "two builds on one", "--tasks one,two")

    # Changes that are not committed: refused with what to do, and they stay.
    commit(shop, "other.txt", "mine\n")
    (shop.repository / "greet.txt").write_text("hello and more\n")
    said = shop("accept", "--finish", "fast-forward")
    assert said.code == 3
    assert "greet.txt" in said.out
    assert "commit or stash" in said.out
    assert (shop.repository / "greet.txt").read_text() == "hello and more\n"
    shop.git("checkout", "-q", "greet.txt")

    # A file that git does not track would be overwritten.
    (shop.repository / "one").write_text("not yours\n")
    said = shop("accept", "--finish", "fast-forward")
    assert said.code == 3
    told = " ".join(said.out.split())
    assert "with files in it that git does not know and that the result has as well: one" in told
    assert f"what to do: move them away from {shop.repository}" in told
    assert (shop.repository / "one").read_text() == "not yours\n"
    # The plan is as verified as before: what a person asked for in vain is no fault of it.
    again = shop.run(shop.place / "chain.yaml")
    assert again.code == 0, again.out + again.err
    assert "merge it:" in again.out
    (shop.repository / "one").unlink()

    # The base has moved on: both together are built, gated, and only then moved.
    before = shop.git("rev-parse", "trunk").strip()
    said = shop("accept", "--finish", "fast-forward", "--json")
    assert said.code == 0, said.out + said.err
    assert shop.git("rev-parse", "trunk^1", "trunk^2").split() == [before, plan.result_sha]
    assert (shop.repository / "one").read_text() == "one\n"
    assert (shop.repository / "other.txt").read_text() == "mine\n"
    assert shop.git("status", "--porcelain") == ""
    (gate,) = shop.rows(Run, role=Role.FINISH)
    assert gate.verdict is not None
    assert [one.command for one in gate.verdict.commands] == [
        "grep -q hello greet.txt",
        "test -s one",
        "test -s two",
    ]
    states = [one.state for one in shop.rows(Finish)]
    assert states == [FinishState.REFUSED, FinishState.REFUSED, FinishState.FINISHED]
    assert shop("receipt", "verify").code == 0
    assert len(shop.events("command_applied")) == 3
    # Once more: there is nothing left to do.
    said = shop("accept", "--finish", "squash")
    assert (said.code, "nothing was left to do" in said.out) == (0, True)
    assert "Running agents are not interrupted. This command moves the work" in said.out


@pytest.mark.capability("C069")
def test_what_conflicts_or_turns_red_with_the_base_moves_nothing(shop: Workshop) -> None:
    shop.play({"one": [[{"write": "one", "text": "theirs\n"}]], "two": [[{"write": "two", "text": "2\n"}]]})
    tasks = [task("one", "test -s one"), task("two", "test ! -e blocker")]
    assert shop.run(shop.plan("both", tasks)).code == 0
    # The base branch is checked out in another worktree; here is another branch.
    shop.git("switch", "-qc", "elsewhere")
    aside = shop.place / "aside"
    shop.git("worktree", "add", "-q", str(aside), "trunk")
    commit(shop, "blocker", "red\n", at=aside)
    before = shop.git("rev-parse", "trunk")
    said = shop("accept", "--finish", "squash")
    assert said.code == 3
    assert "these checks fail: two is right" in said.out
    assert "git merge --no-commit" in said.out
    # Only the task that does not care about it.
    said = shop("accept", "--tasks", "one", "--finish", "squash")
    assert said.code == 0, said.out + said.err
    assert shop.git("rev-parse", "trunk^") == before
    assert (aside / "one").read_text() == "theirs\n"
    assert not (aside / "two").exists()
    assert shop.git("-C", str(aside), "status", "--porcelain") == ""
    assert shop.git("rev-parse", "HEAD") != shop.git("rev-parse", "trunk")
    assert shop("receipt", "verify").code == 0

    commit(shop, "two", "mine\n", at=aside)
    shop.git("-C", str(aside), "rm", "-q", "blocker")
    shop.git("-C", str(aside), "commit", "-qm", "no blocker")
    tip = shop.git("rev-parse", "trunk")
    said = shop("accept", "--tasks", "two", "--finish", "fast-forward")
    assert (said.code, "same places as trunk" in said.out) == (3, True)
    said = shop("accept", "--finish", "fast-forward", "--json")
    assert said.code == 3
    assert f"git merge {shop.row(Plan).branch}" in said.document["finish"]["detail"]
    assert shop.git("rev-parse", "trunk") == tip


def test_kills_in_the_middle_of_the_end_are_made_good_and_it_is_done_once(shop: Workshop) -> None:
    plan = shop.chain("one", settings={"finish": "squash"})
    moments = ("store.finish.landing.before", "git.base.before", "git.base.after", "store.finish.done.before")
    for moment in moments:
        killed = shop("run", str(plan), env={"LOOPWRIGHT_FAILPOINT": moment})
        if moment == "store.finish.done.before" and killed.code == 0:
            break  # the branch was moved before the last kill: then nothing was left but to say so
        assert killed.code == -9, moment + killed.out + killed.err
        assert shop.row(Finish).state in (FinishState.CHECKING, FinishState.LANDING)
    said = shop.run(plan)
    assert said.code == 0, said.out + said.err
    finish = shop.row(Finish)
    assert finish.state is FinishState.FINISHED
    assert finish.leg == len(moments) + 1
    assert shop.git("rev-list", "--count", "trunk").strip() == "2"
    assert shop.git("rev-parse", "trunk").strip() == finish.commit_sha
    assert shop.git("status", "--porcelain") == ""
    assert shop.row(Task).landed_sha == shop.row(Plan).result_sha
    assert len(shop.events("finish_done")) == 1


@pytest.fixture
def forge() -> Iterator[FakeGitHub]:
    with FakeGitHub("acme/app", token="tok_0123456789abcdef") as forge:
        yield forge


@pytest.mark.timeout(300)
def test_a_verified_plan_becomes_a_pull_request_once(shop: Workshop, forge: FakeGitHub) -> None:
    bare = shop.place / "remote.git"
    shop.git("init", "-q", "--bare", str(bare))
    plan = shop.chain("one", "two", settings={"finish": "pull-request"})
    refused(shop.run(plan), 2, "no git remote 'origin'")
    shop.git("remote", "add", "origin", "git@forge.example:acme/app.git")
    shop.git("config", f"url.{bare}.insteadOf", "git@forge.example:acme/app.git")
    shop.program.env["LOOPWRIGHT_FORGE__HOSTS"] = f'["forge.example github {forge.url}"]'
    refused(shop.run(plan), 2, "no token for GitHub", "GITHUB_TOKEN or GH_TOKEN")
    shop.program.env["GH_TOKEN"] = forge.token

    killed = shop("run", str(plan), env={"LOOPWRIGHT_FAILPOINT": "git.push.after"})
    assert killed.code == -9, killed.out + killed.err
    forge.troubles = [None, Trouble(status=502, then_do=True)]  # the answer to its creation is lost
    said = shop.run(plan)
    assert said.code == 0, said.out + said.err
    row, finish = shop.row(Plan), shop.row(Finish)
    (made,) = forge.opened
    assert (made.branch, made.base, made.title) == (row.branch, "trunk", "chain")
    assert f"sha256 `{finish.receipt_sha256}`" in made.body
    assert "`test -s two`" in made.body
    assert finish.request_url == "https://github.com/acme/app/pull/1"
    assert f"pull request: {finish.request_url}" in said.out
    assert shop.git("-C", str(bare), "rev-parse", row.branch).strip() == row.result_sha
    shop.untouched()
    assert shop("receipt", "verify").code == 0

    # One task of it, in a request of its own.
    said = shop("accept", "--tasks", "one", "--json")
    assert said.code == 0, said.out + said.err
    assert said.document["finish"]["request_url"] == "https://github.com/acme/app/pull/2"
    branch = forge.opened[1].branch
    assert shop.git("-C", str(bare), "ls-tree", "--name-only", branch).split() == [
        ".gitignore",
        "README.md",
        "greet.txt",
        "one",
    ]
    assert forge.token.encode() not in everything(shop.home, shop.repository / ".loopwright")


def everything(*folders: Path) -> bytes:
    return b"".join(path.read_bytes() for one in folders for path in one.rglob("*") if path.is_file())


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="there is no ssh-keygen here")
def test_a_squash_is_signed_with_the_users_own_key(shop: Workshop) -> None:
    shop.program.env["LOOPWRIGHT_FINISH_SIGN"] = "true"
    plan = shop.chain("one", settings={"finish": "squash"})
    refused(shop.run(plan), 2, "git has no key to sign with", "user.signingkey")
    key = shop.program.user / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    shop.git("config", "gpg.format", "ssh")
    shop.git("config", "user.signingkey", str(key))
    hidden = key.rename(key.with_name("elsewhere"))
    said = shop.run(plan)
    assert said.code == 3, said.out + said.err
    assert "could not be signed with your key" in said.out
    hidden.rename(key)
    said = shop("accept")
    assert said.code == 0, said.out + said.err
    (shop.place / "signers").write_text(f"* {key.with_suffix('.pub').read_text()}")
    shop.git("-c", f"gpg.ssh.allowedSignersFile={shop.place / 'signers'}", "verify-commit", "trunk")
    assert shop.rows(Finish)[-1].signed
    assert shop("receipt", "verify").code == 0
