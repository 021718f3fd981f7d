"""Several accounts of one agent, through the real command line: Claude Code's stand-in in two config homes."""

import sys
from pathlib import Path

import pytest
from tests.acceptance.control.workshop import Workshop, kill
from tests.acceptance.sandbox import task
from tests.fakes import stand_ins
from tests.waiting import eventually

from loopwright.core.rows.model import Role, Run
from loopwright.core.rows.waiting_rows import Envelope, Question

PREFIX = "LOOPWRIGHT_AGENTS__CLAUDE__ACCOUNTS__"


class Accounts:
    """A user with two accounts, each of which has its own behaviour; every start is noted by the program itself."""

    def __init__(self, shop: Workshop, **behaviours: str) -> None:
        self.shop = shop
        self.log = shop.place / "started.txt"
        program = shop.place / "claude"
        stand_in = Path(stand_ins.__file__).parent / "claude.py"
        program.write_text(
            "#!/bin/sh\n"
            f'echo "$(basename "$CLAUDE_CONFIG_DIR")|$ANTHROPIC_API_KEY|$(cd "$HOME"; echo .cl*)|$*" >> {self.log}\n'
            f'test -e "$CLAUDE_CONFIG_DIR/wait" && until test -e {shop.place}/go; do sleep 0.02; done\n'
            f'exec {sys.executable} -S -I {stand_in} "$(cat "$CLAUDE_CONFIG_DIR/behaviour")" "$@"\n'
        )
        program.chmod(0o755)
        shop.program.env |= {
            "LOOPWRIGHT_AGENT": "claude",
            "LOOPWRIGHT_AGENTS__CLAUDE__BINARY": str(program),
            "ANTHROPIC_API_KEY": "the-users-own-key",
        }
        (shop.program.user / ".claude").mkdir()
        lines = []
        for name, behaviour in behaviours.items():
            self.home(name).mkdir()
            (self.home(name) / "behaviour").write_text(behaviour)
            lines.append(f'[agents.claude.accounts.{name}]\nhome = "~/.claude-{name}"\n')
        config = shop.program.user / ".config" / "loopwright" / "config.toml"
        config.parent.mkdir(parents=True)
        config.write_text("\n".join(lines))

    def home(self, name: str) -> Path:
        """Return the config home of an account."""
        return self.shop.program.user / f".claude-{name}"

    def started(self) -> list[list[str]]:
        """Return config home, key, what it saw of homes, and arguments of every agent that started."""
        return [line.split("|", 3) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def plan(self) -> str:
        """Return a plan with one task."""
        return str(self.shop.plan("accounts", [task("a", "test -s made.txt")]))


def test_work_goes_on_with_the_other_account_also_after_a_kill(shop: Workshop) -> None:
    accounts = Accounts(shop, work="limit", private="done")
    (accounts.home("private") / "wait").touch()
    going = shop.start("run", accounts.plan())
    eventually(lambda: len(accounts.started()) == 2, timeout=60)
    kill(going)
    quota = shop("stats", "quota").out
    assert "claude/work  closed until" in quota
    assert "claude/private  open" in quota
    again = shop.start("resume")
    (shop.place / "go").touch()
    assert again.end(90) == 0, again.out
    runs = shop.rows(Run, role=Role.IMPLEMENTER)
    assert [run.account for run in runs] == ["work", "private"], "the one that ran was taken up, not repeated"
    assert [one[0] for one in accounts.started()] == [".claude-work", ".claude-private"]
    assert runs[0].session_ref not in accounts.started()[1][3], "that conversation lives in the other home"
    assert {(one[1], one[2]) for one in accounts.started()} == {
        ("", ".claude-work"),
        ("", ".claude-private"),
    }, "no key of the user's own, and of all config homes only that of the account"
    assert "worked on by claude/work stand-in, then claude/private stand-in" in shop("show", "a").out
    assert shop("show", runs[1].id).out.count("private") == 1
    assert shop("show", runs[1].id, "--json").document["run"]["account"] == "private"
    (changed,) = shop.events("account_changed")
    assert (changed.payload["was"], changed.payload["account"]) == ("work", "private")
    assert "claude/private (1 run), claude/work (1 run)" in shop("receipt", "show").out
    entries = shop("receipt", "show", "--json").document["runs"]
    assert [one["account"] for one in entries if one["agent"]] == ["work", "private"]


@pytest.mark.parametrize("moment", ["before", pytest.param("after", marks=pytest.mark.more)])
def test_a_kill_between_the_limit_and_the_next_run_loses_nothing(shop: Workshop, moment: str) -> None:
    accounts = Accounts(shop, work="limit", private="done")
    killed = shop("run", accounts.plan(), env={"LOOPWRIGHT_FAILPOINT": f"store.attempt.waiting.{moment}"})
    assert killed.code != 0
    again = shop("resume", timeout=90)
    assert again.code == 0, again.out + again.err
    assert [run.account for run in shop.rows(Run, role=Role.IMPLEMENTER)] == ["work", "private"]
    closed = shop.row(Envelope, id="claude/work")
    assert (closed.state, closed.closings) == ("CLOSED", 1)


def test_a_conversation_that_is_resumed_stays_with_its_account(shop: Workshop) -> None:
    accounts = Accounts(shop, work="permission", private="done")
    going = shop.start("run", accounts.plan())
    (question,) = eventually(lambda: shop.rows(Question), timeout=60)
    (accounts.home("work") / "behaviour").write_text("done")
    assert shop("answer", question.id, "yes").code == 0
    assert going.end(60) == 0, going.out
    assert [one[0] for one in accounts.started()] == [".claude-work", ".claude-work"]
    first, second = shop.rows(Run, role=Role.IMPLEMENTER)
    assert first.session_ref == second.session_ref
    assert f"--resume {first.session_ref}" in accounts.started()[1][3]


def test_where_all_accounts_are_closed_the_plan_waits_and_says_so(shop: Workshop) -> None:
    accounts = Accounts(shop, work="limit", private="limit")
    said = shop("run", accounts.plan(), "--no-wait", timeout=60)
    assert said.code == 3, said.out + said.err
    assert [one[0] for one in accounts.started()] == [".claude-work", ".claude-private"], (
        "each was asked once"
    )
    assert "is closed until" in said.out


def test_an_account_may_be_a_key_of_another_name(shop: Workshop) -> None:
    accounts = Accounts(shop, work="limit")
    shop.program.env |= {
        f"{PREFIX}API__VARIABLES": "ANTHROPIC_API_KEY=THE_TEAMS_KEY",
        "THE_TEAMS_KEY": "key-of-the-team",
        "CLAUDE_CONFIG_DIR": str(shop.program.user / ".claude"),
    }
    (shop.program.user / ".claude" / "behaviour").write_text("done")
    said = shop("run", accounts.plan(), timeout=60)
    assert said.code == 0, said.out + said.err
    assert [one[:2] for one in accounts.started()] == [[".claude-work", ""], [".claude", "key-of-the-team"]]
    del shop.program.env["THE_TEAMS_KEY"]
    refused = shop("run", accounts.plan(), "--new")
    assert refused.code == 2
    assert "the variable THE_TEAMS_KEY" in refused.err


@pytest.mark.parametrize("name", [pytest.param("work", marks=pytest.mark.more), "private"])
def test_doctor_looks_at_each_account_and_probes_the_one_that_is_named(shop: Workshop, name: str) -> None:
    accounts = Accounts(shop, work="limit", private="done")
    found = {one["name"]: one for one in shop("doctor", "--json").document["findings"]}
    assert found["account claude/work"]["text"] == "home ~/.claude-work"
    said = shop("doctor", "--probe", "--agent", "claude", "--account", name, "--json")
    (probed,) = (one for one in said.document["findings"] if one["name"] == f"probe of claude/{name}")
    assert probed["status"] == ("ok" if name == "private" else "fail"), probed
    assert [one[0] for one in accounts.started() if "--version" not in one[3]] == [f".claude-{name}"]


def test_doctor_says_what_to_do_about_a_home_that_is_not_there(shop: Workshop) -> None:
    accounts = Accounts(shop, work="done")
    (accounts.home("work") / "behaviour").unlink()
    accounts.home("work").rmdir()
    said = shop("doctor", "--json")
    (found,) = (one for one in said.document["findings"] if one["name"] == "account claude/work")
    assert (said.code != 0, found["status"]) == (True, "fail")
    assert "log in once with CLAUDE_CONFIG_DIR=~/.claude-work" in found["fix"]
    refused = shop("doctor", "--account", "work")
    assert "--account is only for --probe" in refused.err
    unknown = shop("doctor", "--probe", "--account", "gone", "--json")
    assert "no account named gone" in unknown.out


def test_quota_lists_accounts_that_nobody_has_drawn_from(shop: Workshop) -> None:
    accounts = Accounts(shop, work="done", private="done")
    assert shop("run", accounts.plan(), timeout=60).code == 0
    assert shop("stats", "quota").out == "claude/work  open  (1 run)\nclaude/private  not used yet\n"
    assert shop("stats", "quota", "--json").document["unused"] == ["claude/private"]
    (shop.program.user / ".config/loopwright/config.toml").write_text(
        '[agents.claude.accounts.private]\nhome = "~/.claude-private"\n'
    )
    assert "claude/work  open  (1 run)  not in your settings" in shop("stats", "quota").out
