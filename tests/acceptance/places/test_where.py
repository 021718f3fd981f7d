"""Wherever a person stands when they type `loopwright run`: it works there, or it says what to do."""

import shlex
import subprocess
from pathlib import Path

import pytest
from tests.acceptance.cli.program import git, repository
from tests.acceptance.control.workshop import Workshop, refused
from tests.acceptance.sandbox import task
from tests.loaded import Said

from loopwright.core.rows.model import Attempt, Plan, Project


def _merge(said: Said, folder: Path) -> None:
    """Type the command that was printed at the end."""
    (line,) = [line for line in said.out.splitlines() if line.startswith("merge it:")]
    command = line.removeprefix("merge it:").strip()
    assert command.startswith("git merge --ff-only loopwright/plan_")
    subprocess.run(shlex.split(command), cwd=folder, check=True, capture_output=True)


def test_the_result_is_on_a_branch_of_its_own_until_the_printed_command_merges_it(shop: Workshop) -> None:
    """The default branch here is called trunk, like in every sandbox; nothing anywhere says main or master."""
    before = shop.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", "refs/tags")
    said = shop.run(shop.chain("one", "two"))
    assert said.code == 0, said.out + said.err
    assert "from trunk (" in said.out
    plan = shop.row(Plan)
    assert plan.base_ref == "trunk"
    after = shop.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", "refs/tags")
    assert set(after.splitlines()) - set(before.splitlines()) == {
        f"refs/heads/{plan.branch} {plan.result_sha}"
    }
    shop.untouched()
    assert (shop.repository / ".loopwright" / "receipts").is_dir(), (
        "our own folder is there, and git is silent"
    )
    _merge(said, shop.repository)
    assert (shop.repository / "two").read_text() == "two\n"
    assert shop.git("rev-parse", "trunk").strip() == plan.result_sha


def test_a_detached_head_is_a_place_to_start_from(shop: Workshop) -> None:
    shop.git("switch", "-q", "--detach")
    said = shop.run(shop.chain("one"))
    assert said.code == 0, said.out + said.err
    plan = shop.row(Plan)
    assert (plan.base_ref, plan.base_sha) == ("HEAD", shop.git("rev-parse", "HEAD").strip())
    _merge(said, shop.repository)
    assert shop.git("rev-parse", "HEAD").strip() == plan.result_sha
    assert shop.git("rev-parse", "trunk").strip() == plan.base_sha


def test_uncommitted_changes_are_named_left_alone_and_not_part_of_the_work(shop: Workshop) -> None:
    (shop.repository / "greet.txt").write_text("hello, but different\n")
    (shop.repository / "notes.txt").write_text("mine\n")
    shop.git("add", "notes.txt")
    before = shop.git("status", "--porcelain")
    plan = shop.plan("dirty", [task("one", "test -s one && ! test -e notes.txt && grep -qx hello greet.txt")])
    shop.play({"one": [[{"write": "one", "text": "1\n"}]]})
    said = shop.run(plan)
    assert said.code == 0, said.out + said.err
    assert "not committed, so not part of the work: greet.txt, notes.txt" in said.out
    assert shop.git("status", "--porcelain") == before
    assert (shop.repository / "greet.txt").read_text() == "hello, but different\n"
    assert shop.events("checkout_changed") == []


def test_a_plan_may_start_from_another_commit(shop: Workshop) -> None:
    shop.git("switch", "-q", "-c", "older")
    shop.git("switch", "-q", "trunk")
    (shop.repository / "newer").write_text("x\n")
    shop.git("add", "-A")
    shop.git("commit", "-q", "-m", "second")
    plan = shop.plan("older", [task("one", "test -s one && ! test -e newer")])
    shop.play({"one": [[{"write": "one", "text": "1\n"}]]})
    said = shop.run(plan, "--base", "older")
    assert said.code == 0, said.out + said.err
    assert shop.row(Plan).base_ref == "older"
    refused(shop.run(plan, "--base", "nowhere", "--new"), 2, "'nowhere' names no commit")


@pytest.mark.trap("gate elsewhere")
def test_in_a_sub_folder_agent_setup_and_gates_run_there(shop: Workshop) -> None:
    shop.repository = repository(
        shop.place / "many",
        {
            "top.txt": "top\n",
            "services/api/loopwright.toml": (
                'setup = "pwd > /dev/null && test -f api.txt && echo made > made.local"\n'
                'copy_files = [".env"]\n'
                '[[gates]]\nname = "here"\nrun = "test -f api.txt && test -f made.local && grep -q x .env"\n'
            ),
            "services/api/api.txt": "api\n",
            "services/api/.gitignore": "*.local\n.env\n",
        },
    )
    folder = shop.repository / "services" / "api"
    (folder / ".env").write_text("x=1\n")
    shop.play({"one": [[{"run": "cat api.txt .env > one && test -f made.local && echo ok >> one"}]]})
    (folder / "plan.yaml").write_text(
        "title: inside\ntasks:\n  - {id: one, title: One, acceptance: ['grep -q ok one']}\n"
    )
    said = shop("run", "plan.yaml", cwd=folder, timeout=90)
    assert said.code == 0, said.out + said.err
    project, plan = shop.row(Project), shop.row(Plan)
    assert (project.path, project.subfolder) == (str(shop.repository), "services/api")
    changed = shop.git("diff", "--name-only", plan.base_sha, plan.branch).split()
    assert changed == ["services/api/one"], "copied and made files are not committed"
    assert shop.git("show", f"{plan.branch}:services/api/one") == "api\nx=1\nok\n"
    assert shop.git("status", "--porcelain").split() == ["??", "services/api/plan.yaml"]
    assert "receipt: ../../.loopwright/receipts/" in said.out
    _merge(said, folder)
    # The plan is the same one from anywhere, and one that lies elsewhere is not for this folder.
    again = shop("run", "api/plan.yaml", cwd=folder.parent)
    assert (again.code, len(shop.rows(Plan))) == (0, 1), again.out + again.err
    (shop.repository / "plan.yaml").write_text((folder / "plan.yaml").read_text())
    refused(shop("run", "../../plan.yaml", cwd=folder), 2, "plan.yaml is not in services/api", "from the top")


def test_a_folder_without_settings_of_its_own_is_no_project(shop: Workshop) -> None:
    (shop.repository / "src").mkdir()
    (shop.repository / "src" / "start").write_text("x\n")
    (shop.repository / "plan.yaml").write_text(shop.chain("one").read_text())
    shop.git("add", "-A")
    shop.git("commit", "-q", "-m", "a plan")
    said = shop("run", "../plan.yaml", cwd=shop.repository / "src", timeout=90)
    assert said.code == 0, said.out + said.err
    assert shop.row(Project).subfolder == ""
    again = shop("run", "plan.yaml", cwd=shop.repository)
    assert (again.code, len(shop.rows(Plan))) == (0, 1), again.out + again.err


def test_a_linked_worktree_is_a_place_like_any_other(shop: Workshop) -> None:
    tree = shop.place / "second tree"
    shop.git("worktree", "add", "-q", "-b", "feature", str(tree))
    said = shop("run", str(shop.chain("one")), cwd=tree, timeout=90)
    assert said.code == 0, said.out + said.err
    assert shop.row(Plan).base_ref == "feature"
    assert git(tree, "status", "--porcelain") == ""
    _merge(said, tree)
    assert (tree / "one").exists()
    assert not (shop.repository / "one").exists()


def test_a_folder_that_is_no_repository_says_what_to_do(shop: Workshop) -> None:
    plan = shop.chain("one")
    plain = shop.place / "plain"
    plain.mkdir()
    refused(shop("run", str(plan), cwd=plain), 2, "is not in a git repository", "git init")
    git(plain, "init", "-q")
    refused(shop("run", str(plan), cwd=plain), 2, "has no commit yet", "git commit")
    assert shop.rows(Attempt) == []
    assert sorted(path.name for path in plain.iterdir()) == [".git"]


def test_a_sub_folder_that_is_not_committed_says_what_to_do(shop: Workshop) -> None:
    folder = shop.repository / "fresh"
    folder.mkdir()
    (folder / "loopwright.toml").touch()
    said = shop("run", str(shop.chain("one")), cwd=folder, timeout=90)
    refused(said, 2, "fresh", "commit")
    assert shop.rows(Attempt) == []
