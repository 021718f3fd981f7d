"""A bare `run` finds work, and never starts it without your word."""

from pathlib import Path

from tests.acceptance.sandbox import Sandbox


def test_a_bare_run_names_what_it_found_and_starts_nothing_without_a_terminal(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path)
    said = sandbox("run")
    assert said.code == 2
    assert "there is no open work here" in said.err
    plan = sandbox.repository / "conductor" / "tracks" / "login" / "plan.md"
    plan.parent.mkdir(parents=True)
    plan.write_text("# Login\n\n- [ ] Add the form\n- [x] Add the page\n")
    said = sandbox("run")
    assert said.code == 2
    assert "conductor/tracks/login (plan_md, 1 of 2 open)" in said.err
    assert "loopwright run conductor/tracks/login" in said.err
    assert sandbox("run", "--json").document["error"]["code"] == "confirmation_needed"
    assert sandbox("status", "--json").code != 0, "nothing was started"
    asked = sandbox.on_terminal("run", typing=("or a number] ", "n\n"))
    assert "1  conductor/tracks/login (plan_md, 1 of 2 open)" in asked
    assert "nothing was run" in asked
