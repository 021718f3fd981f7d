"""`run orchestrator`: the rounds of an orchestrator folder on this terminal."""

from rich.markup import escape

from loopwright.cli.foreground import showing
from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.output import console, print_json
from loopwright.core.values.ids import short_id
from loopwright.core.values.wording import to_type
from loopwright.services.orchestrator.running import Ending, RoundsEnded, run_rounds
from loopwright.services.runs.preparation import RunRequest


async def carry_out(request: RunRequest, *, detach: bool, as_json: bool) -> int:
    """Drive the rounds of a folder, and print how they ended."""
    if detach:
        return await _detached(request, as_json=as_json)
    lines: list[str] = []

    def tell(line: str) -> None:
        lines.append(line)
        if not as_json:
            console().print(f"[dim]… {escape(line)}[/]")

    ended = await run_rounds(request, tell=tell, drive=showing(quiet=as_json))
    code = _code(ended)
    if as_json:
        found = ended.ended
        print_json(
            {
                "ending": found.ending,
                "reason": found.reason,
                "merged": found.merged,
                "plan": found.plan_id or None,
                "told": lines,
                "exit_code": int(code),
            }
        )
        return code
    for line in _said(ended):
        console().print(escape(line))
    return code


async def _detached(request: RunRequest, *, as_json: bool) -> int:
    # Only this needs what the daemon needs.
    from loopwright.services.remote.rounds import leave_to_daemon

    loop = await leave_to_daemon(request)
    if as_json:
        print_json({"loop": loop.id, "state": loop.state, "exit_code": int(ExitCode.VERIFIED)})
    else:
        console().print(escape(f"The daemon drives the rounds of {loop.source_path}."))
        console().print(escape(f"follow them:  {to_type('open')}"))
    return ExitCode.VERIFIED


def _code(ended: RoundsEnded) -> ExitCode:
    if ended.ended.ending is not Ending.TERMINAL:
        return ExitCode.UNFINISHED
    return ExitCode.VERIFIED if ended.is_gated else ExitCode.UNVERIFIED


def _said(ended: RoundsEnded) -> list[str]:
    found = ended.ended
    merged = [f"merged: {', '.join(found.merged)}"] if found.merged else []
    match found.ending:
        case Ending.TERMINAL:
            gap = [] if ended.is_gated else ["No check of the project judged the rounds."]
            return ["The roadmap is done.", *merged, *gap]
        case Ending.BLOCKED:
            return [
                f"The controller is blocked: {found.reason}",
                *merged,
                "It is in orchestrator/state.json, resume_errors.controller.",
                f"to do: fix that, then {to_type('run', 'orchestrator')}",
            ]
    paused = f"; its stage is plan {short_id(found.plan_id)}" if found.plan_id else ""
    return [f"Interrupted{paused}.", *merged, f"continue:  {to_type('run', 'orchestrator')}"]
