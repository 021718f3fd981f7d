"""`stats quota`: the remaining quota of agents' accounts, and how to reopen one."""

import asyncio

from cyclopts import App
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from loopwright.cli.screens.layout import Rows
from loopwright.cli.screens.plan_table import cost_in_words
from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.lines import Wrapped, in_local_time, local_time
from loopwright.cli.shell.output import console, print_json
from loopwright.core.values.ids import short_id
from loopwright.core.values.states import EnvelopeState
from loopwright.core.values.wording import counted, money
from loopwright.services.quota import Drew, Envelope, accounts, drawn, label, standing, window_in_words

app = App(name="quota", help_format="plaintext")


@app.default
def quota(*, json: bool = False) -> int:
    """Show every account that agents used: whether it is open, and how much of its limits is left.

    Parameters
    ----------
    json
        Print them as JSON.
    """
    found = accounts()
    if json:
        print_json({"envelopes": found.used, "unused": found.unused})
        return ExitCode.VERIFIED
    out = console()
    if not found.used and not found.unused:
        out.print("no agent has used an account yet")
    for one in found.used:
        print_account(out, one, "" if found.is_known(one) else "  not in your settings")
    for name in found.unused:
        out.print(Text(name, style="bold").append("  not used yet", style="dim"))
    return ExitCode.VERIFIED


@app.command
def show(name: str, /, *, json: bool = False) -> int:
    """Show the cost of an account and its runs, the newest first.

    Parameters
    ----------
    name
        The agent whose account it is; `AGENT/ACCOUNT` for one of several, `AGENT:MODEL` for a limit of one model.
    json
        Print it as JSON.
    """
    found = drawn(name)
    if json:
        print_json({"drawn": found})
        return ExitCode.VERIFIED
    out = console()
    for one in found:
        print_account(out, one.envelope)
        cost = cost_in_words(one.cost_micros, complete=one.cost_complete, estimated=one.cost_estimated)
        out.print(f"  {cost} in all, {money(one.today_micros, estimated=one.cost_estimated)} today")
        out.print(Rows([_run(run) for run in one.runs], spare=(1, 4, 3), cut=2, right=(5,)))
        if one.envelope.runs > len(one.runs):
            out.print(f"  and {one.envelope.runs - len(one.runs)} before", style="dim")
    return ExitCode.VERIFIED


def _run(run: Drew) -> tuple[Text, ...]:
    began = local_time(run.started_at, seconds=False) if run.started_at else ""
    cost = money(run.cost_micros, estimated=run.cost_estimated)
    return (
        Text(f"  {short_id(run.id)}", style="bold"),
        Text(began, style="dim"),
        Text(run.task or short_id(run.plan_id)),
        Text(run.role),
        Text(run.model or ""),
        Text(cost),
        Text((run.failure or run.state.lower()).replace("_", " ")),
    )


@app.command(name="open")
def open_(name: str, /, *, json: bool = False) -> int:
    """Reopen an account: the tasks that wait for it continue.

    Parameters
    ----------
    name
        The agent whose account it is; `AGENT/ACCOUNT` where it has several, `AGENT:MODEL` for a limit of one model.
    json
        Print the result as JSON.
    """
    return asyncio.run(_open(name, as_json=json))


async def _open(name: str, *, as_json: bool) -> int:
    # Showing quotas loads neither the settings nor a worker's parts.
    from loopwright.services.control.decisions import open_account
    from loopwright.services.homes.session import session

    async with session() as at:
        answer = await open_account(at, name)
    if as_json:
        print_json({"command": answer, "exit_code": 0})
    else:
        console().print(escape(answer.result))
    return ExitCode.VERIFIED


# A command can be listed or hidden, not both: the hidden name is a separate command.
alias = App(name="quota", help_format="plaintext")
alias.default(quota)
alias.command(show)
alias.command(open_, name="open")


def print_account(out: Console, envelope: Envelope, more: str = "") -> None:
    """Print one account: whether it is open, and what is left of it."""
    closed = envelope.state is EnvelopeState.CLOSED
    head = Text(label(envelope), style="bold").append(
        f"  {in_local_time(standing(envelope))}", style="yellow" if closed else "green"
    )
    # A limit of one model is drawn from by runs that the account's own line counts.
    runs = "" if envelope.models else f"  ({counted(envelope.runs, 'run')})"
    out.print(Wrapped(head.append(f"{runs}{more}", style="dim"), indent="  "))
    if closed and envelope.reason:
        out.print(Wrapped(Text(f"  it said: {envelope.reason}"), indent="  "))
    for window in envelope.windows:
        out.print(f"  {escape(in_local_time(window_in_words(window, closed=closed)))}")
