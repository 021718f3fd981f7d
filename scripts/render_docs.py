"""Generate the reference pages in docs/ and the SQL of a new SQLite database from the code: `make docs`.

With `--check`, change nothing and name the pages that are out of date.
"""

import ast
import inspect
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from bench.worth import page as worth
from bench.worth.__main__ import MADE as MADE_WORTH
from scripts.render_commands import commands_page
from sqlalchemy import create_mock_engine

from loopwright.adapters.store.schema import metadata
from loopwright.adapters.store.upgrade import CREATE_VERSIONS
from loopwright.cli.shell.exits import ExitCode
from loopwright.core.gates.gate_limits import LIMITS
from loopwright.core.plans.tracks import ROLES as TRACK_ROLES
from loopwright.core.plans.tracks import TRACK_TABLE, TrackStep
from loopwright.core.policy.price_table import AS_OF, MADE_FROM, PROMPT, TABLE
from loopwright.core.policy.retry import MOST_RACES
from loopwright.core.values import errors
from loopwright.core.values.error_codes import CODES
from loopwright.core.values.failures import RULES, Level, Rule
from loopwright.core.values.round_states import ROUND_OWNERS, UPDATE_OWNERS
from loopwright.core.values.states import MACHINES, drawn
from loopwright.core.values.templates import ROLES
from loopwright.server.asgi import describe
from loopwright.server.problems import BY_CODE, HTTP_CODES, status_of
from loopwright.testing import scenarios

ROOT = Path(__file__).resolve().parent.parent
MADE = "<!-- Made by `make docs` from {source}. Edit that, not this. -->"
LIMITS_BEGIN, LIMITS_END = "<!-- limits: begin -->", "<!-- limits: end -->"
TOOLS_BEGIN, TOOLS_END = "<!-- tools: begin -->", "<!-- tools: end -->"
_PROMISED = (
    *(
        "invariants",
        "dialogue",
        "money",
        "reviews",
        "ends",
        "territory",
        "taking_back",
        "by_hand",
        "contradictions",
    ),
    *("discovered", "prompt_loops", "looks", "healing"),
)
TRUST_BEGIN, TRUST_END = "<!-- behaviours: begin -->", "<!-- behaviours: end -->"
AGENTS_BEGIN, AGENTS_END = "<!-- agents: begin -->", "<!-- agents: end -->"
HTTP_BEGIN, HTTP_END = "<!-- endpoints: begin -->", "<!-- endpoints: end -->"

ABOUT: Mapping[str, str] = {
    "loop": "A loop drives one work source of one project.",
    "plan": "A plan is verified only after the complete gate passed on the final tree.",
    "task": "A task ends when its work lands, when its attempts are used up, or when you cancel it.",
    "attempt": "An attempt is one try at a task, in its own workspace.",
    "run": "A run is one agent process or one gate execution.",
    "question": "A question is something a run needs you to answer, or the choice what to do with a failed task.",
    "discovery": "A discovery is work that an agent found outside its task. You decide about it.",
    "envelope": "An envelope is the quota of one account of an agent.",
    "healing": "A healing step is one thing that `auto_heal` tries for a task that failed for good.",
    "action": "An action is a change of loops by an agent with its tools, with the reason.",
    "hold": "A hold is files or a named lock that a loop of a project has or waits for.",
    "lesson": "A lesson is something that agents are told as long as that measurably helps.",
    "review": "A review is an independent check of one change before it lands.",
    "finish": "A finish moves the work of a plan into your branch or into a pull request.",
    "controller": "The controller drives an [orchestrator folder](sources/orchestrator.md) from round to round.",
    "round": "A round brings one item of a roadmap from its plan into the base branch.",
    "update": "An update changes what a roadmap means: the planner writes a new revision, the reviewer approves it.",
}

OWNERS: Mapping[str, Mapping[StrEnum, StrEnum]] = {"round": ROUND_OWNERS, "update": UPDATE_OWNERS}  # type: ignore[dict-item]
"""Who owns each state, where that is data too."""

# Who or what makes an unusual move: the diagram does not show it.
NOTES: Mapping[str, Mapping[tuple[str, str], str]] = {
    "question": {
        ("OPEN", "EXPIRED"): "the deadline passed: Loopwright takes the default, or blocks the task",
        ("OPEN", "WITHDRAWN"): "no run needs the answer any more",
    },
    "discovery": {("DISMISSED", "ACCEPTED"): "you changed your mind"},
    "hold": {("WAITING", "REFUSED"): "loops waited for each other, or you released it"},
    "action": {("DONE", "UNDONE"): "you, or an agent, took it back"},
    "envelope": {
        ("CLOSED", "OPEN"): "one trial attempt reached the service, or you reopened it",
    },
    "review": {
        ("ASKED", "CLEAR"): "the reviewer found nothing that blocks the change",
        ("ASKED", "BLOCKING"): "the author has to fix the findings",
        ("ASKED", "UNCLEAR"): "the reviewer gave no usable decision: verified with gaps at most",
        ("ASKED", "WITHDRAWN"): "the attempt ended before the reviewer answered",
    },
    "healing": {
        ("TRYING", "HEALED"): "the task passed its checks and landed",
        ("TRYING", "FAILED"): "the task failed for good once more",
        ("TRYING", "WITHDRAWN"): "you decided about the task",
    },
    "lesson": {
        ("PROPOSED", "TRIED"): "you approved it",
        ("PROPOSED", "REMOVED"): "you rejected it",
        ("TRIED", "KEPT"): "attempts with it passed more often",
        ("TRIED", "REMOVED"): "attempts with it did not pass more often, or you removed it",
        ("KEPT", "REMOVED"): "it no longer helps, or you removed it",
    },
    "loop": {
        ("STOPPED", "RUNNING"): "you resume it",
        ("COMPLETED", "RUNNING"): "the source has new work",
        ("FAILED", "RUNNING"): "you run it again",
    },
    "plan": {
        ("VERIFYING", "RUNNING"): "the verification crashed or was stopped before it had a verdict",
        ("VERIFIED", "RUNNING"): "you rolled a task back",
        ("FAILED", "VERIFYING"): "you asked for another verification; Loopwright never does this by itself",
        ("FAILED", "RUNNING"): "you retried a task",
    },
    "task": {
        ("RUNNING", "QUEUED"): "the attempt did not land and another one follows",
        ("ERROR", "QUEUED"): "you retried it",
        ("CANCELLED", "QUEUED"): "you retried it",
        ("COMPLETE", "QUEUED"): "you rolled it back",
    },
    "attempt": {
        ("PREPARING", "WAITING"): "the account closed before the agent started",
        ("CHECKING", "WORKING"): "a reviewer reads it, or the author fixes the findings",
        ("LANDING", "CHECKING"): "the plan branch moved, so the candidate is checked again",
        ("WORKING", "BROKEN"): "the machine or the service failed: this does not count as an attempt",
        ("CHECKING", "REJECTED"): "a check failed: this counts as an attempt",
    },
    "finish": {
        ("LANDING", "CHECKING"): "the base moved, so Loopwright builds and checks the result again",
        ("CHECKING", "FINISHED"): "the base already has the work",
        ("CHECKING", "REFUSED"): "a conflict, a failed check, or you stopped it; nothing was moved",
        (
            "LANDING",
            "REFUSED",
        ): "your checkout has changes, or the forge or the signing key refused; nothing was moved",
    },
    "run": {("AWAITING_RESPONSE", "RUNNING"): "the question was answered"},
    "controller": {
        ("dispatch-rounds", "dispatch-rounds"): "a round was merged and milestones are unfinished",
        ("dispatch-rounds", "update-roadmap"): "a review or the planner asks for another roadmap",
        ("update-roadmap", "update-roadmap"): "the reviewer rejected the update and the planner revises it",
        ("update-roadmap", "blocked"): "the reviewer rejected the update three times",
        ("done", "dispatch-rounds"): "the roadmap has unfinished milestones again",
    },
    "round": {
        ("review", "blocked"): "the review record is not valid, or names no stage to retry",
        ("finalize-round", "implement"): "the base moved and the work conflicts with it or fails its gates",
        ("finalize-round", "review"): "the approved closeout does not fit the roadmap any more",
        ("blocked", "review"): "the files of the round prove that stage; the same holds for the other three",
    },
    "update": {("blocked", "authoring"): "you ran it again"},
}


def states_page() -> str:
    """Return docs/reference/states.md."""
    lines = [MADE.format(source="src/loopwright/core/values/states.py"), "", "# States", ""]
    lines += [
        "Each object moves only along the arrows of its own diagram. A state without an outgoing arrow is final.",
        "The lists below the diagrams explain unusual moves.",
    ]
    for machine, table in MACHINES.items():
        lines += ["", f"## {machine.capitalize()}", "", ABOUT[machine], "", "```mermaid", "stateDiagram-v2"]
        lines += [f"    [*] --> {drawn(next(iter(table)))}"]
        for source, targets in table.items():
            lines += [f"    {drawn(source)} --> {drawn(target)}" for target in table if target in targets]
            if not targets:
                lines += [f"    {drawn(source)} --> [*]"]
        lines += ["```", ""]
        if owners := OWNERS.get(machine):
            lines += ["| state | owner |", "|---|---|"]
            lines += [f"| `{state}` | {owner} |" for state, owner in owners.items()] + [""]
        edges = {(source.value, target.value) for source, targets in table.items() for target in targets}
        for edge, note in NOTES[machine].items():
            if edge not in edges:
                raise ValueError(f"{machine}: the note on {edge} has no edge in the table")
            lines += [f"- {edge[0]} to {edge[1]}: {note}."]
    return "\n".join([*lines, *_track_table()]) + "\n"


def _track_table() -> list[str]:
    """Return the table of steps of a conductor track."""
    lines = [
        "",
        "## Track",
        "",
        "The loop of a [conductor track](sources/checkbox-plan.md#tracks): `loop_state` in its `metadata.json`.",
        "Another status of a step is an error.",
        "",
        "| step | role | status | what follows | next step |",
        "|---|---|---|---|---|",
    ]
    for step, rows in TRACK_TABLE.items():
        role = TRACK_ROLES.get(TrackStep(step), "")
        lines += [
            f"| `{step}` | {role} | `{status}` | {rule.action} | {', '.join(f'`{one}`' for one in rule.to)} |"
            for status, rule in rows.items()
        ]
    return lines


COUNTERS: Mapping[Level, str] = {
    Level.ATTEMPT: "The checks rejected the work. It uses up one of the task's attempts (`max_attempts`), and the next "
    "attempt gets the evidence.",
    Level.RACE: "The work may be good, but another task landed first. No attempt is used up. The next one starts from "
    f"what landed, with both changes as evidence. After {MOST_RACES} collisions the task waits for you.",
    Level.CALL: "The service or the machine failed before the work was checked. Loopwright retries after a growing "
    "pause, up to `max_call_retries` times. No attempt is used up.",
    Level.NONE: "A retry would not help. The task waits for you.",
}


def failures_page() -> str:
    """Return docs/reference/failures.md."""
    lines = [MADE.format(source="src/loopwright/core/values/failures.py"), "", "# Failures", ""]
    lines += [
        "Why an attempt did not land, and what happens next. Each level has its own counter. A parked attempt keeps",
        "its workspace and its work, needs no slot, and continues in the same place.",
    ]
    for level in Level:
        lines += [
            "",
            f"## Level `{level}`",
            "",
            COUNTERS[level],
            "",
            "| failure | what it means | what follows |",
            "|---|---|---|",
        ]
        lines += [
            f"| `{failure}` | {rule.advice} | {_follows(rule)} |"
            for failure, rule in RULES.items()
            if rule.level is level
        ]
    return "\n".join(lines) + "\n"


def _follows(rule: Rule) -> str:
    """Return what a rule does, in the order in which it happens."""
    said = []
    if rule.closes:
        said += ["closes the account; does not count"]
    if rule.parks:
        said += ["parked"]
    if rule.parks or rule.level is Level.CALL:
        pause = f"a pause of {rule.first_s:g} s, doubled up to {rule.longest_s:g} s"
        named = "until the time that the service names"
        if rule.honours:
            pause = f"{named}, else {pause}" if rule.closes else f"{pause}, or {named} if that is later"
        said += [pause]
    if rule.person:
        said += ["or until you reopen it"]
    if rule.hopeless:
        said += ["fails for good when it fails at once twice in the same way"]
    if rule.fallback and rule.closes:
        said += ["an agent of `fallback` takes over in the meantime"]
    elif rule.fallback:
        tried = "when retries are used up, " if rule.level is Level.CALL else ""
        said += [f"{tried}the next agent of `fallback` takes over for good"]
    if rule.pauses:
        said += ["at one of your limits: parked, the loop pauses and asks you"]
        said += ["at the agent's own budget: the task fails"]
    if rule.stopped:
        said += [
            "if you paused or stopped it: parked",
            "if you cancelled it: ended for good",
        ]
        said += ["if something else stopped the agent: the task fails"]
    return "; ".join(said) or {Level.NONE: "the task fails"}.get(rule.level, "the next attempt")


def error_classes() -> list[type[errors.LoopwrightError]]:
    """Return every error class, parents before children, in the order of the module."""

    def below(parent: type[errors.LoopwrightError]) -> Iterator[type[errors.LoopwrightError]]:
        yield parent
        for child in parent.__subclasses__():
            if child.__module__ == errors.__name__:
                yield from below(child)

    return list(below(errors.LoopwrightError))


def errors_page() -> str:
    """Return docs/reference/errors.md."""
    lines = [
        MADE.format(
            source="errors.py and error_codes.py in src/loopwright/core/values, and server/problems.py"
        ),
        "",
        "# Errors",
        "",
    ]
    lines += [
        "Every error that Loopwright raises on purpose has a code that does not change; messages and hints may.",
        "`--json` prints it as `error.code`, the [HTTP API](http-api.md) as `code`. Errors of the kind `UserError` are",
        "yours to fix, and their hint says how. The others come from the environment, from another process, or from a",
        "defect.",
        "",
        "## Errors that you can fix",
    ]
    for kind, codes in CODES.items():
        lines += ["", f"### {kind.__name__}", "", (inspect.getdoc(kind) or "").splitlines()[0], ""]
        lines += ["| code | HTTP | what it means |", "|---|---|---|"]
        status = {code: BY_CODE.get(code, status_of(kind)) for code in codes}
        lines += [f"| `{code}` | {int(status[code])} | {meaning} |" for code, meaning in codes.items()]
    lines += ["", "## Errors of HTTP itself", "", "| code | HTTP | what it means |", "|---|---|---|"]
    lines += [f"| `{code}` | {int(status)} | {said} |" for code, (status, said) in HTTP_CODES.items()]
    lines += [
        "",
        "## Errors with one cause",
        "",
        "| code | HTTP | kind | what it means |",
        "|---|---|---|---|",
    ]
    for cls in error_classes():
        if cls in CODES:
            continue
        kind = "" if cls is errors.LoopwrightError else f"`{cls.__mro__[1].__name__}`"
        http = int(status_of(cls))
        lines += [f"| `{cls.code}` | {http} | {kind} | {(inspect.getdoc(cls) or '').splitlines()[0]} |"]
    return "\n".join(lines) + "\n"


def exit_table() -> str:
    """Return the table of exit codes."""
    return "\n".join(
        ["| code | meaning |", "|---|---|", *(f"| {code.value} | {code.meaning} |" for code in ExitCode)]
    )


def exits_page() -> str:
    """Return docs/reference/exit-codes.md."""
    lines = [MADE.format(source="src/loopwright/cli/shell/exits.py"), "", "# Exit codes", ""]
    lines += ["Scripts can rely on the exit code and need not parse the output.", ""]
    lines += [exit_table(), ""]
    lines += [
        "Only 0 means that the work is done and proven. `loopwright status --json` has the details:",
        "",
        "- `state` is what screens show: `RUNNING`, `PAUSED`, `STOPPED`, `NEEDS_YOU`, `VERIFIED`,",
        "  `VERIFIED_WITH_GAPS`, `UNVERIFIED`, `FAILED`, `CANCELLED`, and the steps before a plan runs. It combines",
        "  the plan's `status`, its `outcome` and the `loop_state`.",
        "- `NO_WORKER` is a plan that continues as soon as a worker runs.",
        "- `taken` says whether the work was `accepted` or is in a `pull request`.",
        "- A `blocked` task did not fail: it waits for you.",
    ]
    return "\n".join(lines) + "\n"


def between(text: str, begin: str, end: str, made: str) -> str:
    """Return a page with new text between two marks."""
    head, _, rest = text.partition(begin)
    _, found, tail = rest.partition(end)
    if not found:
        raise ValueError(f"the page needs the marks {begin} and {end}")
    return f"{head}{begin}\n{made}\n{end}{tail}"


def prices_page() -> str:
    """Return the page of model prices."""
    lines = [MADE.format(source="the table that scripts/render_prices.py makes"), "", "# Model prices", ""]
    lines += [
        f"Loopwright estimates a cost from tokens with this table: prices of **{AS_OF}**, from the data of",
        f"[{MADE_FROM}](https://github.com/pydantic/genai-prices). Amounts are dollars per million tokens, for prompts",
        f"of {PROMPT:,} tokens where longer ones cost more. A dated version of a model, such as",
        "`gpt-5-2025-08-07`, costs the same. The price of a model that is not listed is unknown. The setting",
        "`prices` adds models and overrides this",
        "table: see [how to limit cost](../how-to/limit-cost.md).",
        "",
        "| model | input | output | cache read | cache write |",
        "|---|---|---|---|---|",
    ]
    for name, amounts in TABLE.items():
        lines += [f"| `{name}` | " + " | ".join(f"{one / 1_000_000:g}" for one in amounts) + " |"]
    return "\n".join(lines) + "\n"


def command_page() -> str:
    """Return the page of commands."""
    return MADE.format(source="the argument parser") + "\n\n" + commands_page()


def offline_page() -> str:
    """Return the page about offline agents with the tool calls that each program understands."""
    text = (ROOT / "docs/how-to/run-agents-offline.md").read_text(encoding="utf-8")
    calls = {
        name: (scenarios.WRITES[name]("a.txt", "hello\n"), scenarios.RUNS[name]("make"))
        for name in scenarios.WRITES
    }
    rows = [
        f"| {name} | "
        + " | ".join(f"`{json.dumps({'name': one.name, 'input': one.input})}`" for one in both)
        + " |"
        for name, both in calls.items()
    ]
    made = "\n".join(["| program | create a file | run a command |", "|---|---|---|", *rows])
    return between(text, TOOLS_BEGIN, TOOLS_END, made)


def receipts_page() -> str:
    """Return the page about receipts with the limits of every gate."""
    text = (ROOT / "docs/reference/receipts.md").read_text(encoding="utf-8")
    rows = [f"| {limit.words.format(names='…')} | {limit.closed_by} |" for limit in LIMITS]
    made = "\n".join(["| what the receipt says | what would close it |", "|---|---|", *rows])
    return between(text, LIMITS_BEGIN, LIMITS_END, made)


def prompts_page() -> str:
    """Return the page of the packaged prompt templates."""
    folder = ROOT / "src/loopwright/prompts"
    lines = [MADE.format(source="src/loopwright/prompts"), "", "# Prompt templates", ""]
    lines += ["[How to change a prompt](../how-to/change-a-prompt.md) explains how to replace one."]
    for role in ROLES:
        template = (folder / f"{role}.md").read_text(encoding="utf-8")
        lines += ["", f"## {role}", "", f"````markdown\n{template}````"]
    return "\n".join(lines) + "\n"


def simulation_page() -> str:
    """Return the page of the simulation's promises and faults, as its own files have them."""
    faults = list(faults_in((ROOT / "tests/simulation/scenario.py").read_text(encoding="utf-8")))
    lines = [MADE.format(source="tests/simulation"), "", "# Simulation: promises and faults", ""]
    lines += [
        "[The simulation](../explanation/simulation.md) checks these promises while it injects these faults.",
        "",
    ]
    lines += ["## Promises", "", _table("promise", list(promises_kept())), ""]
    lines += ["## Faults", "", _table("fault", faults)]
    return "\n".join(lines) + "\n"


def _table(what: str, rows: Sequence[tuple[str, str]]) -> str:
    lines = [f"{len(rows)} of them:", "", f"| {what} | what it says |", "|---|---|"]
    return "\n".join([*lines, *(f"| `{name}` | {says} |" for name, says in rows)])


def promises_kept() -> Iterator[tuple[str, str]]:
    """Yield the name and the sentence of each promise that the simulation checks."""
    for name in _PROMISED:
        yield from promises_in((ROOT / f"tests/simulation/promises/{name}.py").read_text(encoding="utf-8"))


def promises_in(source: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the sentence of each function that is registered by a decorator."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.decorator_list:
            yield node.name, ast.get_docstring(node) or ""


def faults_in(source: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the sentence of each kind of fault."""
    for node in ast.parse(source).body:
        if (
            isinstance(node, ast.AnnAssign)
            and isinstance(node.target, ast.Name)
            and node.target.id == "FAULTS"
        ):
            assert node.value is not None
            yield from ast.literal_eval(node.value).items()


def agents_table(seen: Mapping[str, Any]) -> str:
    """Return which behaviours each adapter handled, as the conformance suite recorded it."""
    adapters: Mapping[str, Mapping[str, Any]] = seen["adapters"]
    lines = [f"| behaviour | {' | '.join(adapters)} |", f"|---|{'---|' * len(adapters)}"]
    for name, says in seen["behaviours"].items():
        cells = (_cell(rows[name]) for rows in adapters.values())
        lines += [f"| `{name}`: {says} | {' | '.join(cells)} |"]
    for adapter, rows in adapters.items():
        reasons: dict[str, list[str]] = {}
        for name, row in rows.items():
            if "excuse" in row:
                reasons.setdefault(row["excuse"], []).append(f"`{name}`")
        if reasons:
            told = "; ".join(f"{', '.join(names)} ({reason})" for reason, names in reasons.items())
            lines += ["", f"Not asked of {adapter}: {told}."]
    return "\n".join(lines)


def _cell(row: Mapping[str, Any]) -> str:
    return "–" if "excuse" in row else "yes" if row["kept"] else "**no**"


def agents_page(root: Path = ROOT) -> str:
    """Return docs/reference/adapter-behaviours.md with a new table."""
    seen = json.loads((root / "docs/reference/agents.json").read_text(encoding="utf-8"))
    text = (root / "docs/reference/adapter-behaviours.md").read_text(encoding="utf-8")
    return between(text, AGENTS_BEGIN, AGENTS_END, agents_table(seen))


def trust_table(seen: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the outcome of each behaviour of an agent, as the liar's suite recorded it."""
    lines = ["| the agent | decision | attempts | outcome | what caught it |", "|---|---|---|---|---|"]
    for one in seen.values():
        ends = ", then ".join("landed" if end is None else f"`{end}`" for end in one["ends"])
        lines.append(f"| {one['says']} | {one['decision']} | {ends} | `{one['outcome']}` | {one['caught']} |")
    return "\n".join(lines)


def trust_page(root: Path = ROOT) -> str:
    """Return docs/reference/trust-table.md with a new table."""
    seen = json.loads((root / "docs/reference/trust.json").read_text(encoding="utf-8"))
    text = (root / "docs/reference/trust-table.md").read_text(encoding="utf-8")
    return between(text, TRUST_BEGIN, TRUST_END, trust_table(seen))


def worth_page(root: Path = ROOT) -> str:
    """Return docs/reference/worth.md from what the simulation gave."""
    played = json.loads((root / "docs/reference/worth.json").read_text(encoding="utf-8"))
    return MADE_WORTH + worth.rendered(played)


def sqlite_tables() -> str:
    """Return what makes a new database in SQLite: the tables, and the row that counts events."""
    made: list[str] = []
    engine = create_mock_engine(
        "sqlite://", lambda one, *_, **__: made.append(str(one.compile(dialect=engine.dialect)))
    )
    metadata.create_all(engine, checkfirst=False)
    # Tables before their indexes; within these the order is by chance.
    made.sort(key=lambda one: ("CREATE TABLE" not in one, one))
    statements = (*made, CREATE_VERSIONS, "INSERT INTO counters (id, n) VALUES ('events', 0)")
    lines = [
        "-- Made by `make docs` from core/rows/model.py and adapters/store/tables.py. Edit those, not this."
    ]
    for one in statements:
        lines += [line.rstrip() for line in f"{one.strip()};".expandtabs(4).splitlines()]
    return "\n".join(lines) + "\n"


def openapi_document() -> str:
    """Return the OpenAPI document of the HTTP interface."""
    return json.dumps(describe().openapi(), indent=1, ensure_ascii=False) + "\n"


def http_page() -> str:
    """Return the page with every endpoint of the HTTP interface."""
    path = ROOT / "docs/reference/http-api.md"
    text = path.read_text(encoding="utf-8")
    rows = ["| request | what it does |", "| --- | --- |"]
    for place, methods in describe().openapi()["paths"].items():
        for method, about in methods.items():
            told = " ".join(about.get("description", about.get("summary", "")).split())
            rows.append(f"| `{method.upper()} {place}` | {told} |")
    return between(text, HTTP_BEGIN, HTTP_END, "\n".join(rows))


PAGES: Mapping[str, Callable[[], str]] = {
    "docs/reference/states.md": states_page,
    "docs/reference/failures.md": failures_page,
    "docs/reference/errors.md": errors_page,
    "docs/reference/exit-codes.md": exits_page,
    "docs/reference/adapter-behaviours.md": agents_page,
    "docs/reference/trust-table.md": trust_page,
    "docs/reference/prices.md": prices_page,
    "docs/reference/commands.md": command_page,
    "docs/how-to/run-agents-offline.md": offline_page,
    "docs/reference/receipts.md": receipts_page,
    "docs/reference/prompts.md": prompts_page,
    "docs/reference/simulation.md": simulation_page,
    "docs/reference/worth.md": worth_page,
    "src/loopwright/adapters/store/tables.sql": sqlite_tables,
    "docs/reference/openapi.json": openapi_document,
    "docs/reference/http-api.md": http_page,
}


def main(
    arguments: Sequence[str], *, root: Path = ROOT, pages: Mapping[str, Callable[[], str]] = PAGES
) -> int:
    """Write the pages, or with --check say which ones differ."""
    stale = []
    for name, make in pages.items():
        path, text = root / name, make()
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if "--check" not in arguments:
            path.write_text(text, encoding="utf-8")
    if stale and "--check" in arguments:
        sys.stderr.write(f"Out of date: {', '.join(stale)}. Run `make docs`.\n")
        return 1
    sys.stdout.write(f"{len(pages)} pages, {len(stale)} changed\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
