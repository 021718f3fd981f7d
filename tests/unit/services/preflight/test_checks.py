"""What is found before any money is spent: agents, options and what is not committed."""

import asyncio
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cases import each_case
from tests.doubles import Home, planned
from tests.refusals import raises_code
from tests.wording_plugin import Wording

from loopwright.config.resolve import Settings, load
from loopwright.core.policy.price_table import AS_OF
from loopwright.core.rows.model import Plan
from loopwright.core.values.errors import BadConfig, Refused, UserError
from loopwright.core.values.policy import Policy
from loopwright.ports import Base, Mark, PlannedTask, PlannedWork
from loopwright.services.doctor.agent_probe import probe
from loopwright.services.doctor.checkup_machine import Status
from loopwright.services.gates.clean_tree import clean_tree
from loopwright.services.preflight.checks import (
    agents_of,
    check_accounts,
    check_agents,
    check_another_try,
    check_costs,
    check_gates,
    check_keeping,
    check_new_limits,
    check_options,
    check_review,
    check_sandbox,
    uncommitted,
    warnings,
    who_works,
)


def _settings(project: str, **flags: Any) -> Settings:
    env = {"HOME": "/nowhere", "LOOPWRIGHT_HOME": "/nowhere/home"}
    return load(env, platform="linux", flags=flags, project_text=project)


def _work(*agents: str | None, **more: Any) -> PlannedWork:
    tasks = tuple(PlannedTask(key=f"t{n}", title="t", agent=agent, **more) for n, agent in enumerate(agents))
    return PlannedWork(title="p", tasks=tasks, sha256="0" * 64)


COMMAND = 'agent = "command"\n[agents.command]\n'


@pytest.mark.capability("C004")
@each_case(
    ("options", "told"),
    [
        ('command = "true"\ncomand = "x"\n', "loopwright.toml:4: agents.command.comand: "),
        ('prompt = "air"\ncommand = "true"\n', "loopwright.toml:3: agents.command.prompt: "),
        ('command = "true {model}"\n', "loopwright.toml:3: agents.command.command: "),
    ],
)
def test_a_wrong_option_is_found_with_its_place_by_run_and_by_config_check(options: str, told: str) -> None:
    settings = _settings(COMMAND + options)
    with pytest.raises(BadConfig) as refused:
        agents_of(_work(None), settings)
    assert str(refused.value).startswith(told)
    with pytest.raises(BadConfig) as checked:
        check_options(settings)
    assert str(checked.value).startswith(told)


def test_an_account_whose_variable_is_not_set_is_only_in_the_way_of_who_uses_its_agent() -> None:
    variables = {
        "LOOPWRIGHT_AGENTS__CLAUDE__ACCOUNTS__API__VARIABLES": "ANTHROPIC_API_KEY=NOBODY_HAS_SET_THIS"
    }
    env = {
        "HOME": "/nowhere",
        "LOOPWRIGHT_HOME": "/nowhere/home",
        "LOOPWRIGHT_AGENT": "scripted",
        **variables,
    }
    settings = load(env, platform="linux", flags={})
    check_accounts(settings, who_works(settings, None, "codex"))
    for used in (who_works(settings, "claude"), None):
        with pytest.raises(BadConfig, match="NOBODY_HAS_SET_THIS"):
            check_accounts(settings, used)
    with_fallback = load({**env, "LOOPWRIGHT_FALLBACK": "claude:some-model"}, platform="linux", flags={})
    assert "claude" in who_works(with_fallback)


def test_what_is_done_already_needs_no_check() -> None:
    (task,) = _work(None).tasks
    done = replace(task, key="old", mark=Mark.DONE)
    check_gates(_settings(""), PlannedWork(title="p", tasks=(done,), sha256="0" * 64))
    with raises_code("no_gates"):
        check_gates(_settings(""), PlannedWork(title="p", tasks=(done, task), sha256="0" * 64))


def test_only_the_agents_that_a_plan_uses_are_looked_at_but_every_one_is_checked() -> None:
    settings = _settings(
        'agent = "command"\n[agents.claude]\nmax_turn = 3\n[agents.command]\ncommand = "true"\n'
    )
    assert [one.name for one in agents_of(_work(None), settings)] == ["command"]
    with pytest.raises(BadConfig, match=r"loopwright\.toml:3: agents\.claude\.max_turn: "):
        agents_of(_work(None, "claude"), settings)
    with pytest.raises(BadConfig, match=r"loopwright\.toml:3: agents\.claude\.max_turn: "):
        check_options(settings)


def test_an_agent_that_does_not_exist_is_found_by_config_check(wording: Wording) -> None:
    with pytest.raises(BadConfig) as refused:
        check_options(_settings('agent = "clade"\n[agents.claud]\nmax_turns = 3\n'))
    wording(str(refused.value).splitlines())


def test_a_model_that_only_a_task_names_is_enough_for_its_own_placeholder() -> None:
    settings = _settings(COMMAND + 'command = "true {model}"\n')
    assert agents_of(_work("command", model="small"), settings)[0].usable


@each_case(
    ("command", "usable"),
    [
        ('"no-such-program-here --x"', False),
        ('["no-such-program-here", "x"]', False),
        ('"/nowhere/agent"', False),
        ('"sh -c true"', True),
        ('["sh", "-c", "true"]', True),
        ('"MODE=fast sh agent.sh"', True),
        ('"MODE=fast no-such-program-here"', False),
        ('"cd sub && ./agent"', True),
        ('"./tools/agent.sh"', True),
        ('"$AGENT --x"', True),
    ],
)
def test_a_command_whose_program_is_missing_is_found_before_it_runs(
    command: str, usable: bool, wording: Wording
) -> None:
    [found] = agents_of(_work(None), _settings(COMMAND + f"command = {command}\n"))
    assert found.usable is usable, found
    if not usable:
        wording(found.problem)
        wording(found.hint)


@each_case(
    ("command", "usable"),
    [
        ('"no-such-program-here --acp"', False),
        ('["no-such-program-here", "--acp"]', False),
        ('"sh --acp"', True),
        ('["sh", "--acp"]', True),
        # There is no shell that would take it for a variable.
        ('"MODE=fast sh"', False),
        ('"./tools/agent --acp"', True),
    ],
)
def test_a_program_of_the_agent_client_protocol_is_looked_for_too(
    command: str, usable: bool, wording: Wording
) -> None:
    settings = _settings(f'agent = "acp"\n[agents.acp]\ncommand = {command}\n')
    [found] = agents_of(_work(None), settings)
    assert found.usable is usable, found
    if not usable:
        wording(found.problem)
        wording(found.hint)


def test_how_to_get_a_missing_agent_is_said(wording: Wording) -> None:
    [found] = agents_of(_work("qwen"), _settings('[agents.qwen]\nbinary = "/nowhere/qwen"\n'))
    assert "npm install -g @qwen-code/qwen-code" in found.hint
    assert "agents.qwen.binary" in found.hint
    [unset] = agents_of(_work("acp"), _settings(""))
    wording(unset.problem)
    assert "agents.acp.command" in unset.hint


def test_a_plan_none_of_whose_agents_is_there_is_refused_and_one_that_has_another_is_told(
    wording: Wording,
) -> None:
    settings = _settings('agent = "command"\n[agents.command]\ncommand = "no-such-program-here"\n')
    with raises_code("agent_unusable"):
        check_agents(settings, _work(None))
    told = check_agents(settings, _work(None, "scripted"))
    assert len(told) == 1
    wording(told[0])


def test_the_python_of_the_scripted_agent_is_looked_for() -> None:
    good = _settings(f'[agents.scripted]\npython = "{sys.executable}"\n')
    assert agents_of(_work("scripted"), good)[0].path == sys.executable
    assert not agents_of(_work("scripted"), _settings('[agents.scripted]\npython = "/no/python"\n'))[0].usable


def _told(*dirty: str, file: str | None, committed: bool) -> tuple[str, ...]:
    start = Base(ref="main", sha="a" * 40, dirty=dirty)
    return uncommitted(start, file, committed=committed, plan="plans/p.yaml")


def test_what_is_not_committed_is_one_sentence_for_each_fact(wording: Wording) -> None:
    name = "loopwright.toml"
    [fallback] = _told(name, file=name, committed=False)
    wording(fallback)
    [changed] = _told(name, "plans/p.yaml", file=name, committed=True)
    wording(changed)
    wording(_told("a.py", "plans/p.yaml", file=name, committed=True))
    assert _told(file=None, committed=False) == ()
    start = Base(ref="main", sha="a" * 40, dirty=("specs/a/tasks.md", "specs/ab.md"))
    wording(uncommitted(start, None, committed=True, plan="specs/a"))


def test_paths_are_named_as_git_names_them(tmp_path: Path) -> None:
    from loopwright.services.preflight.checks import relative

    assert relative(tmp_path / "sub" / "p.yaml", tmp_path.resolve()) == "sub/p.yaml"
    assert relative(Path("/else/p.yaml"), tmp_path) == "/else/p.yaml"


@pytest.mark.capability("C075")
@each_case(
    ("project", "agents", "told", "hint"),
    [
        (
            'agent = "codex"\nmodel = "new-model"\nmax_cost = 1\n',
            (None,),
            "loopwright.toml:3: max_cost cannot be kept: codex reports only its tokens",
            'set prices = ["new-model INPUT OUTPUT CACHE_READ"]',
        ),
        (
            'max_cost_per_day = 1\n[agents.command]\ncommand = "true"\n',
            (None, "command"),
            "loopwright.toml:1: max_cost_per_day cannot be kept: the agent command reports neither",
            "switch max_cost_per_day off, or choose another agent",
        ),
        (
            'max_cost_per_loop = 1\nfallback = ["codex:new-model"]\n',
            (None,),
            "the price of the model new-model is unknown",
            "or switch max_cost_per_loop off",
        ),
    ],
)
def test_a_limit_that_nobody_could_keep_is_refused_before_anything_starts(
    project: str, agents: tuple[str | None, ...], told: str, hint: str
) -> None:
    with pytest.raises(Refused) as refused:
        check_costs(_settings(project), _work(*agents))
    assert told in str(refused.value)
    assert hint in (refused.value.hint or "")


@each_case(
    "project",
    [
        'agent = "codex"\nmodel = "new-model"\n',
        'agent = "codex"\nmodel = "gpt-5"\nmax_cost = 1\n',
        'agent = "codex"\nmodel = "new-model"\nmax_cost = 1\nprices = ["new-* 1 2"]\n',
        # Which model it uses is told when it starts.
        'agent = "codex"\nmax_cost = 1\n',
        'agent = "claude"\nmodel = "new-model"\nmax_cost = 1\n',
    ],
)
def test_a_limit_that_can_be_kept_is_fine(project: str) -> None:
    check_costs(_settings(project), _work(None))


@each_case(
    ("review", "told"),
    [
        ('agent = "codx"\n', "loopwright.toml:3: review.agent: there is no agent named 'codx'"),
        ('agent = "command"\n', "loopwright.toml:3: review.agent: the agent command cannot be used"),
    ],
)
def test_a_reviewer_that_could_not_look_at_anything_is_refused_before_the_work_is_done(
    review: str, told: str
) -> None:
    with pytest.raises(UserError) as refused:
        check_review(_settings(f'[review]\nmode = "risky"\n{review}'))
    assert str(refused.value).startswith(told)
    check_review(_settings(f"[review]\n{review}"))  # nobody is asked


def test_naming_a_reviewer_that_is_never_asked_is_warned_about(wording: Wording) -> None:
    (told,) = warnings(_settings('[review]\nagent = "codex"\n'), _work())
    wording(told)
    assert warnings(_settings('[review]\nmode = "risky"\nagent = "codex"\n'), _work()) == ()


BY_COMMAND = f'{COMMAND}command = "true"\n'


def _uncontained(project: str) -> Settings:
    env = {
        "HOME": "/nowhere",
        "LOOPWRIGHT_HOME": "/nowhere/home",
        "LOOPWRIGHT_SANDBOX__LEVEL": "none",
    }
    return load(env, platform="linux", project_text=project)


def test_an_agent_that_nothing_keeps_to_its_workspace_is_named_before_it_starts(wording: Wording) -> None:
    (told,) = check_keeping(_uncontained(BY_COMMAND), _work(None))
    wording(told)
    assert check_keeping(_uncontained('agent = "claude"\n'), _work(None)) == ()
    by_exec = 'agent = "codex"\n[agents.codex]\nprotocol = "exec"\n'
    assert check_keeping(_uncontained(by_exec), _work(None)) == (), "it has a sandbox of its own"


def test_an_agent_that_nothing_keeps_from_writing_is_not_started_read_only() -> None:
    with raises_code("read_only_not_enforced"):
        check_keeping(_uncontained(f'permission_mode = "read-only"\n{BY_COMMAND}'), _work(None))
    claude = _uncontained('permission_mode = "read-only"\nagent = "claude"\n')
    assert check_keeping(claude, _work(None)) == ()


def test_a_plan_that_requires_a_sandbox_does_not_start_without_one() -> None:
    with raises_code("sandbox_required"):
        check_sandbox(_uncontained("[sandbox]\nrequired = true\n"))
    check_sandbox(_uncontained(""))


def test_everything_allowed_without_a_sandbox_is_said(wording: Wording) -> None:
    (told,) = check_keeping(_uncontained('permission_mode = "sandboxed-all"\n'), _work(None))
    wording(told)


def test_a_limit_that_could_not_be_kept_because_of_the_reviewer_is_refused() -> None:
    project = (
        'max_cost = 1\n[review]\nmode = "always"\nagent = "command"\n[agents.command]\ncommand = "true"\n'
    )
    with raises_code("cost_limit_not_enforced"):
        check_costs(_settings(project), _work(None))


def test_a_model_without_a_price_is_named_before_it_costs_anything() -> None:
    project = 'agent = "codex"\nmodel = "new-model"\n'
    (told,) = warnings(_settings(project), _work(None))
    assert "new-model" in told
    assert str(AS_OF) in told
    assert warnings(_settings(project + 'prices = ["new-* 1 2"]\n'), _work(None)) == ()
    assert warnings(_settings('agent = "claude"\nmodel = "new-model"\n'), _work(None)) == (), (
        "it says what it cost"
    )
    with raises_code("cost_limit_not_enforced"):
        check_costs(_settings(project + "max_cost = 1\n"), _work(None))


@pytest.mark.capability("C075")
async def test_another_try_gets_no_model_whose_cost_nobody_could_know() -> None:
    home = await Home().launch()
    home.submit(planned("a"), policy=Policy(agent="codex", model="gpt-5.5", max_cost=1))
    check_another_try(home.plan(), None, None)
    with raises_code("cost_limit_not_enforced"):
        check_another_try(home.plan(), None, "new-model")


@pytest.mark.capability("C075")
async def test_a_plan_under_way_is_given_no_limit_that_nobody_could_keep(wording: Wording) -> None:
    home = await Home().launch()
    home.submit(planned("a"), policy=Policy(agent="codex", model="new-model"))

    def give(**limits: int | None) -> None:
        home.store.read_sync(lambda tx: check_new_limits(tx, home.plan(), limits))

    give()
    give(max_cost=None)
    with raises_code("cost_limit_not_enforced") as refused:
        give(max_cost=5, max_cost_per_day=None)
    wording(refused.value.hint or "")
    policy = replace(home.plan().policy, prices=("new-* 1 2",))
    home.store.transact_sync("price", lambda tx: tx.update(Plan, home.plan().id, policy=policy))
    give(max_cost=5)


def test_a_secret_in_the_options_of_an_agent_that_does_nothing_is_refused_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SOME_TOKEN", "0123456789abc")
    asleep = '[agents.codex]\nbinary = "/opt/codex-0123456789abc"\n'
    with raises_code("secret_in_options"):
        agents_of(_work(None), _settings(COMMAND + 'command = "true"\n' + asleep))
    monkeypatch.setenv("SOME_KEYRING", "/usr/bin")
    assert agents_of(_work(None), _settings(COMMAND + 'command = "/usr/bin/env true"\n')), (
        "a path is no secret"
    )


@each_case(
    ("wanted", "told"),
    [
        (
            {"LEVEL": "bubblewrap", "PROGRAM": "/nowhere/bwrap"},
            "sandbox.level is bubblewrap, but that does not hold",
        ),
        (
            {"LEVEL": "none", "NETWORK": "off"},
            "sandbox.network is off, but only a sandbox can take the network away",
        ),
        ({"LEVEL": "none", "NETWORK": "agents"}, "sandbox.network is agents, but only a sandbox can take"),
    ],
)
async def test_nothing_is_tried_without_the_sandbox_that_was_asked_for_either(
    wanted: dict[str, str], told: str, tmp_path: Path
) -> None:
    """Neither a run, nor its checks on the base (`plan check`, `receipt replay`), nor a probe of `doctor`."""
    repository = tmp_path / "repository"
    for words in (("init", "-q"), ("commit", "-q", "--allow-empty", "-m", "a")):
        repository.mkdir(exist_ok=True)
        who = ("-c", "user.name=a", "-c", "user.email=a@example.invalid")
        subprocess.run(["git", *who, *words], cwd=repository, check=True)
    env = {f"LOOPWRIGHT_SANDBOX__{key}": value for key, value in wanted.items()}
    env |= {"HOME": str(tmp_path), "LOOPWRIGHT_HOME": str(tmp_path / "home")}
    settings = load(env, platform="linux", project_text=COMMAND + 'command = "true"\nprompt = "stdin"\n')
    with pytest.raises(UserError, match=told):
        check_sandbox(settings)
    with pytest.raises(UserError, match=told):
        async with clean_tree(repository, "HEAD", settings, subfolder="", copy_files=()):
            pass
    found = await asyncio.to_thread(probe, "command", settings)
    assert (found.status, told in found.text) == (Status.FAIL, True), found
