"""`logs`: what an agent, a gate or a setup printed, afterwards or while it runs."""

import json as jsonlib
import sys
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import Parameter
from rich.text import Text

from loopwright.adapters.machine.disk import forgotten_since
from loopwright.adapters.machine.host import host_id
from loopwright.adapters.processes.keeper_files import OutputReader
from loopwright.cli.screens.transcript import Transcript, readable_lines
from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.output import console
from loopwright.core.rows.model import Role, Run
from loopwright.core.values.ids import short_id
from loopwright.core.values.states import PROCESS_OVER
from loopwright.core.values.wording import duration, money
from loopwright.ports import OutputLine
from loopwright.services.homes.read_only_home import Look, glancing, looking, wanted
from loopwright.services.recordings.log_runs import NAMES, Chosen, RoleName, Wish, choose, nothing

if TYPE_CHECKING:
    from loopwright.adapters.processes.keepers import ProcessKeepers

_LOOK_S: Final = 1.0


def logs(
    target: str | None = None,
    /,
    *,
    follow: Annotated[bool, Parameter(alias="-f")] = False,
    raw: bool = False,
    role: RoleName | None = None,
    attempt: int | None = None,
    json: bool = False,
) -> int:
    """Show what an agent, a gate or a setup printed.

    Parameters
    ----------
    target
        A run, a task (the runs of its newest attempt) or a plan (its verification); default: the task that
        needs you, else the one that is running, else what ran last.
    follow
        Stay, and print what comes until the target is finished.
    raw
        Print the lines exactly as they were recorded.
    role
        Only runs of this kind.
    attempt
        Which attempt at the task (default: the newest that has run).
    json
        Print one JSON document per line for each event, or with --raw for each line.
    """
    with looking() if follow else glancing() as look:
        # Once, by id: while following, a newer plan may have a task of the same name.
        found = look.store.read_sync(lambda tx: wanted(tx, target, with_output=True))
        wish = Wish(target=found.id, role=role, attempt=attempt)
        chosen = look.store.read_sync(lambda tx: choose(tx, wish))
        if not chosen.runs and not (follow and chosen.more):
            raise look.store.read_sync(lambda tx: nothing(tx, wish))
        printer = _Printer(look, raw=raw, as_json=json, following=follow)
        if follow:
            import asyncio  # only following waits for anything

            asyncio.run(_follow(look, wish, printer))
            return ExitCode.VERIFIED
        for run in chosen.runs:
            printer.head(run, chosen)
            for line in OutputReader(look.paths.run(run.id), 0).all():
                printer.line(line)
            printer.end(run)
        printer.close(chosen)
    return ExitCode.VERIFIED


async def _follow(look: Look[Any], wish: Wish, printer: "_Printer") -> None:
    """Print run after run as they come, until nothing more will."""
    from loopwright.adapters.processes.keepers import ProcessKeepers

    keepers, printed = ProcessKeepers(), set[str]()
    while True:
        chosen = await look.store.read(lambda tx: choose(tx, wish, since=frozenset(printed)))
        new = [run for run in chosen.runs if run.id not in printed]
        for run in new:
            directory = look.paths.run(run.id)
            printer.head(run, chosen)
            await _until_started(look, keepers, run)
            async for line in keepers.follow(directory):
                printer.line(line)
            printed.add(run.id)
            printer.end(await _settled(look, run))
        if not new:
            if not chosen.more:
                printer.close(chosen)
                return
            await look.store.changed(_LOOK_S)


async def _until_started(look: Look[Any], keepers: "ProcessKeepers", run: Run) -> None:
    """A run's row is written before its process is there."""
    while keepers.look(look.paths.run(run.id)).state == "absent":
        row = await look.store.read(lambda tx: tx.get(Run, run.id))
        if row is None or row.state in PROCESS_OVER or run.host_id not in (None, host_id(look.root)):
            return
        await look.store.changed(_LOOK_S)


async def _settled(look: Look[Any], run: Run) -> Run:
    """Give the worker a moment to write down how a run ended that has just ended."""
    row: Run | None = run
    for _ in range(3):
        row = await look.store.read(lambda tx: tx.get(Run, run.id))
        if row is None or row.state in PROCESS_OVER:
            break
        await look.store.changed(_LOOK_S)
    return row or run


# --- printing --------------------------------------------------------------------------------------


class _Printer:
    """Prints one run after the other; what is only about a run, not of it, is dim and never in `--raw`."""

    def __init__(self, look: Look[Any], *, raw: bool, as_json: bool, following: bool) -> None:
        self._look = look
        self._console = console()
        self._raw = raw
        self._json = as_json
        self._following = following
        self._run: Run | None = None
        self._transcript: Transcript | None = None
        self._lines = 0

    def head(self, run: Run, chosen: Chosen) -> None:
        """Begin a run."""
        self._run, self._transcript, self._lines = run, Transcript(run), 0
        who = " ".join(filter(None, (NAMES[run.role], run.agent, run.model)))
        attempt = chosen.attempts.get(run.id)
        tries = f"  attempt {attempt}" if attempt else ""
        if run.id in chosen.reused:
            self._about("── the gate was not run again: exactly this tree was judged before")
            tries = f"  {chosen.reused[run.id]}, used again"
        why = ": what the checks say without this work" if run.role is Role.BASELINE else ""
        self._about(f"── {who}{tries}  {short_id(run.id)}{why}")

    def line(self, line: OutputLine) -> None:
        """Print one recorded line."""
        assert self._run is not None
        assert self._transcript is not None
        self._lines += 1
        if self._raw:
            if self._json:
                about = {"offset": line.offset, "stream": line.stream, "text": line.text}
                self._document({"run": self._run.id, **about})
            else:
                self._plain(line.text)
            return
        for shown in self._transcript.take(line):
            if self._json:
                about = {"run": self._run.id, "role": NAMES[self._run.role]}
                self._document({**about, "kind": shown.kind, "text": shown.text, "data": shown.data})
                continue
            for text, style in readable_lines(shown):
                self._styled(text, style)

    def end(self, run: Run) -> None:
        """End a run: say how it ended, or why there is nothing of it."""
        if not self._lines and not self._look.paths.run(run.id).is_dir():
            elsewhere = run.host_id not in (None, host_id(self._look.root))
            where = "it ran on another machine" if elsewhere else "its files are gone"
            self._about(f"   nothing to show: {where}")
            return
        if since := forgotten_since(self._look.paths.run(run.id)):
            self._about(f"   its recording is no longer kept since {since} (disk.keep_recordings)")
        if run.state not in PROCESS_OVER:
            hint = "" if self._following else "; --follow waits for the rest"
            self._about(f"── still running{hint}")
            return
        lasted = (run.ended_at - run.started_at).total_seconds() if run.ended_at and run.started_at else None
        parts = (
            run.verdict.status.value if run.verdict else run.state.value.lower().replace("_", " "),
            (run.failure.value.replace("_", " ") if run.failure else ""),
            f"exit code {run.exit_code}" if run.exit_code is not None else "",
            duration(lasted),
            money(run.cost_micros, estimated=run.cost_estimated) if run.cost_micros is not None else "",
        )
        self._about("── " + "  ".join(part for part in parts if part))

    def close(self, chosen: Chosen) -> None:
        """Say last what became of the task, whatever its runs printed."""
        if chosen.became:
            self._about(f"── {chosen.became}")

    def _about(self, text: str) -> None:
        if not self._raw and not self._json:
            self._styled(text, "dim")

    def _styled(self, text: str, style: str) -> None:
        if style and self._console.is_terminal:
            self._console.print(Text(text, style=style))
        else:
            self._plain(text)

    def _plain(self, text: str) -> None:
        sys.stdout.write(text + "\n")
        if self._following:
            sys.stdout.flush()

    def _document(self, value: dict[str, Any]) -> None:
        self._plain(jsonlib.dumps(value, ensure_ascii=False, default=str))
