"""Agents, setup commands and gates of the real program, each in a real sandbox."""

from pathlib import Path

from tests.acceptance.cli.program import git, repository
from tests.acceptance.control.workshop import Workshop, kill
from tests.acceptance.sandbox import task
from tests.waiting import eventually

from loopwright.core.rows.model import Plan, Role, Run

LOOK = "(echo pids; ls -d /proc/[0-9]* | wc -l; cat /proc/1/comm; ls -A ~; ls {outside} {home} 2>&1) > {into}"


def test_agent_setup_and_gate_are_contained_and_the_rows_the_receipt_and_show_say_so(shop: Workshop) -> None:
    outside = shop.place / "precious"
    outside.mkdir()
    (shop.program.user / "diary").write_text("dear diary")
    (shop.program.user / ".gitconfig").write_text("[user]\n\tname = Someone\n")
    look = LOOK.format(outside=outside, home=shop.home, into="{into}")
    script = (
        f"{look.format(into='agent')}; echo x > {outside}/agent; echo x > {shop.program.user}/agent; true"
    )
    shop.play({"one": [[{"run": script}]]})
    check = f"{look.format(into='gate')}; echo x > {outside}/gate; grep -q bwrap gate && ! grep -rq diary . && git log"
    said = shop.run(shop.plan("look", [task("one", check)], settings={"setup": "cat /proc/1/comm > setup"}))
    assert said.code == 0, said.out + said.err
    assert list(outside.iterdir()) == []
    assert sorted(one.name for one in shop.program.user.iterdir()) == [".gitconfig", "diary"]
    branch = shop.row(Plan).branch
    assert shop.git("show", f"{branch}:setup").strip() == "bwrap"
    seen = shop.git("show", f"{branch}:agent")
    assert "bwrap" in seen
    assert ".gitconfig" in seen
    assert "diary" not in seen
    assert {run.role: run.sandbox for run in shop.rows(Run)} == dict.fromkeys(
        (Role.SETUP, Role.IMPLEMENTER, Role.GATE, Role.VERIFY), "bubblewrap"
    )
    (agent,) = shop.rows(Run, role=Role.IMPLEMENTER)
    assert agent.permission_mode == "sandboxed-all"
    shown = shop("show", agent.id).out
    assert "bubblewrap" in shown
    assert "sandboxed-all" in shown
    (made,) = {run.sandbox_made_with for run in shop.rows(Run)}
    assert made is not None
    assert made.program.startswith("bubblewrap ")
    assert f"{made.program} (4 runs)" in shop("receipt", "show", shop.newest_plan()).out
    assert shop("receipt", "verify").code == 0
    assert "no sandbox" not in shop("receipt", "show", shop.newest_plan()).out


def test_a_contained_agent_outlives_a_killed_worker_and_is_taken_over(shop: Workshop) -> None:
    # It goes on by itself once its workspace has a file, which only someone outside can put there.
    wait = "touch up; until test -e go; do sleep 0.05; done; rm go; echo done > one"
    shop.play({"one": [[{"run": wait}]]})
    going = shop.start("run", str(shop.plan("killed", [task("one", "grep -q done one")])))

    def up() -> list[Path]:
        return list((shop.home / "workspaces").glob("*/up")) if shop.home.exists() else []

    workspace = eventually(up, timeout=60)[0].parent
    kill(going)
    assert any("bwrap" in words for words in shop.processes()), "its agent lives on in its sandbox"
    (workspace / "go").touch()
    said = shop("resume", timeout=100)
    assert said.code == 0, said.out + said.err
    (run,) = shop.rows(Run, role=Role.IMPLEMENTER)
    assert (run.state, run.ended_by, run.sandbox) == ("COMPLETE", "itself", "bubblewrap")
    shop.until_quiet()


def test_what_a_gate_records_is_out_of_its_reach(shop: Workshop) -> None:
    shop.play({"one": [[{"write": "one", "text": "1\n"}]]})
    bend = (
        f"find {shop.home} -name results.json -o -name job.json -o -name exit.json -o -name socket | grep . && exit 1;"
        f" mkdir -p {shop.home}/runs; echo '{{}}' > {shop.home}/runs/results.json; kill -9 -1; test -s missing"
    )
    said = shop.run(shop.plan("bent", [task("one", bend)]), "--max-attempts", "1")
    assert said.code != 0
    (gate,) = shop.rows(Run, role=Role.GATE)
    assert gate.verdict is not None
    assert gate.verdict.status == "failed"
    assert not (shop.home / "runs" / "results.json").exists()


def test_without_a_sandbox_the_receipt_names_the_gap_and_the_agent_has_to_ask(shop: Workshop) -> None:
    shop.program.env["LOOPWRIGHT_SANDBOX__PROGRAM"] = "/nowhere/bwrap"
    shop.play({"one": [[{"write": "one", "text": "1\n"}]]})
    assert shop.run(shop.plan("open", [task("one", "test -s one")])).code == 0
    runs = shop.rows(Run)
    assert {run.sandbox for run in runs} == {"none"}
    (agent,) = shop.rows(Run, role=Role.IMPLEMENTER)
    assert agent.permission_mode == "edit"
    notes = shop("receipt", "show", shop.newest_plan(), "--json").document["notes"]
    [note] = [one["text"] for one in notes if one["code"] == "no_sandbox"]
    assert note.startswith(f"{len(runs)} of {len(runs)} runs ")


def test_links_on_the_way_to_home_and_workspaces_lead_nobody_astray(shop: Workshop) -> None:
    for name, real in (("linked-user", shop.program.user), ("linked-home", shop.home)):
        real.mkdir(exist_ok=True)
        (shop.place / name).symlink_to(real)
    shop.program.env |= {
        "HOME": str(shop.place / "linked-user"),
        "LOOPWRIGHT_HOME": str(shop.place / "linked-home"),
    }
    (shop.program.user / "diary").write_text("dear diary")
    (shop.program.user / ".gitconfig").write_text("[user]\n\tname = Someone\n")
    (shop.place / "nvm").mkdir()
    (shop.place / "nvm" / "tool").write_text("tool")
    (shop.program.user / ".nvm").symlink_to(shop.place / "nvm")
    look = f"cat ~/.gitconfig ~/.nvm/tool; cat {shop.program.user}/diary {shop.place}/linked-user/diary; echo x > ~/x"
    shop.play({"one": [[{"run": f"({look}) > one 2>&1"}]]})
    said = shop.run(
        shop.plan("linked", [task("one", "grep -q Someone one && grep -q tool one && ! grep dear one")])
    )
    assert said.code == 0, said.out + said.err
    assert sorted(one.name for one in shop.program.user.iterdir()) == [".gitconfig", ".nvm", "diary"]


def test_without_a_view_of_home_it_can_be_read_and_only_what_the_agent_keeps_is_written(
    shop: Workshop,
) -> None:
    shop.program.env["LOOPWRIGHT_USER_FOLDER__PRIVATE"] = "false"
    (shop.program.user / "diary").write_text("dear diary")
    shop.play({"one": [[{"run": "cp ~/diary one; echo x > ~/diary; true"}]]})
    said = shop.run(shop.plan("open", [task("one", "grep -q dear one")]))
    assert said.code == 0, said.out + said.err
    assert (shop.program.user / "diary").read_text() == "dear diary"


def test_a_contained_agent_gets_nothing_of_a_hidden_repository_through_its_git_dir(shop: Workshop) -> None:
    hidden = repository(shop.program.user / "hidden", {"secret": "do not tell\n"})
    secret = git(hidden, "rev-parse", "HEAD").strip()
    # In there the folder is not to be seen, but whoever reads the links outside would find it.
    links = " ".join(str(one) for one in (hidden / ".git/objects").iterdir() if len(one.name) == 2)
    attack = (
        f"ls {hidden} && exit 1; ln $(realpath /usr/bin/env) hard && exit 1; echo 1 > one; rm -r .git/refs/heads;"
        f" ln -s {hidden}/.git/refs/heads .git/refs/heads; for d in {links}; do ln -s $d .git/objects/; done"
    )
    shop.play({"one": [[{"run": attack}], [{"write": "one", "text": "2\n"}]]})
    said = shop.run(shop.plan("hidden", [task("one", "test -s one")]))
    assert said.code == 0, said.out + said.err
    first, second = shop.attempts("one")
    assert (first.failure, second.failure) == ("linked_git", None)
    assert "is a symbolic link. Its own commits were not read" in first.detail
    assert shop.git("show", f"{first.tip_sha}:one") == "1\n", "the rest of its work is kept"
    assert secret not in shop.git("cat-file", "--batch-check", "--batch-all-objects")
