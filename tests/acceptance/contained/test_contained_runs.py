"""Agents, setup commands and gates of the real program, each in a real sandbox."""

from tests.acceptance.control.workshop import Workshop
from tests.acceptance.sandbox import task

from loopwright.core.model import Plan, Role, Run

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
