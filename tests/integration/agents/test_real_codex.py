"""The real Codex program against a scripted model, from its invocation to its judgement, under a real keeper."""

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

import psutil
import pytest
from tests.integration.agents.codex_runs import AGENT, PROGRAM, Codex

from loopwright.core.rows.model import Usage
from loopwright.core.rows.waiting_rows import QuotaKind
from loopwright.core.values.failures import Failure
from loopwright.core.values.permissions import Access, Permissions
from loopwright.core.values.policy import Limits
from loopwright.ports import AgentRequest, OutputLine, ToolServer
from loopwright.testing import scenarios
from loopwright.testing.model_server import Rejection, Reply, Scenario, ToolCall, Trouble
from loopwright.testing.model_server.openai_errors import window_headers

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="the openai-codex wheel is not installed")

READ_ONLY = Permissions(access=Access.READ_ONLY)
ALL = Permissions(access=Access.SANDBOXED_ALL)
TURN = Usage(input_tokens=120, output_tokens=25, cache_read_tokens=50, cache_write_tokens=10)
TOYS = Path(__file__).parents[1] / "model_server" / "toy_tools.py"
# It starts only with the variable that it is given.
TOOLS = {
    "toy": ToolServer(
        command="/bin/sh",
        args=("-c", f'test "$FRUIT" = plum && exec {sys.executable} {TOYS}'),
        env={"FRUIT": "plum"},
    )
}
ADDING = Scenario(
    turns=(
        Reply(tools=(ToolCall(name="add", namespace="mcp__toy", input={"a": 2, "b": 3}),)),
        Reply(text="Added."),
    )
)


def run(*lines: str) -> Scenario:
    """Let the model run commands one after the other."""
    return Scenario(
        turns=(*(Reply(tools=(scenarios.RUNS["codex"](line),)) for line in lines), Reply(text="Done."))
    )


def times(usage: Usage, n: int) -> Usage:
    return Usage(**{name: getattr(usage, name) * n for name in Usage.__slots__})


@pytest.fixture
def codex(tmp_path: Path) -> Iterator[Codex]:
    """Codex in a folder that its own sandbox shows: it has another /dev, where tests may keep their files in memory."""
    if not tmp_path.is_relative_to("/dev"):
        yield Codex(place=tmp_path)
        return
    with TemporaryDirectory(dir="/var/tmp") as place:
        yield Codex(place=Path(place).resolve())


@pytest.mark.capability("C025", "C027", "C028")
async def test_it_reads_and_edits_a_file_with_its_own_tools(codex: Codex) -> None:
    patch = "*** Begin Patch\n*** Update File: hello.txt\n@@\n-hello world\n+hello loop\n*** End Patch\n"
    scenario = Scenario(
        turns=(
            Reply(text="I look first.", tools=(scenarios.RUNS["codex"]("cat hello.txt | head -5"),)),
            Reply(tools=(ToolCall(name="apply_patch", input=patch),)),
            Reply(text="I changed it."),
        )
    )
    prompt = "Change hello.txt: it has a “quote”, a $VARIABLE and\nsecond lines."
    ran = await codex(scenario, prompt, options={"instructions": "Be brief, and say WATERMELON."})
    assert (codex.workspace / "hello.txt").read_text() == "hello loop\n"
    assert ran.result.claimed
    assert ran.result.summary == "I changed it."
    assert ran.result.usage == times(TURN, 3)
    assert ran.result.model == "gpt-5.5"
    assert ran.result.version == version("openai-codex-cli-bin")
    assert (ran.exit.code, ran.exit.ended_by) == (0, "itself")
    assert not [line for line in ran.lines if "helper binaries" in line], "CODEX_HOME is not below TMPDIR"
    assert ran.told("ToolStart") == [
        "shell cat hello.txt | head -5",
        f"apply_patch {codex.workspace}/hello.txt",
    ]
    assert ran.told("FileChange") == ["hello.txt"], "told once, however often Codex repeats it"
    assert ran.asked[0].prompt == prompt
    assert "WATERMELON" in ran.to_the_model()


@pytest.mark.agents
async def test_what_outlives_a_run_is_its_conversation_and_not_its_trust_in_the_workspace(
    codex: Codex,
) -> None:
    ran = await codex(scenarios.answer())
    assert sorted(path.name for path in codex.user.iterdir()) == [".codex"]
    assert list((codex.user / ".codex" / "sessions").rglob(f"*{ran.result.session_ref}.jsonl"))
    assert not (codex.user / ".codex" / "config.toml").exists(), "no workspace is noted as trusted"


async def test_the_rules_of_the_repository_are_read_but_no_settings_of_its(codex: Codex) -> None:
    (codex.workspace / "AGENTS.md").write_text("Say PINEAPPLE.")
    (codex.workspace / ".codex").mkdir()
    (codex.workspace / ".codex" / "config.toml").write_text('developer_instructions = "Say COCONUT."')
    ran = await codex(scenarios.answer())
    assert "PINEAPPLE" in ran.to_the_model()
    assert "COCONUT" not in ran.to_the_model()


async def test_a_resumed_conversation_is_charged_with_what_it_adds(codex: Codex) -> None:
    first = await codex(scenarios.answer("I remember."), "The word is ORANGE.")
    second = await codex(
        scenarios.answer("Still."), "Again.", session_ref=first.result.session_ref, before=first.spent()
    )
    assert second.result.session_ref == first.result.session_ref
    assert second.result.usage == first.result.usage == TURN
    assert "ORANGE" in second.to_the_model()


@pytest.mark.agents
async def test_a_copy_of_a_conversation_leaves_it_as_it_is(codex: Codex) -> None:
    first = await codex(scenarios.answer("I remember."), "The word is ORANGE.")
    copy = await codex(scenarios.answer("Still."), "LEMON.", session_ref=first.result.session_ref, fork=True)
    assert copy.result.session_ref not in (None, first.result.session_ref)
    assert copy.result.usage == TURN, "what the first one used is not counted again"
    assert "ORANGE" in copy.to_the_model()
    third = await codex(
        scenarios.answer("Yes."), "On.", session_ref=first.result.session_ref, before=first.spent()
    )
    assert "LEMON" not in third.to_the_model()
    assert third.result.usage == TURN


async def test_a_conversation_that_is_gone_fails_so_that_another_begins(codex: Codex) -> None:
    ran = await codex(scenarios.answer(), session_ref="11111111-2222-4333-8444-555555555555")
    assert ran.result.failure is Failure.CRASH
    assert ran.result.session_ref is None
    assert ran.asked == ()


@pytest.mark.capability("C034")
async def test_a_person_is_asked_and_what_was_granted_is_done_by_the_resumed_run(codex: Codex) -> None:
    first = await codex(run("make dist"))
    assert [one.wish.key for one in first.result.asked if one.wish] == ["command:make dist"]
    assert first.told("Ask") == ["May it run the command: make dist"]
    assert not first.result.claimed
    assert first.result.failure is None
    assert first.exit.ended_by == "itself"
    assert not (codex.workspace / "dist.txt").exists()
    granted = Permissions(granted=("command:make dist",))
    second = await codex(
        run("make dist"),
        "Yes, you may.",
        session_ref=first.result.session_ref,
        permissions=granted,
        before=first.spent(),
    )
    assert second.result.claimed
    assert second.result.asked == ()
    assert (codex.workspace / "dist.txt").read_text() == "dist\n"
    assert second.result.usage == times(TURN, 2)


@pytest.mark.capability("C034")
async def test_what_was_refused_is_declined_and_the_turn_goes_on(codex: Codex) -> None:
    ran = await codex(run("make dist"), permissions=Permissions(refused=("command:make dist",)))
    assert ran.result.claimed
    assert not (codex.workspace / "dist.txt").exists()
    assert "rejected by user" in ran.to_the_model()


@pytest.mark.capability("C034")
async def test_read_only_lets_everything_be_read_and_nothing_be_written(codex: Codex) -> None:
    ran = await codex(run("cat hello.txt", "touch made", "rm hello.txt"), permissions=READ_ONLY)
    assert "hello world" in ran.to_the_model()
    patched = await codex(
        scenarios.write_file("made.txt", text="x\n", program="codex"), permissions=READ_ONLY
    )
    assert patched.result.asked == ran.result.asked == ()
    assert sorted(path.name for path in codex.workspace.iterdir()) == [".git", "Makefile", "hello.txt"]


@pytest.mark.capability("C034")
@pytest.mark.agents
async def test_sandboxed_all_is_never_asked_not_even_for_what_codex_thinks_dangerous(codex: Codex) -> None:
    outside = codex.place / "outside.txt"
    ran = await codex(run("rm -rf hello.txt", f"echo 1 > {outside}"), permissions=ALL)
    assert ran.result.claimed
    assert not (codex.workspace / "hello.txt").exists()
    assert outside.read_text() == "1\n"


async def test_a_file_outside_of_the_workspace_is_asked_for(codex: Codex) -> None:
    ran = await codex(scenarios.write_file("../outside.txt", text="x\n", program="codex"))
    (asked,) = ran.result.asked
    assert asked.wish is not None
    assert (asked.wish.kind, asked.wish.what, asked.wish.inside) == (
        "edit",
        f"{codex.place}/outside.txt",
        False,
    )
    assert not (codex.place / "outside.txt").exists()


@pytest.mark.parametrize(
    "options",
    [
        {},
        pytest.param({"ask": "escalations"}, marks=pytest.mark.agents),
        pytest.param({"protocol": "exec"}, marks=pytest.mark.agents),
    ],
    ids=str,
)
async def test_what_would_make_git_run_a_command_is_not_done_unasked(
    codex: Codex, options: dict[str, str]
) -> None:
    subprocess.run(["git", "init", "-q", str(codex.workspace)], check=True)
    config = codex.workspace / ".git" / "config"
    before = config.read_text()
    patch = "*** Begin Patch\n*** Update File: .git/config\n@@\n [core]\n+\tfsmonitor = x\n*** End Patch\n"
    scenario = Scenario(
        turns=(Reply(tools=(ToolCall(name="apply_patch", input=patch),)), Reply(text="Done."))
    )
    ran = await codex(scenario, options=options)
    if "protocol" not in options:
        assert [one.wish.key for one in ran.result.asked if one.wish] == ["edit:.git/config"]
    assert config.read_text() == before


@pytest.mark.agents
async def test_with_escalations_commands_run_in_codexs_own_sandbox_unasked(codex: Codex) -> None:
    options = {"ask": "escalations"}
    ran = await codex(run("make dist", "git commit --allow-empty -m x"), options=options)
    assert ran.result.claimed
    assert (codex.workspace / "dist.txt").exists()
    assert "Read-only file system" in ran.to_the_model(), "its sandbox protects .git"
    wants_out = {"cmd": "make dist", "sandbox_permissions": "require_escalated", "justification": "It must."}
    scenario = Scenario(
        turns=(Reply(tools=(ToolCall(name="exec_command", input=wants_out),)), Reply(text="Done."))
    )
    asked = await codex(scenario, options=options)
    assert [one.text for one in asked.result.asked] == [
        "May it run the command: make dist (it says: It must.)"
    ]


async def test_a_tool_server_is_started_and_its_tools_need_leave(codex: Codex) -> None:
    ran = await codex(ADDING, tools=TOOLS)
    assert [one.wish.key for one in ran.result.asked if one.wish] == ["tool:mcp__toy__add"]
    granted = await codex(ADDING, tools=TOOLS, permissions=Permissions(granted=("tool:mcp__toy__add",)))
    assert granted.result.claimed
    assert "the sum is 5" in granted.to_the_model()
    assert "the sum is 5" in granted.told("ToolEnd")


async def test_a_tool_server_that_does_not_start_fails_the_run(codex: Codex) -> None:
    ran = await codex(ADDING, tools={"toy": ToolServer(command="/nowhere/tool")})
    assert ran.result.failure is Failure.TOOL
    assert "toy" in ran.result.detail
    assert ran.asked == ()


async def test_a_result_fits_the_schema(codex: Codex) -> None:
    schema = {
        "type": "object",
        "properties": {"ok": {"type": "boolean"}},
        "required": ["ok"],
        "additionalProperties": False,
    }
    ran = await codex(scenarios.answer('{"ok": true}'), schema=schema)
    assert ran.result.structured == {"ok": True}
    assert ran.asked[0].body["text"]["format"]["schema"] == schema
    wrong = await codex(scenarios.answer("All is well."), schema=schema)
    assert wrong.result.failure is Failure.AGENT_ERROR


async def test_a_used_up_subscription_says_when_it_can_be_used_again(codex: Codex) -> None:
    resets_at = int(time.time()) + 3600
    ran = await codex(scenarios.window_used_up(resets_at=resets_at))
    assert ran.result.failure is Failure.USAGE_LIMIT
    assert ran.result.retry_at == datetime.fromtimestamp(resets_at, UTC)
    windows = {one.name: one for one in ran.result.windows}
    assert windows["primary"].rejected
    assert windows["primary"].used == 1.0
    assert windows["primary"].kind is QuotaKind.SUBSCRIPTION
    assert "RateLimit" in ran.kinds()


@pytest.mark.parametrize("protocol", ["app-server", "exec"])
async def test_missing_credit_is_for_a_person_and_not_waited_for(codex: Codex, protocol: str) -> None:
    refused = Rejection(
        status=429,
        kind="usage_limit_reached",
        message="The usage limit has been reached",
        headers={
            **window_headers(int(time.time()) + 3600, used_percent=40.0),
            "x-codex-credits-has-credits": "false",
            "x-codex-credits-unlimited": "false",
            "x-codex-credits-balance": "0",
            "x-codex-rate-limit-reached-type": "workspace_member_credits_depleted",
        },
    )
    ran = await codex(Scenario(turns=(refused,)), options={"protocol": protocol})
    assert (ran.result.failure, ran.result.retry_at) == (Failure.BILLING, None), ran.result.detail
    assert "out of credits" in ran.result.detail
    if protocol == "app-server":
        assert [(one.kind, one.left, one.rejected) for one in ran.result.windows] == [
            (QuotaKind.SUBSCRIPTION, "", False),
            (QuotaKind.CREDITS, "0", True),
        ]


async def test_who_logged_in_with_a_key_pays_call_by_call(codex: Codex) -> None:
    login = codex.user / ".codex" / "auth.json"
    login.parent.mkdir()
    login.write_text('{"OPENAI_API_KEY": "no-real-key-0123456789"}')
    ran = await codex(
        scenarios.answer(), options={"config": ["model_providers.local.requires_openai_auth=true"]}
    )
    assert [one.kind for one in ran.result.windows] == [QuotaKind.DOLLARS]


@pytest.mark.parametrize(
    ("trouble", "failure"),
    [
        ("auth", Failure.AUTH),
        pytest.param("forbidden", Failure.AUTH, marks=pytest.mark.agents),
        pytest.param("model", Failure.MODEL, marks=pytest.mark.agents),
        pytest.param("rate_limit", Failure.RATE_LIMIT, marks=pytest.mark.agents),
        pytest.param("billing", Failure.BILLING, marks=pytest.mark.agents),
        ("overloaded", Failure.OVERLOADED),
        ("context", Failure.CONTEXT),
    ],
)
async def test_what_the_service_refuses_is_told_by_its_kind(
    codex: Codex, trouble: str, failure: Failure
) -> None:
    ran = await codex(Scenario(turns=(Trouble(kind=trouble),)))  # type: ignore[arg-type]
    assert ran.result.failure is failure, ran.result.detail
    assert ran.result.detail


async def test_a_refusal_of_which_nothing_is_handed_on_is_no_success(codex: Codex) -> None:
    ran = await codex(Scenario(turns=(Reply(text="I cannot help with that.", stop_reason="refusal"),)))
    assert ran.result.failure is Failure.REFUSAL


@pytest.mark.agents
async def test_an_answer_that_was_cut_off_is_no_success(codex: Codex) -> None:
    ran = await codex(Scenario(turns=(Reply(text="Once upon", stop_reason="max_tokens"),)))
    assert ran.result.failure is Failure.CONTEXT


async def test_it_is_interrupted_in_its_own_words_and_its_command_with_it(codex: Codex) -> None:
    line = "exec sleep 4711"
    ran = await codex(run(line), permissions=ALL, interrupt_on=lambda event: event.kind == "ToolStart")
    assert ran.result.failure is Failure.CANCELLED
    assert (ran.exit.ended_by, ran.exit.code) == ("itself", 0), "it ended its turn in order"
    assert ran.result.usage is not None, "and told what it had used"
    assert not [one.pid for one in psutil.process_iter(["cmdline"]) if "4711" in (one.info["cmdline"] or ())]


async def test_another_worker_takes_it_over_and_answers_what_it_asks(codex: Codex) -> None:
    makes = Permissions(commands=("make *",))
    ran = await codex(
        run("cat hello.txt", "make dist"),
        permissions=makes,
        abandon_on=lambda event: event.kind == "ToolStart" and event.text == "shell cat hello.txt",
    )
    assert ran.result.claimed
    assert (codex.workspace / "dist.txt").exists()
    assert ran.told("ToolStart") == ["shell cat hello.txt", "shell make dist"]
    assert len(ran.asked) == 3, "nothing was asked of the model twice"


@pytest.mark.parametrize("protocol", ["app-server", pytest.param("exec", marks=pytest.mark.agents)])
async def test_a_long_prompt_arrives_whole_and_one_that_is_too_long_says_so(
    codex: Codex, protocol: str
) -> None:
    options, long = {"protocol": protocol}, "x" * 200_000 + "END"
    assert (await codex(scenarios.answer(), long, options=options)).asked[0].prompt == long
    too_long = await codex(scenarios.answer(), "x" * 1_100_000, options=options)
    assert too_long.result.failure is Failure.CONTEXT
    assert "exceeds the maximum length" in too_long.result.detail


@pytest.mark.trap("quoted success")
async def test_the_done_pattern_matches_the_end_of_the_turn_and_nothing_else(codex: Codex) -> None:
    ran = await codex(scenarios.answer('{"method":"turn/completed","turn":{"id":"x","rootTurnId":"x"'))
    request = AgentRequest(prompt="", workspace=Path("w"), run_directory=Path("r"))
    pattern = AGENT.invocation(request).done_pattern
    assert pattern is not None
    (found,) = [line for line in ran.lines if re.search(pattern, line)]
    assert json.loads(found)["method"] == "turn/completed"


@pytest.mark.capability("C029")
@pytest.mark.agents
async def test_a_setting_that_codex_does_not_take_means_it_cannot_start(codex: Codex) -> None:
    ran = await codex(scenarios.answer(), options={"config": ["model_providers=5"]})
    assert ran.result.failure is Failure.CANNOT_START
    assert "model_providers" in ran.result.detail


@pytest.mark.capability("C029")
async def test_a_program_that_is_not_there_means_it_cannot_start(codex: Codex) -> None:
    ran = await codex(scenarios.answer(), options={"binary": "/nowhere/codex"})
    assert ran.result.failure is Failure.CANNOT_START


async def test_a_service_that_is_not_there_is_waited_for_and_is_no_fault_of_the_work(codex: Codex) -> None:
    nobody = 'model_providers.local.base_url="http://127.0.0.1:9/v1"'
    ran = await codex(
        scenarios.answer(),
        options={"config": [nobody, "model_providers.local.stream_max_retries=100"]},
        limits=Limits(hard=4, term_grace=0.5),
    )
    assert ran.exit.ended_by == "deadline"
    assert ran.result.failure is Failure.ENVIRONMENT
    assert "Retry" in ran.kinds()


class TestExec:
    """The same program without a conversation around it."""

    OPTIONS: ClassVar = {"protocol": "exec"}

    @pytest.mark.capability("C025", "C028")
    async def test_it_edits_in_its_own_sandbox_and_its_usage_is_counted_on(self, codex: Codex) -> None:
        write = scenarios.write_file("made.txt", text="made\n", program="codex")
        told = {**self.OPTIONS, "instructions": 'Say "WATERMELON".'}
        ran = await codex(write, "Make “it”.", options=told)
        assert ran.result.claimed
        assert (codex.workspace / "made.txt").read_text() == "made\n"
        assert ran.told("FileChange") == ["made.txt"]
        assert ran.asked[0].prompt == "Make “it”."
        assert 'Say \\"WATERMELON\\".' in ran.to_the_model()
        assert ran.result.usage == times(TURN, 2)
        again = await codex(
            scenarios.answer("Still."),
            "Again.",
            options=self.OPTIONS,
            session_ref=ran.result.session_ref,
            before=ran.spent(),
        )
        assert again.result.session_ref == ran.result.session_ref
        assert again.result.usage == TURN
        assert not (codex.user / ".codex" / "config.toml").exists(), "no workspace is noted as trusted"

    @pytest.mark.capability("C034")
    async def test_read_only_lets_nothing_be_written(self, codex: Codex) -> None:
        ran = await codex(run("touch made"), options=self.OPTIONS, permissions=READ_ONLY)
        assert not (codex.workspace / "made").exists()
        assert "Read-only file system" in ran.to_the_model()

    @pytest.mark.agents
    async def test_a_result_fits_the_schema_and_a_granted_tool_is_used(self, codex: Codex) -> None:
        schema = {
            "type": "object",
            "properties": {"sum": {"type": "number"}},
            "required": ["sum"],
            "additionalProperties": False,
        }
        turns = (ADDING.turns[0], Reply(text='{"sum": 5}'))
        ran = await codex(
            Scenario(turns=turns),
            options=self.OPTIONS,
            schema=schema,
            tools=TOOLS,
            permissions=Permissions(granted=("tool:mcp__toy__add",)),
        )
        assert ran.result.structured == {"sum": 5}
        assert "the sum is 5" in ran.to_the_model()

    @pytest.mark.agents
    async def test_a_copy_of_a_conversation_has_a_name_of_its_own(self, codex: Codex) -> None:
        first = await codex(scenarios.answer(), "The word is ORANGE.", options=self.OPTIONS)
        copy = await codex(
            scenarios.answer(), "On.", options=self.OPTIONS, session_ref=first.result.session_ref, fork=True
        )
        assert copy.result.session_ref not in (None, first.result.session_ref)
        assert "ORANGE" in copy.to_the_model()
        assert copy.result.usage is None, "how much of it is its own is not told"

    @pytest.mark.parametrize(
        ("trouble", "failure"),
        [
            ("auth", Failure.AUTH),
            pytest.param("model", Failure.MODEL, marks=pytest.mark.agents),
            pytest.param("rate_limit", Failure.RATE_LIMIT, marks=pytest.mark.agents),
            pytest.param("billing", Failure.BILLING, marks=pytest.mark.agents),
            pytest.param("overloaded", Failure.OVERLOADED, marks=pytest.mark.agents),
            pytest.param("context", Failure.CONTEXT, marks=pytest.mark.agents),
            ("usage_limit", Failure.USAGE_LIMIT),
        ],
    )
    async def test_its_prose_tells_the_kind(self, codex: Codex, trouble: str, failure: Failure) -> None:
        ran = await codex(Scenario(turns=(Trouble(kind=trouble),)), options=self.OPTIONS)  # type: ignore[arg-type]
        assert ran.result.failure is failure, ran.result.detail
        assert ran.exit.code == 1

    @pytest.mark.agents
    async def test_a_conversation_that_is_gone_fails_so_that_another_begins(self, codex: Codex) -> None:
        ran = await codex(
            scenarios.answer(), options=self.OPTIONS, session_ref="11111111-2222-4333-8444-555555555555"
        )
        assert ran.result.failure is Failure.CRASH
        assert ran.result.session_ref is None

    async def test_an_interrupt_is_a_signal(self, codex: Codex) -> None:
        ran = await codex(
            run("sleep 4711"), options=self.OPTIONS, interrupt_on=lambda event: event.kind == "ToolStart"
        )
        assert ran.result.failure is Failure.CANCELLED
        assert ran.exit.ended_by == "asked"


def test_every_request_that_the_program_may_make_gets_an_answer(tmp_path: Path) -> None:
    """The program itself prints what it may ask; a run never hangs on a request."""
    subprocess.run(
        [str(PROGRAM), "app-server", "generate-json-schema", "--out", str(tmp_path)], check=True, timeout=60
    )
    requests = json.loads((tmp_path / "ServerRequest.json").read_text())
    methods = [one["properties"]["method"]["enum"][0] for one in requests["oneOf"]]
    assert len(methods) >= 10
    state = AGENT.initial(AgentRequest(prompt="", workspace=Path("/w"), run_directory=Path("/r")))
    for method in methods:
        line = json.dumps({"id": 7, "method": method, "params": {"threadId": "t", "turnId": "u"}})
        answer = json.loads(AGENT.fold(state, OutputLine(offset=0, stream="out", text=line)).writes[0])
        assert answer["id"] == 7
        assert "result" in answer or answer["error"]["code"] == -32601
