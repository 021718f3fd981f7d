"""What a plan was started with, and how its complete gate ended: the part of its screen below the table."""

from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from loopwright.cli.screens.layout import Roomy, one_line
from loopwright.cli.shell.lines import local_time
from loopwright.core.values.findings import VerdictStatus
from loopwright.services.views.events import Plan
from loopwright.services.views.plans import PlanView
from loopwright.services.views.tasks import is_bad


def print_details(out: Console, row: Plan, view: PlanView) -> None:
    """Print the settings and the complete gate of a plan."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for name, value in _plan_facts(row, view):
        table.add_row(name, one_line(value))
    out.print(Roomy(table))
    _print_gates(out, row)


def _plan_facts(row: Plan, view: PlanView) -> list[tuple[str, str]]:
    policy = row.policy
    agent = " ".join(filter(None, (policy.agent, policy.model)))
    facts: list[tuple[str, Any]] = [
        ("project", view.path),
        (
            "agent",
            (
                f"{agent}, permission mode {policy.permission_mode}, {policy.parallel} at once, "
                f"{policy.max_attempts} attempts each"
            ),
        ),
        ("created", local_time(row.created_at)),
    ]
    if row.verified_at:
        facts.append(("verified", f"{local_time(row.verified_at)} as {(row.result_sha or '')[:10]}"))
    if policy.dependencies:
        facts.append(("dependencies", policy.dependencies))
    if policy.setup:
        facts.append(("setup", policy.setup))
    return facts


def _print_gates(out: Console, row: Plan) -> None:
    if row.verdict is None:
        names = ", ".join(gate.name for gate in row.gates)
        out.print(f"[dim]gate:all[/]  {escape(names) or 'only the acceptance of the tasks'}, not run yet")
        return
    passed = row.verdict.status is VerdictStatus.PASSED
    out.print(f"[dim]gate:all[/]  [{'green' if passed else 'red'}]{row.verdict.status.value}[/]")
    bad = [one for one in row.verdict.commands if one.refused]
    for one in bad[:3]:
        how = "ran out of time" if one.timed_out else f"exit code {one.exit_code}"
        out.print(f"  [red]✘[/] {escape(one.name)} ({how})")
        for line in one.tail.rstrip().splitlines()[-5:]:
            out.print("    " + escape(line), soft_wrap=True)
    if not bad:
        # Every command ended with 0, and was not believed.
        for check in list(filter(is_bad, row.verdict.checks))[:3]:
            out.print(f"  [red]✘[/] {escape(check.name)}", soft_wrap=True)
