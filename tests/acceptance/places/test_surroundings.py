"""What agents and gates find around them, and what of it never reaches anyone else."""

import shlex
import subprocess

from tests.acceptance.control.workshop import Workshop
from tests.acceptance.sandbox import task
from tests.unit.core.receipts.as_json import named
from tests.waiting import eventually

from loopwright.core.rows.model import Attempt, Plan, Role, Run


def test_setup_and_copied_files_are_there_for_agent_and_gates_and_never_committed(shop: Workshop) -> None:
    (shop.repository / ".gitignore").write_text(".env\nvendor/\n.loopwright/\n")
    shop.git("commit", "-qam", "ignore")
    (shop.repository / ".env").write_text("WORD=swordfish\n")
    settings = {
        "setup": "mkdir -p vendor && echo lib > vendor/lib && echo loose > loose",
        "copy_files": [".env"],
    }
    shop.play({"one": [[{"run": "cat .env vendor/lib > one && echo changed >> .env"}]]})
    check = "grep -q swordfish one && grep -q lib one && grep -qx WORD=swordfish .env && test -f vendor/lib"
    said = shop.run(shop.plan("set up", [task("one", check)], settings=settings))
    assert said.code == 0, said.out + said.err
    plan = shop.row(Plan)
    changed = shop.git("diff", "--name-only", plan.base_sha, plan.branch).split()
    assert ".env" not in changed
    assert "vendor/lib" not in changed
    assert (shop.repository / ".env").read_text() == "WORD=swordfish\n", "yours is not the one they wrote to"
    assert shop.rows(Run, role=Role.SETUP)[0].state == "COMPLETE"
    assert "swordfish" not in "".join(str(event.payload) for event in shop.events())


def test_a_setup_that_fails_says_so_and_starts_no_agent(shop: Workshop) -> None:
    settings = {"setup": "echo no such registry >&2; exit 3", "max_call_retries": 0}
    said = shop.run(shop.chain("one", settings=settings))
    assert said.code == 1, said.out + said.err
    assert shop.started() == []
    assert "no such registry" in shop("show", "one").out


def test_a_setup_that_takes_too_much_room_is_ended_and_names_the_setting(shop: Workshop) -> None:
    shop.program.env["LOOPWRIGHT_DISK__MAX_WORKSPACE"] = "8MB"
    settings = {"setup": "head -c 12000000 /dev/zero > filler; exec sleep 600"}
    said = shop.run(shop.chain("one", settings=settings))
    assert said.code == 1, said.out + said.err
    assert shop.started() == []
    (attempt,) = shop.attempts("one")
    assert (attempt.failure, shop.task("one").attempts) == ("environment", 0)
    assert "disk.max_workspace allows 8.0 MB" in attempt.detail


def test_attempts_at_the_same_time_have_ports_and_names_of_their_own(shop: Workshop) -> None:
    told = "$COMPOSE_PROJECT_NAME $LOOPWRIGHT_PORT_BASE $LOOPWRIGHT_ATTEMPT"
    both = [f"{shop.place}/{key}.arrived" for key in ("one", "two")]
    steps = {
        key: [
            [
                {"run": f"echo {told} $TMPDIR > {key}; touch {shop.place}/{key}.arrived"},
                *({"wait_for": path, "timeout": 60} for path in both),
            ]
        ]
        for key in ("one", "two")
    }
    shop.play(steps)
    # The gates of an attempt have the same; gate:all belongs to no attempt.
    check = f'test -z "$LOOPWRIGHT_ATTEMPT" || grep -q "^{told} " {{key}}'
    tasks = [task(key, check.replace("{key}", key)) for key in ("one", "two")]
    said = shop.run(shop.plan("ports", tasks), "--parallel", "2")
    assert said.code == 0, said.out + said.err
    branch = shop.row(Plan).branch
    one, two = (shop.git("show", f"{branch}:{key}").split() for key in ("one", "two"))
    assert all(mine != other for mine, other in zip(one, two, strict=True)), (one, two)
    assert abs(int(one[1]) - int(two[1])) >= 10
    assert {one[2], two[2]} == {attempt.id for attempt in shop.rows(Attempt)}


def test_agents_and_gates_see_only_the_variables_that_are_meant_for_them(shop: Workshop) -> None:
    shop.program.env |= {"PRIVATE_THING": "do not tell", "SHARED_THING": "fine", "GIT_DIR": "/nowhere"}
    shop.play({"one": [[{"run": "env > one"}]]})
    check = (
        'test -z "$PRIVATE_THING" && test -z "$GIT_DIR" && test "$SHARED_THING" = fine && test "$CI" = true'
    )
    settings = {"environment": ["SHARED_THING"]}
    said = shop.run(shop.plan("env", [task("one", check)], settings=settings))
    assert said.code == 0, said.out + said.err
    seen = shop.git("show", f"{shop.row(Plan).branch}:one")
    assert "SHARED_THING=fine" in seen
    assert "do not tell" not in seen
    assert "GIT_DIR=" not in seen


def test_our_own_folder_never_shows_even_when_the_agent_writes_into_it(shop: Workshop) -> None:
    (shop.repository / ".gitignore").write_text("nothing of it\n")
    shop.git("commit", "-qam", "do not ignore it")
    shop.play({"one": [[{"write": ".loopwright/config", "text": "x\n"}, {"write": "one", "text": "1\n"}]]})
    said = shop.run(shop.plan("folder", [task("one", "test -s one")]))
    assert said.code == 0, said.out + said.err
    assert list((shop.repository / ".loopwright").iterdir())
    assert shop.git("status", "--porcelain", "--untracked-files=all") == ""
    plan = shop.row(Plan)
    assert shop.git("diff", "--name-only", plan.base_sha, plan.branch).split() == ["one"]


def test_a_person_who_works_in_their_checkout_meanwhile_is_told_and_no_agent_is_blamed(
    shop: Workshop,
) -> None:
    mine = shop.gate("mine")
    shop.play({"one": [[mine.step, {"write": "one", "text": "1\n"}]]})
    going = shop.start("run", str(shop.plan("mine", [task("one", "test -s one")])))
    shop.until_started("one")
    (shop.repository / "greet.txt").write_text("hello from the person\n")
    shop.git("branch", "mine")
    mine.let_go()
    assert going.end() == 0, going.out
    (event,) = shop.events("checkout_changed")
    assert (event.importance, event.payload["whose"]) == ("high", "unknown")
    branch, file = event.payload["changes"]
    assert branch.startswith("refs/heads/mine was created")
    assert file == "greet.txt was changed"
    assert "+hello from the person" in (shop.home / event.payload["patch"]).read_text()
    assert "note: your checkout changed while an agent was running" in going.out
    assert "nothing shows that it was the agent" in " ".join(going.out.split())
    undo = [f"git -C {shop.repository} update-ref -d refs/heads/mine {shop.git('rev-parse', 'mine').strip()}"]
    undo.append(f"git -C {shop.repository} apply --reverse {shop.home / event.payload['patch']}")
    for command in (("show", "one"), ("receipt", "show")):
        lines = [line.strip() for line in shop(*command).out.splitlines()]
        assert [line for line in lines if line.startswith("git -C")] == undo, command
    receipt = shop("receipt", "show", "--json").document
    (told,) = receipt["checkout_changes"]
    assert (told["whose"], told["changes"]) == ("unknown", [branch, file])
    assert "checkout_changed" in named(receipt)
    assert shop("receipt", "verify", timeout=60).code == 0
    for line in undo:
        subprocess.run(shlex.split(line), check=True)
    assert shop.git("branch", "--list", "mine") == ""
    assert shop.git("status", "--porcelain") == ""


def test_a_check_whose_program_is_missing_is_left_to_the_person_and_judged_anew_once_it_is_there(
    shop: Workshop,
) -> None:
    shop.play({"one": [[{"write": "one", "text": "x"}]]})
    """It is refused before anything is spent, unless a person says that the program will be there."""
    program = shop.place / "bin" / "nosuchcheck"
    program.parent.mkdir()
    shop.program.env["PATH"] = f"{program.parent}:{shop.program.env['PATH']}"
    plan = shop.plan("missing", [task("one", "nosuchcheck --all")])
    early = shop.run(plan)
    assert early.code == 2, early.out + early.err
    assert "nosuchcheck is not on PATH" in early.err
    said = shop.run(plan, "--despite", "it comes later")
    assert said.code == 1, said.out + said.err
    (attempt,) = shop.attempts("one")
    assert attempt.failure == "cannot_check"
    assert "the program 'nosuchcheck' was not found" in said.out
    assert shop.task("one").attempts == 0, "no attempt is used up by it"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    again = shop("retry", "one", timeout=90)
    assert again.code == 0, again.out + again.err


def test_dependencies_are_installed_once_per_lock_file_and_setup_runs_everywhere(shop: Workshop) -> None:
    """Two tasks; the second changes the lock file, so its gates install what the new one asks for."""
    (shop.repository / ".gitignore").write_text("vendor/\n.loopwright/\n")
    (shop.repository / "requirements.txt").write_text("old\n")
    shop.git("add", "-A")
    shop.git("commit", "-qm", "lock")
    log = shop.place / "installed"
    settings = {
        "dependencies": f"mkdir vendor && cp requirements.txt vendor/lib && cat requirements.txt >> {log}",
        "setup": "test ! -e vendor/own && touch vendor/own",
    }
    shop.play(
        {
            "one": [[{"run": "cat vendor/lib > one"}]],
            "two": [[{"write": "requirements.txt", "text": "new\n"}, {"write": "two", "text": "2"}]],
        }
    )
    tasks = [
        task("one", "test -e vendor/own && grep -q old one"),
        {**task("two", "test -e vendor/own && cmp vendor/lib requirements.txt"), "depends_on": ["one"]},
    ]
    said = shop.run(shop.plan("shared", tasks, gates=["test -e vendor/own"], settings=settings))
    assert said.code == 0, said.out + said.err
    installed = log.read_text().split()
    assert installed.count("old") == 1, (
        "the first workspace installs, its gates and the second task get a copy"
    )
    assert installed.count("new") >= 1, "work that has not landed installs its own, and shares it with nobody"


def test_a_setup_follows_an_install_that_outlived_its_worker(shop: Workshop) -> None:
    (shop.repository / "requirements.txt").write_text("lib\n")
    shop.git("add", "-A")
    shop.git("commit", "-qm", "lock")
    go, log = shop.place / "go", shop.place / "installed"
    install = f"pwd >> {log}; until [ -e {go} ]; do sleep 0.05; done"
    shop.play({"one": [[{"run": "cp built one"}]]})
    plan = shop.plan(
        "outlived", [task("one", "test -e one")], settings={"dependencies": install, "setup": "touch built"}
    )
    first = shop.start("run", str(plan), "--no-check-base")
    eventually(lambda: log.exists() and "/workspaces/" in log.read_text(), timeout=60)
    first.kill()
    go.touch()
    said = shop.run(plan)
    assert said.code == 0, said.out + said.err
    assert log.read_text().count("/workspaces/") == 1, "what was under way is not begun again"


def test_a_gate_reads_compiler_caches_that_only_the_base_filled(shop: Workshop) -> None:
    shop.program.env["LOOPWRIGHT_CHECK_BASE"] = "true"
    shop.play(
        {key: [[{"run": f'mkdir -p "$GOCACHE"; touch "$GOCACHE/agent"; echo {key} > who'}]] for key in "ab"}
    )
    gate = (
        'mkdir -p "$GOCACHE" && echo "found:" $(ls "$GOCACHE") && touch "$GOCACHE/$(cat who || echo base)" && '
        'grep -q hello greet.txt && test ! -e "$GOCACHE/agent"'
    )
    tasks = [task("a", "test -f who"), task("b", "grep -q b who", depends_on=["a"])]
    plan = shop.plan("caches", tasks, gates=[{"name": "cached", "run": gate}])
    said = shop.run(plan)
    assert said.code == 0, said.out + said.err
    runs = [*shop.rows(Run, role=Role.BASELINE), *shop.rows(Run, role=Role.GATE)]
    outputs = [(shop.home / "runs" / run.id / "gate").glob("*.out") for run in runs]
    found = [
        line for some in outputs for one in some for line in one.read_text().splitlines() if "found" in line
    ]
    assert found == ["found:", "found: base", "found: base"]
    (kept,) = (shop.home / "gate-caches").glob("*/go-build")
    assert [path.name for path in kept.iterdir()] == ["base"], "neither an agent nor a candidate filled it"
