"""Whatever an agent does to its workspace, the harness commits the files and runs nothing of the agent's."""

from pathlib import Path

import pytest
from tests.integration.git.world import AT, PLAN, TASK, World, sh, start_repository, write

REF = f"refs/loopwright/attempts/{PLAN}/{TASK}/1"
WORK = "echo two > app.py; echo new > new.txt"
EXPECTED = {"app.py", "new.txt"}

MISDEEDS = {
    "commits": f"{WORK}; git add -A; git commit -qm mine",
    "stages": f"{WORK}; git add -A",
    "resets": f"{WORK}; git add -A; git commit -qm mine; git reset -q --soft HEAD~0; git reset -q",
    "deletes .git": f"{WORK}; rm -rf .git",
    "replaces .git by a file": f"{WORK}; rm -rf .git; echo 'gitdir: {{user}}/.git' > .git",
    "replaces .git by a link": f"{WORK}; rm -rf .git; ln -s {{user}}/.git .git",
    "empties .git": f"{WORK}; rm -rf .git; mkdir .git",
    "breaks HEAD": f"{WORK}; echo garbage > .git/HEAD",
    "breaks the index": f"{WORK}; echo garbage > .git/index; touch .git/index.lock",
    "rewrites refs": f"{WORK}; echo {'f' * 40} > .git/refs/heads/work; rm -rf .git/objects",
    "links objects": f"{WORK}; git commit -qam mine; mv .git/objects {{tmp}}/o; ln -s {{tmp}}/o .git/objects",
    "points alternates elsewhere": f"{WORK}; git commit -qam mine; echo {{tmp}} >> .git/objects/info/alternates",
    "orphan branch": f"{WORK}; git checkout -q --orphan other; git commit -qm x --allow-empty",
    "pretends to be bare": f"{WORK}; git config core.bare true; git config core.worktree {{user}}",
    "excludes everything": f"{WORK}; echo '*' > .git/info/exclude; git config core.excludesFile .git/info/exclude",
    "assumes unchanged": f"{WORK}; git update-index --assume-unchanged app.py; git update-index --skip-worktree app.py",
    "sparse": f"{WORK}; git config core.sparseCheckout true; echo docs > .git/info/sparse-checkout",
    "unreadable": f"{WORK}; chmod 000 new.txt",
    "pipe": f"{WORK}; mkfifo pipe",
    "other spelling of .git": f"{WORK}; mkdir .GIT 'git~1'; touch .GIT/config 'git~1/x'",
    "symlinked attributes": f"{WORK}; ln -s /etc/passwd .gitmodules",
}


@pytest.mark.parametrize("script", MISDEEDS.values(), ids=MISDEEDS.keys())
async def test_the_work_is_recorded_whatever_was_done_to_git(
    world: World, script: str, tmp_path: Path
) -> None:
    before = await world.repository.tripwire()
    await world.make()
    world.agent(script.replace("{user}", str(world.user)).replace("{tmp}", str(tmp_path)))
    snapshot = await world.snapshot()
    assert set(snapshot.changed) == EXPECTED
    assert world.sh("git", "show", f"{REF}:app.py") == "two"
    assert await world.repository.tripwire() == before
    world.sh("git", "fsck", "--strict")


PROGRAMS = {
    "fsmonitor": "git config core.fsmonitor {trap}",
    "hooks": "mkdir -p .git/hooks; for h in pre-commit post-index-change post-checkout reference-transaction"
    " pre-auto-gc; do cp {trap} .git/hooks/$h; done",
    "hooks path": "mkdir hooks; cp {trap} hooks/post-index-change; git config core.hooksPath hooks",
    "filter": "git config filter.evil.clean {trap}; git config filter.evil.smudge {trap};"
    " echo '* filter=evil' > .gitattributes",
    "diff": "git config diff.evil.textconv {trap}; git config diff.external {trap};"
    " echo '* diff=evil' > .gitattributes",
    "alias": "git config alias.add '!{trap}'; git config alias.write-tree '!{trap}'",
    "include": "echo '[core] fsmonitor = {trap}' > evil; git config include.path ../evil",
    "signing": "git config commit.gpgSign true; git config gpg.program {trap}",
    "upload-pack": "git config uploadpack.packObjectsHook {trap}; git commit -qam mine",
    "nested repository": "git init -q nested; cd nested; touch f; git add f; git commit -qm f;"
    " git config core.fsmonitor {trap}; cd ..",
    "nested repository without a commit": "git init -q nested; touch nested/f;"
    " git -C nested config core.fsmonitor {trap}",
    "gitdir file": "git init -q .hidden; git -C .hidden config core.fsmonitor {trap}; mkdir nested; touch nested/f;"
    " echo 'gitdir: ../.hidden/.git' > nested/.git",
}


@pytest.mark.parametrize("script", PROGRAMS.values(), ids=PROGRAMS.keys())
async def test_no_planted_program_ever_runs(world: World, tmp_path: Path, script: str) -> None:
    trap, sprung = tmp_path / "trap", tmp_path / "sprung"
    trap.write_text(f"#!/bin/sh\ntouch {sprung}\ncat\n")
    trap.chmod(0o755)
    await world.make()
    world.agent(f"{WORK}; {script.replace('{trap}', str(trap))}")
    sprung.unlink(missing_ok=True)
    snapshot = await world.snapshot()
    await world.repository.quarantine(
        world.workspace, ref="refs/loopwright/quarantine/x/1", reason="left", at=AT
    )
    await world.repository.remove_workspace(world.workspace)
    assert not sprung.exists()
    assert set(snapshot.changed) >= EXPECTED
    world.sh("git", "fsck", "--strict")


async def test_a_planted_monitor_would_run_if_git_used_the_agent_s_configuration(
    world: World, tmp_path: Path
) -> None:
    """Shows that the traps above are real ones."""
    trap, sprung = tmp_path / "trap", tmp_path / "sprung"
    trap.write_text(f"#!/bin/sh\ntouch {sprung}\n")
    trap.chmod(0o755)
    await world.make()
    world.agent(f"git config core.fsmonitor {trap}; git status")
    assert sprung.exists()


async def test_repositories_inside_the_workspace_become_plain_files(world: World) -> None:
    await world.make()
    world.agent(
        "git init -q a; cd a; echo 1 > one; git add .; git commit -qm a; git init -q deep; echo 2 > deep/two;"
        "git init -q 'odd name'; cd 'odd name'; echo 3 > three; git add .; git commit -qm b; cd ../..;"
        "git init -q docs; rm app.py; git init -q app.py; echo 4 > app.py/four"
    )
    snapshot = await world.snapshot()
    assert set(snapshot.changed) == {"a/one", "a/deep/two", "a/odd name/three", "app.py", "app.py/four"}
    assert "160000" not in world.sh("git", "ls-tree", "-r", snapshot.sha)


async def test_a_tracked_file_that_became_a_pipe_is_gone(world: World) -> None:
    await world.make()
    world.agent("rm app.py; mkfifo app.py")
    assert (await world.snapshot()).changed == ("app.py",)


async def test_a_tracked_folder_that_became_a_link_is_not_followed(world: World, tmp_path: Path) -> None:
    write(tmp_path, {"outside/readme.md": "secret\n", "outside/more": "secret\n"})
    await world.make()
    world.agent(f"rm -r docs; ln -s {tmp_path}/outside docs")
    snapshot = await world.snapshot()
    assert world.files_at(snapshot.sha) == [".gitignore", "app.py", "docs"]


# --- the agent's own commits -------------------------------------------------------------------------


async def test_the_agent_s_own_commits_are_pinned(world: World) -> None:
    await world.make()
    world.agent(
        "echo two > app.py; git commit -qam one; echo three > app.py; git commit -qam two; echo 4 > app.py"
    )
    head = world.agent("git rev-parse HEAD")
    snapshot = await world.snapshot()
    assert snapshot.agent_sha == head
    assert world.sh("git", "rev-parse", f"{REF}-agent") == head
    assert world.sh("git", "log", "--format=%s", f"{REF}-agent") == "two\none\nfirst"
    assert world.sh("git", "show", f"{snapshot.sha}:app.py") == "4"


async def test_commits_that_the_agent_left_on_other_branches_or_reset_away_are_pinned_too(
    world: World,
) -> None:
    await world.make()
    world.agent(
        "git checkout -q -b side; echo 2 > app.py; git commit -qam side; git checkout -q work;"
        "echo 3 > app.py; git commit -qam lost; git reset -q --hard HEAD~1; git pack-refs --all"
    )
    lost, side = world.agent("git rev-parse ORIG_HEAD; git rev-parse side").split()
    assert (await world.snapshot()).agent_sha is None
    pinned = world.sh("git", "for-each-ref", "--format=%(objectname)", "refs/loopwright").split()
    assert {lost, side} <= set(pinned)


async def test_the_agent_s_commits_are_found_in_packs(world: World) -> None:
    await world.make()
    world.agent("echo two > app.py; git commit -qam one; git gc -q")
    assert (await world.snapshot()).agent_sha == world.agent("git rev-parse HEAD")


FORGERIES = {
    "missing tree": "git commit -qam x; rm -f .git/objects/$(git rev-parse HEAD^{tree} | sed 's|..|&/|')",
    "forged blob": "git commit -qam x; b=.git/objects/$(git rev-parse HEAD:app.py | sed 's|..|&/|');"
    " chmod u+w $b; o=$(echo evil | git hash-object -w --stdin); cp .git/objects/$(echo $o | sed 's|..|&/|') $b",
    "broken commit": "git commit -qam x; c=.git/objects/$(git rev-parse HEAD | sed 's|..|&/|');"
    " chmod u+w $c; echo x > $c",
    "head of nowhere": f"echo {'a' * 40} > .git/refs/heads/work",
    "head outside": "echo 'ref: refs/../../../../user/.git/refs/heads/trunk' > .git/HEAD",
}


@pytest.mark.parametrize("script", FORGERIES.values(), ids=FORGERIES.keys())
async def test_commits_that_cannot_be_verified_are_left_behind(world: World, script: str) -> None:
    await world.make()
    world.agent(f"echo mine > app.py; {script}; echo two > app.py")
    snapshot = await world.snapshot()
    assert snapshot.agent_sha is None
    assert world.sh("git", "show", f"{snapshot.sha}:app.py") == "two"
    assert world.sh("git", "for-each-ref", "--format=%(refname)", "refs/loopwright").split() == [REF]
    world.sh("git", "fsck", "--strict")


async def test_commits_of_another_repository_are_not_taken_for_the_agent_s(
    world: World, tmp_path: Path
) -> None:
    other = start_repository(tmp_path / "other", {"secret": "s"})
    await world.make()
    sha = sh(other, "git", "rev-parse", "HEAD")
    world.agent(f"echo {other}/.git/objects >> .git/objects/info/alternates; git reset -q --soft {sha}")
    assert (await world.snapshot()).agent_sha is None
    assert sha not in world.sh("git", "for-each-ref", "--format=%(objectname)")


BORROWED = "for d in {hidden}/.git/objects/??; do ln -s $d .git/objects/; done"
WAYS_OUT = {
    "the folder of refs and of objects": (
        f"rm -r .git/refs/heads; ln -s {{hidden}}/.git/refs/heads .git/refs/; {BORROWED}",
        "symbolic link",
    ),
    "one ref": (f"ln -s {{hidden}}/.git/refs/heads/trunk .git/refs/heads/x; {BORROWED}", "symbolic link"),
    "all refs": (f"rm -r .git/refs; ln -s {{hidden}}/.git/refs .git/refs; {BORROWED}", "symbolic link"),
    "the head": (f"ln -sf {{hidden}}/.git/refs/heads/trunk .git/HEAD; {BORROWED}", "symbolic link"),
    "what a reset left": (
        f"ln -s {{hidden}}/.git/refs/heads/trunk .git/ORIG_HEAD; {BORROWED}",
        "symbolic link",
    ),
    "each object": (
        (
            "echo {sha} > .git/refs/heads/work; cd {hidden}/.git/objects; for o in ??/*; do"
            " mkdir -p {work}/.git/objects/${o%/*}; ln -s $PWD/$o {work}/.git/objects/$o; done; cd {work}"
        ),
        "symbolic link",
    ),
    "packs": (
        (
            "git -C {hidden} gc -q; rm -rf .git/objects/pack; ln -s {hidden}/.git/objects/pack .git/objects/pack;"
            " ln -s {hidden}/.git/packed-refs .git/packed-refs"
        ),
        "symbolic link",
    ),
    "the list of alternates": (
        (
            "echo {sha} > .git/refs/heads/work; rm -r .git/objects/info;"
            " mkdir ../made; echo {hidden}/.git/objects > ../made/alternates; ln -s ../../../made .git/objects/info"
        ),
        "symbolic link",
    ),
    "alternates": (
        "echo {sha} > .git/refs/heads/work; echo {hidden}/.git/objects >> .git/objects/info/alternates",
        ".git/objects/info/alternates names other folders",
    ),
    "the git dir": ("rm -r .git; ln -s {hidden}/.git .git", ".git is a symbolic link"),
    "a file for the git dir": (
        "rm -r .git; echo gitdir: {hidden}/.git > .git",
        ".git is a file that leads to {hidden}/.git",
    ),
    "a submodule's git dir": (
        "mkdir -p .git/modules/x; ln -s {hidden}/.git/objects .git/modules/x/objects",
        ".git/modules/x/objects is a symbolic link",
    ),
    "a pipe among the objects": (
        "rm .git/objects/info/alternates; mkfifo .git/objects/info/alternates; echo {sha} > .git/HEAD",
        "alternates is not a regular file",
    ),
}


async def test_nothing_outside_of_a_git_dir_is_read_through_it(world: World, tmp_path: Path) -> None:
    for n, (name, (script, told)) in enumerate(WAYS_OUT.items(), 1):
        hidden = start_repository(tmp_path / f"hidden-{n}", {"secret": f"{n}\n"})
        sha = sh(hidden, "git", "rev-parse", "HEAD")
        world.workspace = world.home / "workspaces" / f"att_{n}"
        await world.make()
        places = {"hidden": str(hidden), "sha": sha, "work": str(world.workspace)}
        for place, value in places.items():
            script, told = script.replace(f"{{{place}}}", value), told.replace(f"{{{place}}}", value)
        world.agent(f"{WORK}; {script}")
        snapshot = await world.snapshot(n)
        assert told in snapshot.refused, name
        assert (set(snapshot.changed), snapshot.agent_sha) == (EXPECTED, None), name
        left = f"refs/loopwright/quarantine/x/{n}"
        assert await world.repository.quarantine(world.workspace, ref=left, reason="left", at=AT), name
        for here in (world.user, world.home / "git/proj_1.git"):
            found = sh(here, "git", "cat-file", "--batch-check", "--batch-all-objects")
            assert sha not in found, name


async def test_what_honest_tools_put_into_a_git_dir_is_no_reason_to_refuse_it(world: World) -> None:
    await world.make()
    world.agent(
        f"{WORK}; mkdir -p .git/hooks; ln -s ../../app.py .git/hooks/pre-commit;"
        "git worktree add -q .git/other; git stash -q -u; git stash pop -q; git commit -qam mine; git gc -q"
    )
    snapshot = await world.snapshot()
    assert (snapshot.refused, snapshot.agent_sha) == ("", world.agent("git rev-parse HEAD"))
    world.agent("rm -r .git/hooks; ln -s ../docs .git/hooks")
    assert (await world.snapshot()).refused == ""


async def test_commits_are_kept_when_the_repository_moved_since_the_workspace_was_made(world: World) -> None:
    await world.make()
    world.agent("echo two > app.py; git commit -qam mine")
    head = world.agent("git rev-parse HEAD")
    world.user = world.user.rename(world.user.parent / "moved")
    world.repository = world.another()
    snapshot = await world.snapshot()
    assert (snapshot.refused, snapshot.agent_sha) == ("", head)


async def test_an_agent_has_no_way_to_push_to_the_user_s_repository(world: World) -> None:
    before = await world.repository.tripwire()
    await world.make()
    world.agent("echo two > app.py; git commit -qam mine")
    for command in (("git", "push"), ("git", "push", "origin", "HEAD:trunk")):
        sh(world.workspace, *command, check=False)
    world.agent("git checkout -q -b trunk; git checkout -q -B main; git branch -D trunk")
    assert await world.repository.tripwire() == before
