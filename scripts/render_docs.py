"""Make the pages of docs/ that only repeat what the code says, and the tables of SQLite as SQL: `make docs`.

With `--check`, change nothing and name the pages that are out of date.
"""

import ast
import inspect
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import create_mock_engine

from loopwright.adapters.store.schema import metadata
from loopwright.adapters.store.upgrade import CREATE_VERSIONS
from loopwright.cli.screens.command_effects import effects_table
from loopwright.cli.shell.exits import ExitCode
from loopwright.core.gates.gate_limits import LIMITS
from loopwright.core.policy.prices import AS_OF, PRICES
from loopwright.core.policy.retry import MOST_RACES
from loopwright.core.values import errors
from loopwright.core.values.failures import RULES, Level, Rule
from loopwright.core.values.states import MACHINES
from loopwright.core.values.templates import ROLES
from loopwright.testing import scenarios

ROOT = Path(__file__).resolve().parent.parent
MADE = "<!-- Made by `make docs` from {source}. Edit that, not this. -->"
BEGIN, END = "<!-- exit codes: begin -->", "<!-- exit codes: end -->"
LIMITS_BEGIN, LIMITS_END = "<!-- limits: begin -->", "<!-- limits: end -->"
EFFECTS_BEGIN, EFFECTS_END = "<!-- effects: begin -->", "<!-- effects: end -->"
PRICES_BEGIN, PRICES_END = "<!-- prices: begin -->", "<!-- prices: end -->"
TOOLS_BEGIN, TOOLS_END = "<!-- tools: begin -->", "<!-- tools: end -->"
TEMPLATES_BEGIN, TEMPLATES_END = "<!-- templates: begin -->", "<!-- templates: end -->"
PROMISES_BEGIN, PROMISES_END = "<!-- promises: begin -->", "<!-- promises: end -->"
_PROMISED = (
    *("invariants", "dialogue", "money", "reviews", "ends", "territory", "taking_back", "by_hand"),
    *("discovered", "prompt_loops", "looks"),
)
FAULTS_BEGIN, FAULTS_END = "<!-- faults: begin -->", "<!-- faults: end -->"
TRUST_BEGIN, TRUST_END = "<!-- behaviours: begin -->", "<!-- behaviours: end -->"
AGENTS_BEGIN, AGENTS_END = "<!-- agents: begin -->", "<!-- agents: end -->"

ABOUT: Mapping[str, str] = {
    "loop": "A loop drives one work source of one project.",
    "plan": "A plan is verified only when the complete gate passed on the final tree.",
    "task": "A task ends when its work landed, when it gave up, or when it was cancelled.",
    "attempt": "An attempt is one try at a task, in a workspace of its own.",
    "run": "A run is one agent process or one gate execution.",
    "question": "A question is what a run needs a person to answer, or what becomes of a task that was given up.",
    "discovery": "A discovery is work that an agent came upon and left to others; a person decides about it.",
    "envelope": "An envelope is the account that the runs of one agent draw from.",
    "review": "A review is an independent look at exactly one change, before it lands.",
    "finish": "A finish is one end of a plan: its work on the way into your branch or into a pull request.",
}

# What the picture alone does not tell: who or what makes an unusual move.
NOTES: Mapping[str, Mapping[tuple[str, str], str]] = {
    "question": {
        ("OPEN", "EXPIRED"): "its time is over: the default is taken, or its task is blocked",
        ("OPEN", "WITHDRAWN"): "nobody waits for the answer any more, or it was decided otherwise",
    },
    "discovery": {("DISMISSED", "ACCEPTED"): "a person thought again"},
    "envelope": {
        ("CLOSED", "OPEN"): "the service answered the one attempt that found out, or a person said so",
    },
    "review": {
        ("ASKED", "CLEAR"): "nothing was found that keeps the work from landing",
        ("ASKED", "BLOCKING"): "the author has to mend what was found",
        ("ASKED", "UNCLEAR"): "the reviewer gave no decision that counts: verified with gaps at most",
        ("ASKED", "WITHDRAWN"): "the attempt ended before there was an answer",
    },
    "loop": {
        ("STOPPED", "RUNNING"): "a person resumes it",
        ("COMPLETED", "RUNNING"): "new work appeared in the source",
        ("FAILED", "RUNNING"): "a person runs it again",
    },
    "plan": {
        ("VERIFYING", "RUNNING"): "the verification broke or was stopped before it had a verdict",
        ("VERIFIED", "RUNNING"): "a person rolled a task back",
        ("FAILED", "VERIFYING"): "a person asks for another verification; the machine never does",
        ("FAILED", "RUNNING"): "a person retries a task",
    },
    "task": {
        ("RUNNING", "QUEUED"): "the attempt did not land and another one is due",
        ("ERROR", "QUEUED"): "a person retries it",
        ("CANCELLED", "QUEUED"): "a person retries it",
        ("COMPLETE", "QUEUED"): "a person rolled it back",
    },
    "attempt": {
        ("PREPARING", "WAITING"): "its agent's account was closed before the agent started",
        ("CHECKING", "WORKING"): "a reviewer looks at it, or the author mends what one found",
        ("LANDING", "CHECKING"): "the plan branch moved under the candidate, so it is checked again",
        ("WORKING", "BROKEN"): "the machine or the service failed: this does not count against the limit",
        ("CHECKING", "REJECTED"): "a check failed: this counts against the limit",
    },
    "finish": {
        ("LANDING", "CHECKING"): "the base moved meanwhile, so what goes in is built and gated again",
        ("CHECKING", "FINISHED"): "the base has all of it already",
        ("CHECKING", "REFUSED"): "a conflict, a failed check, or a person who stopped it; nothing was moved",
        (
            "LANDING",
            "REFUSED",
        ): "your checkout has changes, or the forge or the signing key refused; nothing was moved",
    },
    "run": {("AWAITING_RESPONSE", "RUNNING"): "the question was answered"},
}


def states_page() -> str:
    """Return docs/states.md."""
    lines = [MADE.format(source="src/loopwright/core/values/states.py"), "", "# States", ""]
    lines += [
        "Each thing moves only along the arrows of its own diagram. A state without a way out is an end;",
        "states that only a person can leave have their arrow explained below the diagram.",
    ]
    for machine, table in MACHINES.items():
        lines += ["", f"## {machine.capitalize()}", "", ABOUT[machine], "", "```mermaid", "stateDiagram-v2"]
        lines += [f"    [*] --> {next(iter(table))}"]
        for source, targets in table.items():
            lines += [f"    {source} --> {target}" for target in table if target in targets]
            if not targets:
                lines += [f"    {source} --> [*]"]
        lines += ["```", ""]
        edges = {(source.value, target.value) for source, targets in table.items() for target in targets}
        for edge, note in NOTES[machine].items():
            if edge not in edges:
                raise ValueError(f"{machine}: the note on {edge} has no edge in the table")
            lines += [f"- {edge[0]} to {edge[1]}: {note}."]
    return "\n".join(lines) + "\n"


COUNTERS: Mapping[Level, str] = {
    Level.ATTEMPT: "The work was judged and found wanting: it uses up one of the task's attempts "
    "(`max_attempts`), and the next attempt is told what failed.",
    Level.RACE: "The work may be good, but others landed first: no attempt is used up, and the next one starts "
    f"from what landed, with both changes as evidence. What loses {MOST_RACES} times is left to you.",
    Level.CALL: "The service or the machine failed and the work was never judged: it is tried again after "
    "a pause that grows, up to `max_call_retries` times, and no attempt is used up.",
    Level.NONE: "Trying again at once would not help: it is left to you.",
}


def failures_page() -> str:
    """Return docs/failures.md."""
    lines = [MADE.format(source="src/loopwright/core/values/failures.py"), "", "# Failures", ""]
    lines += [
        "Why an attempt did not land, and what follows. Each level has a counter of its own. What is parked keeps its",
        "workspace and its work, needs no slot, and goes on in the same place.",
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
    """Say what a rule does, in the order in which it happens."""
    said = []
    if rule.closes:
        said += ["closes the account and is not counted"]
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
        said += ["given up when it fails at once twice in the same way"]
    if rule.fallback and rule.closes:
        said += ["an agent of `fallback` takes over meanwhile"]
    elif rule.fallback:
        tried = "when it was retried in vain, " if rule.level is Level.CALL else ""
        said += [f"{tried}the next agent of `fallback` takes over for good"]
    if rule.pauses:
        said += ["at a limit of yours it is parked, the loop pauses, and you are asked"]
        said += ["at a budget of the agent's own, the task fails"]
    if rule.stopped:
        said += [
            "where you paused or stopped it, it is parked",
            "where you cancelled it, it is over for good",
        ]
        said += ["where its agent was stopped by somebody else, the task fails"]
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
    """Return docs/errors.md."""
    lines = [MADE.format(source="src/loopwright/core/values/errors.py"), "", "# Errors", ""]
    lines += [
        "Every error that Loopwright raises on purpose has a code that does not change. Errors of the kind",
        "`user_error` are yours to mend, and their message says how; the others tell of the environment,",
        "of another process, or of a defect.",
        "",
        "| code | kind | what it means |",
        "|---|---|---|",
    ]
    for cls in error_classes():
        kind = cls.__mro__[1].__dict__.get("code", "") if cls is not errors.LoopwrightError else ""
        meaning = (inspect.getdoc(cls) or "").splitlines()[0]
        lines += [f"| `{cls.code}` | {f'`{kind}`' if kind else ''} | {meaning} |"]
    return "\n".join(lines) + "\n"


def exit_table() -> str:
    """Return the table of exit codes that README.md and docs/exit-codes.md share."""
    return "\n".join(
        ["| code | meaning |", "|---|---|", *(f"| {code.value} | {code.meaning} |" for code in ExitCode)]
    )


def exits_page() -> str:
    """Return docs/exit-codes.md."""
    lines = [MADE.format(source="src/loopwright/cli/shell/exits.py"), "", "# Exit codes", ""]
    lines += ["The exit code tells a script what it needs to know, so that it need not read the output.", ""]
    lines += [exit_table(), ""]
    lines += [
        "Only 0 means that the work is done and proven. `loopwright status --json` gives the details: `state` is how",
        "a plan stands, in the word that people are shown (`RUNNING`, `PAUSED`, `STOPPED`, `NEEDS_YOU`, `VERIFIED`,",
        "`VERIFIED_WITH_GAPS`, `UNVERIFIED`, `FAILED`, `CANCELLED`, and the steps before it runs); it is made of the",
        "plan's own `status`, its `outcome` and the `loop_state` of the loop that drives it. `NO_WORKER` is a plan",
        "that goes on as soon as a worker is there. `taken` says whether its work was `accepted`, or is in a",
        "`pull request`. A task that is `blocked` failed at nothing: it waits for a person.",
    ]
    return "\n".join(lines) + "\n"


def between(text: str, begin: str, end: str, made: str) -> str:
    """Return a page with what stands between two marks made anew."""
    head, _, rest = text.partition(begin)
    _, found, tail = rest.partition(end)
    if not found:
        raise ValueError(f"the page needs the marks {begin} and {end}")
    return f"{head}{begin}\n{made}\n{end}{tail}"


def readme(text: str) -> str:
    """Return the README with its table of exit codes made anew."""
    return between(text, BEGIN, END, exit_table())


def deciding_page() -> str:
    """Return the page about what a person decides with the table of what each command does to running agents."""
    text = (ROOT / "docs/deciding.md").read_text(encoding="utf-8")
    return between(text, EFFECTS_BEGIN, EFFECTS_END, effects_table())


def cost_page() -> str:
    """Return the page about cost with the models that have a price."""
    text = (ROOT / "docs/cost.md").read_text(encoding="utf-8")
    models = ", ".join(f"`{price.models}`" for price in PRICES)
    return between(text, PRICES_BEGIN, PRICES_END, f"These have a price, as of {AS_OF:%Y-%m-%d}: {models}.")


def offline_page() -> str:
    """Return the page about running agents offline with the calls that each program understands."""
    text = (ROOT / "docs/offline-agents.md").read_text(encoding="utf-8")
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
    """Return the page about receipts with what no gate can exclude."""
    text = (ROOT / "docs/receipts.md").read_text(encoding="utf-8")
    rows = [f"| {limit.words.format(names='…')} | {limit.closed_by} |" for limit in LIMITS]
    made = "\n".join(["| what the receipt says | what would close it |", "|---|---|", *rows])
    return between(text, LIMITS_BEGIN, LIMITS_END, made)


def prompts_page() -> str:
    """Return the page about prompts with the packaged templates."""
    folder = ROOT / "src/loopwright/prompts"
    shown = [
        f"### {role}\n\n````markdown\n{(folder / f'{role}.md').read_text(encoding='utf-8')}````"
        for role in ROLES
    ]
    text = (ROOT / "docs/prompts.md").read_text(encoding="utf-8")
    return between(text, TEMPLATES_BEGIN, TEMPLATES_END, "\n" + "\n\n".join(shown) + "\n")


def simulation_page() -> str:
    """Return the page about the simulation with its promises and faults, as its own files have them."""
    folder = ROOT / "tests/simulation"
    text = (ROOT / "docs/simulation.md").read_text(encoding="utf-8")
    promises = list(promises_kept())
    faults = list(faults_in((folder / "scenario.py").read_text(encoding="utf-8")))
    text = between(text, PROMISES_BEGIN, PROMISES_END, _table("promise", promises))
    return between(text, FAULTS_BEGIN, FAULTS_END, _table("fault", faults))


def _table(what: str, rows: Sequence[tuple[str, str]]) -> str:
    lines = [f"{len(rows)} of them:", "", f"| {what} | what it says |", "|---|---|"]
    return "\n".join([*lines, *(f"| `{name}` | {says} |" for name, says in rows)])


def promises_kept() -> Iterator[tuple[str, str]]:
    """Yield the name and the sentence of each promise that is looked at in the simulation."""
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
    """Return what each adapter was seen to keep, from what the conformance suite wrote down."""
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
    """Return docs/agents.md with its table made anew."""
    seen = json.loads((root / "docs/agents.json").read_text(encoding="utf-8"))
    text = (root / "docs/agents.md").read_text(encoding="utf-8")
    return between(text, AGENTS_BEGIN, AGENTS_END, agents_table(seen))


def trust_table(seen: Mapping[str, Mapping[str, Any]]) -> str:
    """Return what came of each behaviour of an agent, from what the liar's suite wrote down."""
    lines = ["| the agent | decision | attempts | outcome | what caught it |", "|---|---|---|---|---|"]
    for one in seen.values():
        ends = ", then ".join("landed" if end is None else f"`{end}`" for end in one["ends"])
        lines.append(f"| {one['says']} | {one['decision']} | {ends} | `{one['outcome']}` | {one['caught']} |")
    return "\n".join(lines)


def trust_page(root: Path = ROOT) -> str:
    """Return docs/trust.md with its table made anew."""
    seen = json.loads((root / "docs/trust.json").read_text(encoding="utf-8"))
    text = (root / "docs/trust.md").read_text(encoding="utf-8")
    return between(text, TRUST_BEGIN, TRUST_END, trust_table(seen))


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


PAGES: Mapping[str, Callable[[], str]] = {
    "docs/states.md": states_page,
    "docs/failures.md": failures_page,
    "docs/errors.md": errors_page,
    "docs/exit-codes.md": exits_page,
    "docs/agents.md": agents_page,
    "docs/trust.md": trust_page,
    "docs/cost.md": cost_page,
    "docs/deciding.md": deciding_page,
    "docs/offline-agents.md": offline_page,
    "docs/receipts.md": receipts_page,
    "docs/prompts.md": prompts_page,
    "docs/simulation.md": simulation_page,
    "src/loopwright/adapters/store/tables.sql": sqlite_tables,
    "README.md": lambda: readme((ROOT / "README.md").read_text(encoding="utf-8")),
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
