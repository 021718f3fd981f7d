"""The conformance suite finds what is wrong: codecs with one planted defect each."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.cases import each_case
from tests.contracts.agents.subjects import SUBJECTS

from loopwright.adapters.agents.output import json_object
from loopwright.core.replies.questions import Asking
from loopwright.core.values.permissions import Wish
from loopwright.ports import (
    AgentEvent,
    AgentRequest,
    AgentResult,
    Exit,
    Folded,
    Invocation,
    OutputLine,
    QuotaWindow,
    Spent,
)
from loopwright.testing.conformance import BEHAVIOURS, Played, Subject, check, play
from loopwright.testing.conformance.judging import problems
from loopwright.testing.scripted import ScriptedAgent

GOOD = next(subject for subject in SUBJECTS if subject.name == "scripted")
RIGHT = ScriptedAgent()


@dataclass(frozen=True)
class Wrong:
    """The scripted agent's codec, with whatever is given in place of the right thing."""

    folded: Callable[[Any, OutputLine], Folded] = RIGHT.fold
    judged: Callable[[AgentResult, Any, Exit], AgentResult] = lambda result, state, how: result
    invoked: Callable[[Invocation], Invocation] = lambda invocation: invocation
    stopped: tuple[str, ...] = ()
    capabilities: frozenset[str] = RIGHT.capabilities
    name: str = "wrong"

    def invocation(self, request: AgentRequest) -> Invocation:
        return self.invoked(RIGHT.invocation(request))

    def initial(self, request: AgentRequest | None = None, *, before: Spent | None = None) -> Any:
        return RIGHT.initial(request, before=before)

    def fold(self, state: Any, line: OutputLine) -> Folded:
        return self.folded(state, line)

    def interrupt(self, state: Any) -> tuple[str, ...]:
        return self.stopped

    def result(self, state: Any, exit: Exit) -> AgentResult:
        return self.judged(RIGHT.result(state, exit), state, exit)

    def probe(self) -> tuple[str, ...]:
        return RIGHT.probe()


def claims(result: AgentResult, state: Any, exit: Exit) -> AgentResult:
    return replace(result, claimed=True, failure=None)


def claims_by_exit_code(result: AgentResult, state: Any, exit: Exit) -> AgentResult:
    return replace(result, claimed=exit.code == 0, failure=None if exit.code == 0 else result.failure)


def counts_on(result: AgentResult, state: Any, exit: Exit) -> AgentResult:
    # As if the agent told the sum over its conversation, and nobody subtracted.
    return replace(result, cost_micros=int(exit.ended_at.timestamp() * 1_000_000))


def tells_chance(state: Any, line: OutputLine) -> Folded:
    return replace(RIGHT.fold(state, line), events=(AgentEvent(kind="Text", text=uuid4().hex),))


def writes_chance(state: Any, line: OutputLine) -> Folded:
    step = RIGHT.fold(state, line)
    return replace(step, writes=(uuid4().hex,)) if '"started"' in line.text else step


def trusts_types(state: Any, line: OutputLine) -> Folded:
    event = json_object(line.text)
    if event and event.get("event") == "file":
        event["path"].upper()
    return RIGHT.fold(state, line)


def tells_nuls(state: Any, line: OutputLine) -> Folded:
    return replace(RIGHT.fold(state, line), events=(AgentEvent(kind="Text", text="a\0b"),))


def keeps_only_its_own(state: Any, line: OutputLine) -> Folded:
    # Like one that tells of its own affairs in raw events too, and throws away what it does not know.
    step = RIGHT.fold(state, line)
    events = tuple(event for event in step.events if event.kind != "Raw")
    own = (AgentEvent(kind="Raw", data={"type": "own"}),) if '"started"' in line.text else ()
    return replace(step, events=(*own, *events))


DEFECTS = [
    ("error_result", Wrong(judged=claims), "it is claimed, which is wrong here"),
    ("zero_on_sigterm", Wrong(judged=claims_by_exit_code), "it is claimed, which is wrong here"),
    ("ignores_sigint", Wrong(judged=claims), "it is claimed, which is wrong here"),
    ("done", Wrong(judged=lambda result, *_: replace(result, claimed=False)), "it is not claimed"),
    ("auth", Wrong(judged=lambda result, *_: replace(result, failure="crash")), "expected auth, but crash"),
    (
        "limit",
        Wrong(judged=lambda result, *_: replace(result, retry_at=None)),
        "does not say when to try again",
    ),
    (
        "retry_after",
        Wrong(judged=lambda result, *_: replace(result, retry_at=None)),
        "does not say when to try again",
    ),
    ("resume", Wrong(judged=counts_on), "the same work cost"),
    ("fork", Wrong(capabilities=RIGHT.capabilities | {"fork"}), "is that conversation itself"),
    (
        "done",
        Wrong(judged=lambda result, *_: replace(result, windows=(QuotaWindow(name="late"),))),
        "of its quota it tells () while it runs",
    ),
    (
        "done",
        Wrong(judged=lambda result, *_: replace(result, cost_micros=None)),
        "it can tell its cost, and does not",
    ),
    ("done", Wrong(folded=tells_chance), "folding again tells"),
    ("interrupt", Wrong(folded=writes_chance, invoked=lambda one: replace(one, stdin="pipe")), "write 1 was"),
    ("done", Wrong(folded=trusts_types), "makes it raise KeyError"),
    ("done", Wrong(folded=tells_nuls), "has a NUL"),
    (
        "unknown_events",
        Wrong(folded=keeps_only_its_own),
        "1 lines of the output have the word 'novelty', and 0",
    ),
    ("garbage", Wrong(folded=keeps_only_its_own), "2 lines of the output have the word 'gibberish', and 0"),
    ("done", Wrong(capabilities=RIGHT.capabilities | {"flight"}), "there is no capability flight"),
    (
        "interrupt",
        Wrong(stopped=("please stop\n",), invoked=lambda one: replace(one, stdin="pipe")),
        "it was told in its own words to stop, and had to be ended all the same",
    ),
    (
        "stopped_after_done",
        Wrong(stopped=("please stop\n",), invoked=lambda one: replace(one, stdin="pipe")),
        "it was told to stop in words, to which it no longer listens",
    ),
    ("done", Wrong(invoked=lambda one: replace(one, env={"X": uuid4().hex})), "another invocation"),
]


@pytest.mark.parametrize(
    ("behaviour", "wrong", "words"),
    [
        # Every third, and none that waits ten seconds for an agent that does not listen.
        pytest.param(*one, id=one[2], marks=[pytest.mark.more] if n % 3 or "told" in one[2] else [])
        for n, one in enumerate(DEFECTS)
    ],
)
async def test_a_planted_defect_is_found(behaviour: str, wrong: Any, words: str, tmp_path: Path) -> None:
    subject = replace(GOOD, agent=wrong)
    found = await check(subject, behaviour, tmp_path / "place")
    assert words in "; ".join(found)


async def test_an_agent_that_cannot_be_interrupted_is_told_nothing_and_ended_by_signals(
    tmp_path: Path,
) -> None:
    deaf = Wrong(
        stopped=("please stop\n",),
        invoked=lambda one: replace(one, stdin="pipe"),
        capabilities=RIGHT.capabilities - {"interrupt"},
    )
    (run,) = await play(replace(GOOD, agent=deaf), "ignores_sigint", tmp_path / "place")  # type: ignore[arg-type]
    assert (run.writes(), run.ended.interrupted) == ([], True)


def with_result(run: Played, **more: Any) -> Played:
    assert run.ended.result is not None
    return replace(run, ended=replace(run.ended, result=replace(run.ended.result, **more)))


def with_exit(run: Played, **more: Any) -> Played:
    return replace(run, ended=replace(run.ended, exit=replace(run.ended.exit, **more)))


WISH = Wish(kind="command", what="make dist")
ASKING = Asking(kind="permission", text="May I?", options=("yes", "no"), wish=WISH)
ENDED = [
    ("done", lambda run: with_exit(run, ended_by="idle"), "the process was ended by idle (0), not by itself"),
    ("done", lambda run: replace(run, seconds=99.0), "it took 99.0 s"),
    ("done", lambda run: replace(run, ended=replace(run.ended, result=None)), "its keeper was lost"),
    ("done", lambda run: with_result(run, retry_at=datetime.now(UTC)), "nothing told when to try again"),
    ("done", lambda run: with_result(run, session_ref=None), "its conversation has no name"),
    ("done", lambda run: with_result(run, asked=(ASKING,)), "claimed and something else at once"),
    ("auth", lambda run: with_result(run, detail=""), "it failed, and nothing says how"),
    ("limit", lambda run: with_result(run, retry_at=datetime.now(UTC)), "it says to try again in"),
    ("permission", lambda run: run, "a person is asked about [], not about command:make dist"),
    ("permission", lambda run: with_result(run, asked=(replace(ASKING, options=()),)), "with the options ()"),
    ("permission_granted", lambda run: run, "dist.txt was not made"),
    ("permission_refused", lambda run: replace(run, files=frozenset({"dist.txt"})), "dist.txt was made"),
    ("resume", lambda run: replace(run, files=frozenset()), "made.txt was not made"),
    ("unknown_events", lambda run: replace(run, lines=()), "no line of the output has the word 'novelty'"),
    ("huge_output", lambda run: with_exit(run, output_bytes=9), "it printed 9 bytes, and to play this"),
    (
        "ignores_sigint",
        lambda run: with_exit(run, code=-2),
        "exited with -2, and to play this it has to exit",
    ),
    ("zero_on_sigterm", lambda run: with_exit(run, code=-15), "exited with -15, and to play this"),
    ("error_result", lambda run: with_exit(run, code=1), "exited with 1, and to play this"),
    ("interrupt", lambda run: run, "it has to be heard working (Text or ToolStart), and told FileChange"),
]


@each_case(("behaviour", "bent", "words"), ENDED, ids=[words for _, _, words in ENDED])
async def test_a_wrong_outcome_is_told_in_words(
    behaviour: str, bent: Any, words: str, tmp_path: Path
) -> None:
    """A good run, taken for one of another behaviour or bent in one place."""
    plays = behaviour if not GOOD.excuse(behaviour) and behaviour != "interrupt" else "done"
    run, *more = await play(GOOD, plays, tmp_path / "place")
    assert words in "; ".join(problems(GOOD, behaviour, (bent(run), *more)))


def test_a_behaviour_that_does_not_exist_cannot_be_left_out() -> None:
    with pytest.raises(ValueError, match="unknown behaviour flight"):
        replace(GOOD, cannot={"flight": "it has no wings"})


def test_a_subject_is_excused_by_its_capabilities_and_by_its_protocol() -> None:
    subject = replace(GOOD, cannot={"tool": "it has none"})
    assert subject.excuse("tool") == "it has none"
    assert subject.excuse("permission") == "it does not have the capability `permissions`"
    assert subject.excuse("done") == ""
    assert {"tool", "permission"}.isdisjoint(subject.behaviours())


@each_case("name", BEHAVIOURS)
def test_a_behaviour_says_in_a_sentence_what_it_is(name: str) -> None:
    assert BEHAVIOURS[name].says[0].isupper()
    assert BEHAVIOURS[name].says.endswith(".")


def suite(*arguments: str) -> subprocess.CompletedProcess[str]:
    module = [sys.executable, "-m", "loopwright.testing.conformance"]
    return subprocess.run([*module, *arguments], capture_output=True, text=True, timeout=100, cwd=ROOT)


ROOT = Path(__file__).parents[3]
HERE = "tests.contracts.agents.test_the_suite_itself"
BROKEN: Subject = replace(GOOD, name="broken", agent=Wrong(judged=claims))  # type: ignore[arg-type]


def test_as_a_program_it_tells_what_is_kept_broken_and_not_asked() -> None:
    done = suite(f"{HERE}:BROKEN", "done", "auth", "permission")
    assert done.returncode == 1, done.stderr
    assert "ok      done (" in done.stdout
    assert "FAILED  auth (" in done.stdout
    assert "          it is claimed, which is wrong here" in done.stdout
    assert "-       permission: it does not have the capability `permissions`" in done.stdout
    assert done.stdout.endswith("broken: 1 failed\n")
    assert suite(f"{HERE}:GOOD", "missing").stdout.endswith("scripted: all is well\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("no.such.module:SUBJECT",), "no subject at no.such.module:SUBJECT"),
        ((f"{HERE}:RIGHT",), "is not a Subject"),
        ((f"{HERE}:GOOD", "flight"), "unknown behaviour flight"),
    ],
)
def test_as_a_program_it_refuses_what_it_cannot_run(arguments: tuple[str, ...], words: str) -> None:
    done = suite(*arguments)
    assert done.returncode == 2
    assert words in done.stderr
