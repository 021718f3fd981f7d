"""Each plan runs with the environment of the terminal that it was submitted from, whoever executes it."""

import os

from tests.acceptance.cli.program import executable, repository
from tests.acceptance.control.workshop import HALF_DONE, Workshop
from tests.acceptance.sandbox import FILES, task

from loopwright.core.rows.model import Loop, Plan

SETTINGS = {"environment": ["WORD", "FILED"], "environment_plain": ["KIND"]}


def test_a_plan_that_another_terminals_run_executes_has_the_environment_of_its_own_terminal(
    shop: Workshop,
) -> None:
    values = shop.place / "values.env"
    values.write_text("FILED=in-the-file\n")
    values.chmod(0o600)
    shop.program.env["LOOPWRIGHT_ENV_FILE"] = str(values)
    agent = shop.gate("agent")
    own = {name: value for name, value in shop.program.env.items() if name != "TZ"}
    shop.play(
        {
            "slow": [[agent.step, {"write": "slow", "text": "x\n"}]],
            "quick": [[{"run": 'test "$WORD" = second-terminal && test "$KIND" = two && echo x > quick'}]],
        }
    )
    shop.program.env |= {"WORD": "first-terminal", "KIND": "one", "TZ": "Asia/Tokyo"}
    first = shop.start("run", str(shop.plan("first", [task("slow", "test -s slow")])))
    shop.until_started("slow")
    check = 'test "$WORD" = second-terminal && test "$KIND" = two && test -z "$TZ" && test -s quick'
    tools = shop.place / "tools"
    executable(tools / "only-here", f'test "$FILED" = in-the-file && {check}')
    shop.program.env.clear()
    shop.program.env |= own | {
        "WORD": "second-terminal",
        "KIND": "two",
        "PATH": f"{tools}{os.pathsep}{own['PATH']}",
    }
    shop.repository = repository(shop.place / "second", FILES)
    gates = [{"name": "filed", "run": 'test "$FILED" = in-the-file'}]
    plan = shop.plan("second", [task("quick", "only-here")], settings=SETTINGS, gates=gates)
    said = shop("plan", "check", str(plan), timeout=90)
    assert said.code == 0, said.out + said.err
    assert "fails on the base" not in said.out, said.out
    said = shop.run(plan)
    assert said.code == 0, said.out + said.err
    joined = [event.payload["pid"] for event in shop.events("worker_joined")]
    assert joined == [first.process.pid], "the first terminal's process executed it"
    stored = next(plan.environment for plan in shop.rows(Plan) if plan.title == "second")
    assert stored is not None
    assert (stored.values["KIND"], stored.secrets) == ("two", ("WORD",))
    assert stored.programs["only-here"] == str(tools / "only-here")
    shop.program.env["PATH"] = own["PATH"]
    said = shop("receipt", "replay", "--yes", timeout=90)
    assert said.code == 0, said.out + said.err
    agent.let_go()
    assert first.end() == 0, first.out
    written = [path for path in shop.home.rglob("*") if path.is_file()]
    assert not [path for path in written if b"second-terminal" in path.read_bytes()]


def test_a_plan_waits_for_a_secret_that_is_set_nowhere_and_names_a_folder_of_its_path_that_is_gone(
    shop: Workshop,
) -> None:
    own, tools = dict(shop.program.env), shop.place / "tools"
    executable(tools / "only-here", 'test "$WORD" = swordfish')
    shop.play({"half": [HALF_DONE]})
    shop.program.env |= {"WORD": "swordfish", "PATH": f"{tools}{os.pathsep}{own['PATH']}"}
    tasks = [task("half", "only-here", "test -s whole")]
    run = shop.start("run", str(shop.plan("half", tasks, settings=SETTINGS)))
    shop.until_half()
    assert shop("pause", "--now").code == 0
    assert run.end() == 3, run.out
    del shop.program.env["WORD"]
    shop.program.env["PATH"] = own["PATH"]
    said = shop("resume", timeout=90)
    assert said.code == 3, said.out + said.err
    told = " ".join(shop("status").out.split())
    assert "WORD was set where the plan was submitted, and process " in told
    assert "does not have it; start that process again with it" in told
    assert shop.row(Loop).state == "PAUSED"
    values = shop.place / "values.env"
    values.write_text("# of the worker\nexport WORD='swordfish'\n")
    values.chmod(0o600)
    shop.program.env["LOOPWRIGHT_ENV_FILE"] = str(values)
    tools.rename(shop.place / "away")
    said = shop("resume", timeout=90)
    assert said.code == 6, said.out + said.err
    assert f"{tools} is gone" in said.out
    (shop.place / "away").rename(tools)
    said = shop("resume", timeout=90)
    assert said.code == 0, said.out + said.err
