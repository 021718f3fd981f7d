"""Accounts of agents in the settings: what can be said, and what is said when it is wrong."""

import pytest
from tests.cases import each_case
from tests.refusals import raises_code
from tests.wording_plugin import Wording

from loopwright.config.accounts import accounts
from loopwright.config.layers import Level, from_environment, from_toml
from loopwright.config.resolve import resolve
from loopwright.core.values.accounts import Account
from loopwright.core.values.errors import BadConfig

ENV = {"HOME": "/home/me"}
TWO = """
[agents.claude]
max_turns = 9

[agents.claude.accounts.work]
home = "~/.claude-work"

[agents.claude.accounts.api]
variables = ["ANTHROPIC_API_KEY=WORK_KEY"]

[agents.claude.accounts.mine]
home = ""
"""


def problems(text: str, level: Level = Level.USER) -> str:
    with pytest.raises(BadConfig) as raised:
        resolve([from_toml(text, "config.toml", level)])
    return str(raised.value)


def test_accounts_are_read_in_their_order_apart_from_the_options() -> None:
    settled = resolve([from_toml(TWO, "config.toml", Level.USER)])
    assert settled.policy().agents == {"claude": {"max_turns": 9}}
    assert accounts(settled.values.accounts, ENV, settled.origins) == {
        "claude": (
            Account(name="work", home="/home/me/.claude-work"),
            Account(name="api", variables={"ANTHROPIC_API_KEY": "WORK_KEY"}),
            Account(name="mine"),
        )
    }


def test_each_is_shown_with_its_origin() -> None:
    shown = {one.key: one for one in resolve([from_toml(TWO, "config.toml", Level.USER)]).shown()}
    work = shown["agents.claude.accounts.work.home"]
    assert (work.value, work.origin) == ("~/.claude-work", "config.toml:6")
    assert shown["agents.claude.accounts.api.variables"].value == ["ANTHROPIC_API_KEY=WORK_KEY"]


def test_the_environment_can_name_one() -> None:
    layer = from_environment({"LOOPWRIGHT_AGENTS__CLAUDE__ACCOUNTS__WORK__HOME": "/w"})
    variables = from_environment({"LOOPWRIGHT_AGENTS__CLAUDE__ACCOUNTS__WORK__VARIABLES": "A=B, C=D"})
    settled = resolve([layer, variables])
    found = accounts(settled.values.accounts, ENV, settled.origins)
    assert found == {"claude": (Account(name="work", home="/w", variables={"A": "B", "C": "D"}),)}


@each_case(
    ("text", "said"),
    [
        ('[agents.claude.accounts.work]\nhome = "work"', "an absolute path, or one that starts with ~/"),
        ('[agents.claude.accounts.work]\nhmoe = "/w"', "its keys are home, variables"),
        ("[agents.claude.accounts.work]", "expected a table for each account, such as"),
        ('[agents.claude.accounts]\nwork = "/w"', "expected a table for each account, such as"),
        ('[agents.claude]\naccounts = "/w"', "expected a table for each account, such as"),
        ('[agents.claude.accounts."a b"]\nhome = "/w"', "expected a table for each account, such as"),
        ('[agents.claude.accounts.work]\nvariables = ["LOOPWRIGHT_HOME=X"]', "expected a list such as"),
        ("[agents.claude.accounts.work]\nvariables = 3", "expected a list such as"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, said: str) -> None:
    told = problems(text)
    assert said in told
    assert told.startswith("config.toml:")


def test_a_secret_in_the_place_of_a_name_is_refused_and_never_printed(wording: Wording) -> None:
    told = problems('[agents.claude.accounts.work]\nvariables = ["ANTHROPIC_API_KEY=sk-ant-secret"]')
    wording(told)
    assert "sk-ant" not in told


def test_a_project_cannot_name_accounts(wording: Wording) -> None:
    told = problems('[agents.claude.accounts.work]\nhome = "/w"', Level.PROJECT)
    wording(told)


def test_two_accounts_with_one_home_are_one() -> None:
    text = '[agents.claude.accounts.a]\nhome = "~/x"\n[agents.claude.accounts.b]\nhome = "/home/me/x"'
    settled = resolve([from_toml(text, "config.toml", Level.USER)])
    with raises_code("account_home_shared"):
        accounts(settled.values.accounts, ENV, settled.origins)
    keys = text + '\nvariables = ["ANTHROPIC_API_KEY=OTHER"]'
    settled = resolve([from_toml(keys, "config.toml", Level.USER)])
    assert len(accounts(settled.values.accounts, ENV, settled.origins)["claude"]) == 2
