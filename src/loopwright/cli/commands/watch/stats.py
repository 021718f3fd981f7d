"""`stats`: how well plans and agents did, what is left of the accounts, and which tests are flaky."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from cyclopts import App
from rich.console import Console
from rich.text import Text

from loopwright.cli.screens.layout import Rows
from loopwright.cli.screens.plan_table import cost_in_words, standing
from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.lines import Wrapped, local_time
from loopwright.cli.shell.output import console, print_json
from loopwright.core.values.ids import short_id
from loopwright.core.values.wording import counted, duration, one_line
from loopwright.services import metrics as services
from loopwright.services.metrics import AgentRecord, Figures, FlakyView, LoopFigures, PlanFigures, RunFigures

# `stats flaky`: checks that both passed and failed on the same tree.


def flaky(*, json: bool = False) -> int:
    """List the checks of this repository that failed and passed on the same tree (outside of one, of all).

    Parameters
    ----------
    json
        Print them as JSON.
    """
    found = services.flaky()
    if json:
        print_json({"flaky": found})
        return ExitCode.VERIFIED
    out = console()
    if not found:
        out.print("no check was seen to fail and pass on the same tree")
    for one in found:
        out.print(Wrapped(_line(one), indent="  "))
    return ExitCode.VERIFIED


def _line(one: FlakyView) -> Text:
    where = f"task {one.task}" if one.task else "the result"
    told = f"last {local_time(one.last_at, seconds=False)} on {where} of {short_id(one.plan_id)}"
    line = Text(one.name, style="bold").append(f"  {counted(one.times, 'time')}", style="yellow")
    named = "" if one.name == one.command else f"  in {one.command}"
    return line.append(f"{named}  {told}", style="dim")


Per = Literal["plan", "loop", "run"]
_SHOWN: Final = 20
_HEADS: Final[Mapping[Per, tuple[str, ...]]] = {
    "plan": ("plan", "tasks", "attempts", "at once", "took", "agents", "cost", ""),
    "loop": ("loop", "plans", "tasks", "attempts", "at once", "took", "agents", "cost", ""),
    "run": ("run", "task", "attempt", "role", "took", "cost", ""),
}

_SPARE: Final = ("agents", "at once")
"""The columns that give way on a narrow terminal, the first one first."""


def metrics(
    plan: str | None = None,
    /,
    *,
    per: Per = "plan",
    last: int = services.MOST_PLANS,
    jsonl: bool = False,
    json: bool = False,
) -> int:
    """Show attempts, retries, time, cost and first-pass rate of this repository's plans (outside of one, of all).

    Parameters
    ----------
    plan
        Only this plan.
    per
        What a line is about: a plan, a loop (all plans of one source), or a run (one agent's or gate's process).
    last
        How many of the newest plans to include.
    jsonl
        Print one JSON document per plan, loop or run, each on a line.
    json
        Print one JSON document.
    """
    made = services.metrics(plan, last=last, with_runs=per == "run")
    found: Mapping[Per, Sequence[Any]] = {"plan": made.plans, "loop": made.loops, "run": made.runs}
    plans, whole = made.plans, made.together
    if jsonl:
        for one in found[per]:
            print_json(one, indent=None)
    elif json:
        print_json({f"{per}s": found[per], "together": whole})
    else:
        print_figures(console(), found[per], per, plans, whole)
    return ExitCode.VERIFIED


def print_figures(
    out: Console, found: Sequence[Any], per: Per, plans: Sequence[PlanFigures], whole: Figures
) -> None:
    """Print a table of plans, loops or runs, and what they took together."""
    if not plans:
        out.print("no plan was run here yet")
        return
    rows = [_HEADS[per], *(_row(one) for one in found[:_SHOWN])]
    spare = [_HEADS[per].index(one) for one in _SPARE if one in _HEADS[per]]
    out.print(Rows([tuple(map(Text, row)) for row in rows], spare=spare, cut=int(per == "run")))
    if len(found) > _SHOWN:
        out.print(f"and {len(found) - _SHOWN} more; --json has them all")
    for line in _told(plans, whole):
        out.print(Wrapped(Text(line), indent="  "))


def _row(one: PlanFigures | LoopFigures | RunFigures) -> tuple[str, ...]:
    if isinstance(one, RunFigures):
        return (
            short_id(one.run_id),
            one.task or "-",
            str(one.attempt or "-"),
            one.role,
            "-" if one.wall_seconds is None else duration(one.wall_seconds),
            _run_cost(one),
            one_line("  ".join(filter(None, (one.state, one.failure, one.agent, one.model))), 60),
        )
    figures = one.figures
    told = (
        f"{figures.completed}/{figures.tasks}",
        str(figures.begun),
        _rate(figures),
        "-" if one.wall_seconds is None else duration(one.wall_seconds),
        duration(figures.agent_seconds),
        _cost(figures),
    )
    if isinstance(one, LoopFigures):
        return short_id(one.loop_id), f"{one.verified}/{one.plans}", *told, one_line(one.loop, 60)
    return short_id(one.plan_id), *told, one_line(f"{standing(one)[0]}  {one.title}", 60)


def _run_cost(one: RunFigures) -> str:
    if one.agent is None:
        return "-"  # a gate costs nothing
    known = one.cost_micros is not None or one.ended_at is None
    return cost_in_words(one.cost_micros, complete=known, estimated=one.cost_estimated)


def _told(plans: Sequence[PlanFigures], whole: Figures) -> list[str]:
    broken = f" ({whole.broken_off} broken off)" if whole.broken_off else ""
    tries = (
        f"{counted(len(plans), 'plan')}: {counted(whole.completed, 'task')} of {whole.tasks} done, "
        f"{counted(whole.begun, 'attempt')}{broken} with {counted(whole.retries, 'retry', 'retries')}, "
        f"{_rate(whole)} of what ended landed at the first attempt"
    )
    took = (
        f"{counted(whole.agent_runs, 'agent run')} took {duration(whole.agent_seconds)}, "
        f"{counted(whole.gate_runs, 'gate run')} {duration(whole.gate_seconds)}; {_cost(whole)}"
    )
    told = [tries, took]
    if whole.cost_estimated:
        told.append(f"~ is estimated from tokens, with model prices of {services.PRICES_AS_OF}")
    if whole.flaky:
        named = ", ".join(f"{one.key} ({one.attempts})" for one in whole.flaky[:10])
        told.append(f"more than two attempts: {named}")
    return told


def _rate(figures: Figures) -> str:
    return "-" if figures.first_pass_rate is None else f"{figures.first_pass_rate:.0%}"


def _cost(figures: Figures) -> str:
    known = figures.cost_micros if figures.cost_micros or not figures.unknown_costs else None
    return cost_in_words(known, complete=not figures.unknown_costs, estimated=figures.cost_estimated)


# `stats agents`: the record of each agent and model.

_AGENT_HEADS: Final = (
    "agent",
    "task type",
    "tasks",
    "at once",
    "",
    "attempts",
    "refused",
    "caught",
    "runs",
    "cost",
)
_AGENT_SPARE: Final = (8, 6)
"""The columns that give way on a narrow terminal, the first one first."""


def agents(*, json: bool = False) -> int:
    """Show the record of each agent and model in this repository (outside of one, in all).

    `at once` counts tasks whose first attempt landed and stayed. `refused` counts attempts that the model refused.
    `caught` counts rejected attempts that manipulated a test run, or passed only with their own checks.

    Parameters
    ----------
    json
        Print it as JSON.
    """
    found = services.agents()
    if json:
        print_json({"agents": found})
    else:
        print_agents(console(), found)
    return ExitCode.VERIFIED


def print_agents(out: Console, found: Sequence[AgentRecord]) -> None:
    """Print the record of each agent, with a line for each type of task."""
    if not found:
        out.print("no agent was run here yet")
        return
    rows = [_AGENT_HEADS, *(row for one in found for row in _agent_rows(one))]
    out.print(Rows([tuple(map(Text, row)) for row in rows], spare=_AGENT_SPARE, cut=0))


def _agent_rows(one: AgentRecord) -> list[tuple[str, ...]]:
    known = one.cost_micros if one.cost_micros or not one.unknown_costs else None
    whole = (
        one_line(":".join(filter(None, (one.agent, one.model))), 40),
        "all",
        str(one.tasks),
        str(one.first_pass),
        "-" if one.first_pass_rate is None else f"{one.first_pass_rate:.0%}",
        str(one.attempts),
        str(one.refusals),
        str(one.caught_by_witness + one.caught_by_old_checks),
        str(one.runs),
        cost_in_words(known, complete=not one.unknown_costs, estimated=one.cost_estimated),
    )
    types = [
        (
            "",
            one_line(each.task_type, 20) or "none",
            str(each.tasks),
            str(each.first_pass),
            f"{each.first_pass_rate:.0%}",
            str(each.attempts),
            *[""] * 4,
        )
        for each in one.types
    ]
    return [whole, *types] if len(types) > 1 else [whole]


app = App(name="stats", help_format="plaintext")
app.default(metrics)
_HERE = "loopwright.cli.commands.watch"
app.command(
    f"{_HERE}.quota:app", name="quota", help="Show what is left of the agents' accounts, or reopen one."
)
app.command(agents, name="agents", help="Show the record of each agent and model.")
app.command(flaky, name="flaky", help="List checks that both passed and failed on the same tree.")
