"""`metrics`: how well the plans of a project went."""

import json as jsonlib
import sys

from rich.text import Text

from loopwright.cli.exits import ExitCode
from loopwright.cli.lines import columns, counted, one_line
from loopwright.cli.looking import find_target, glancing, project_here
from loopwright.cli.output import console, duration, print_json
from loopwright.cli.rows import Wrapped
from loopwright.cli.table import cost_in_words, standing
from loopwright.core.documents import document
from loopwright.core.errors import NotFound
from loopwright.core.ids import short_id
from loopwright.core.model import Plan
from loopwright.engine.metrics import Figures, PlanFigures, plan_figures, together
from loopwright.engine.views import recent_plans
from loopwright.ports import Tx

_SHOWN = 20


def metrics(plan: str | None = None, /, *, last: int = 1000, jsonl: bool = False, json: bool = False) -> int:
    """Show attempts, retries, time, cost and first-pass rate of this repository's plans (outside of one, of all).

    Parameters
    ----------
    plan
        Only this plan.
    last
        How many plans to look at, from the newest.
    jsonl
        Print one JSON document per plan, each on a line.
    json
        Print one JSON document.
    """
    with glancing() as look:
        found = look.store.read_sync(lambda tx: [plan_figures(tx, one) for one in _plans(tx, plan, last)])
    whole = together(found)
    if jsonl:
        for one in found:
            sys.stdout.write(jsonlib.dumps(document(one), ensure_ascii=False) + "\n")
    elif json:
        print_json({"plans": found, "together": whole})
    else:
        _print(found, whole)
    return ExitCode.VERIFIED


def _plans(tx: Tx, name: str | None, last: int) -> list[Plan]:
    if name is None:
        return list(recent_plans(tx, project_path=project_here(), limit=last))
    found = find_target(tx, name)
    plan = found if isinstance(found, Plan) else tx.get(Plan, found.plan_id)
    if plan is None:
        raise NotFound(f"there is no plan {name}")
    return [plan]


def _print(plans: list[PlanFigures], whole: Figures) -> None:
    out = console()
    if not plans:
        out.print("no plan was run here yet")
        return
    rows: list[tuple[str, ...]] = [("plan", "tasks", "attempts", "at once", "agents", "cost", "")]
    rows += [_row(one) for one in plans[:_SHOWN]]
    for line in columns(rows):
        out.print(Wrapped(Text(line), indent="    "))
    if len(plans) > _SHOWN:
        out.print(f"and {counted(len(plans) - _SHOWN, 'older plan')}; --json has them all")
    for line in _told(plans, whole):
        out.print(Wrapped(Text(line), indent="  "))


def _row(one: PlanFigures) -> tuple[str, ...]:
    figures = one.figures
    return (
        short_id(one.plan_id),
        f"{figures.completed}/{figures.tasks}",
        str(figures.begun),
        _rate(figures),
        duration(figures.agent_seconds),
        _cost(figures),
        one_line(f"{standing(one)[0]}  {one.title}", 60),
    )


def _told(plans: list[PlanFigures], whole: Figures) -> list[str]:
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
    if whole.flaky:
        named = ", ".join(f"{one.key} ({one.attempts})" for one in whole.flaky[:10])
        told.append(f"more than two attempts: {named}")
    return told


def _rate(figures: Figures) -> str:
    return "-" if figures.first_pass_rate is None else f"{figures.first_pass_rate:.0%}"


def _cost(figures: Figures) -> str:
    known = figures.cost_micros if figures.cost_micros or not figures.unknown_costs else None
    return cost_in_words(known, complete=not figures.unknown_costs, estimated=figures.cost_estimated)
