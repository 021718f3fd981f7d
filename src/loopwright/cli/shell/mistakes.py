"""How an error or a mistyped command is told: what is wrong, each problem on its own line, and what to type instead."""

import difflib
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from cyclopts import App
from cyclopts.exceptions import (
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    UnknownCommandError,
    UnusedCliTokensError,
)
from rich.markup import escape

from loopwright.cli.shell.command_table import COMMANDS, build
from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.lines import columns
from loopwright.cli.shell.output import complain, console, paragraph, print_json
from loopwright.core.values.errors import Ambiguous, BadConfig, BadPlan, Held, LoopwrightError, UserError
from loopwright.core.values.wording import counted, duration, to_type

# Messages about a mistyped command: what it needs, and an example.

_EXAMPLES: Final = {
    ("reject", "--at"): 'a FILE:LINE and a text, such as --at app.py:12 "this must not be public"',
}
_EVERYWHERE: Final = "`loopwright --help` lists the commands, and each takes --help"
_KINDS: Final = {int: "a whole number", float: "a number"}
_FOUND: Final = {
    "TASK": "`loopwright status` names the tasks",
    "PLAN": "`loopwright status` names the plans",
    "TARGET": "`loopwright status` names the plans and their tasks",
    "QUESTION": "`loopwright answer` lists what is asked",
    "WORK": "`loopwright discovered` lists what agents found",
}
"""Where to find what is missing."""
_OF_FILES: Final = frozenset({"run", "plan check"})
_NEAR: Final = 0.72
"""So alike is a word that lacks a letter, or has two of them the wrong way round, to what was meant."""
_FILE: Final = "it is a file with tasks, such as plan.yaml"


def told(mistake: CycloptsError) -> tuple[str, str]:
    """Return what is wrong, and what to do about it."""
    chain = " ".join(mistake.command_chain or ())
    help_ = f"`{to_type(*chain.split(), help=True)}` shows what it takes" if chain else _EVERYWHERE
    argument = mistake.argument
    match mistake:
        case MissingArgumentError() if argument is not None:
            name = mistake.keyword or argument.name
            if not name.startswith("-"):
                where = _FILE if chain in _OF_FILES else _FOUND.get(name, "")
                return f"`{chain}` needs {_article(name)}", "; ".join(filter(None, (where, help_)))
            needs = _EXAMPLES.get((chain, name), "a value")
            return f"`{chain} {name}` needs {needs}", help_
        case UnusedCliTokensError():
            extra = ", ".join(repr(one) for one in mistake.unused_tokens or ())
            return f"`{chain}` has no use for {extra}{_meant(mistake)}", help_
        case CoercionError() if argument is not None and mistake.token is not None:
            kind = _KINDS.get(mistake.target_type) if mistake.target_type else None
            if kind is not None:
                name = mistake.token.keyword or argument.name
                return f"{name} needs {kind}, not {mistake.token.value!r}", help_
        case UnknownCommandError() if mistake.unused_tokens:
            typed = mistake.unused_tokens[0]
            near = nearest(typed, _below(chain) if chain else COMMANDS)
            whole = " ".join(filter(None, (chain, typed)))
            meant = f": did you mean `{' '.join(filter(None, (chain, near)))}`?" if near else ""
            return f"there is no command {whole!r}{meant}", help_
    return str(mistake).strip(), help_


def nearest(typed: str, names: Iterable[str]) -> str:
    """Return the name that was probably meant; empty if none is near."""
    known = list(names)
    near = [one for one in known if len(typed) > 1 and one.startswith(typed)]
    return next(iter(near or difflib.get_close_matches(typed, known, n=1, cutoff=_NEAR)), "")


def _below(chain: str) -> list[str]:
    """Return the commands below a command."""
    app: App = build()
    for one in chain.split():
        app = app[one]
    return [name for name in app if not name.startswith("-")]


def _meant(mistake: CycloptsError) -> str:
    """Guess the command below a command whose mistyped name was taken for an argument."""
    chain = mistake.command_chain or ()
    rest = [one for one in (mistake.root_input_tokens or ())[len(chain) :] if not one.startswith("-")]
    near = nearest(rest[0], _below(" ".join(chain))) if rest else ""
    return f": did you mean `{' '.join((*chain, near))}`?" if near else ""


def _article(name: str) -> str:
    return f"{'an' if name[0] in 'AEIO' else 'a'} {name}"


_SHOWN = 8
_FIX = "fix what is named; `loopwright plan check FILE` checks it again"
_SCHEMAS: Mapping[str, str] = {
    "spec": "plan",
    "yaml": "plan",
    "beads": "beads",
    "feature_list": "feature_list",
    "test_state": "test_state",
}
"""Sources that have a published schema; the words of the others are in the documentation."""
_FILES: Mapping[str, Mapping[str, str]] = {
    "orchestrator": {"state.json": "orchestrator_state", "roadmap-view.json": "roadmap_view"},
    "plan_md": {"metadata.json": "track"},
    "test_state": {"config.json": "test_state_config"},
}
"""Files of a source that have their own schema."""


def explain(known: LoopwrightError, arguments: Sequence[str], *, as_json: bool) -> int:
    """Print an error that was raised on purpose, as text or as JSON; return the exit code."""
    match known:
        case Ambiguous():
            return _unclear(known, arguments, as_json=as_json)
        case BadPlan(problems=(one,)) if not one.startswith(known.source):
            # About the file as a whole.
            return _listed(known, str(known), (), hint=known.hint or _way_out(known), as_json=as_json)
        case BadPlan():
            message = f"{known.source} cannot be run: {counted(len(known.problems), 'problem')}"
            return _listed(known, message, known.problems, hint=_way_out(known), as_json=as_json)
        case BadConfig() if "\n" in str(known):
            problems = tuple(str(known).splitlines())
            message = f"the settings cannot be used: {counted(len(problems), 'problem')}"
            return _listed(known, message, problems, hint=known.hint or "", as_json=as_json)
        case Held():
            return complain(str(known), hint=known.hint, code=ExitCode.HELD, as_json=as_json, kind=known.code)
        case UserError():
            code = ExitCode.USER_ERROR
            return complain(str(known), hint=known.hint, code=code, as_json=as_json, kind=known.code)
        case _:
            hint = getattr(known, "hint", None)
            return complain(
                str(known), hint=hint, code=ExitCode.ENVIRONMENT, as_json=as_json, kind=known.code
            )


def _way_out(known: BadPlan) -> str:
    """Return what to do about a source; one with a schema can be checked against it."""
    own, usual = _FILES.get(known.kind, {}), _SCHEMAS.get(known.kind)
    named = [one.partition(":")[0].rpartition("/")[2] for one in known.problems]
    schemas = dict.fromkeys(filter(None, (own.get(name, usual) for name in named)))
    commands = " and ".join(f"`{to_type('config', 'schema', one)}`" for one in schemas)
    verb = "print" if len(schemas) > 1 else "prints"
    return f"{_FIX}, and {commands} {verb} what it may contain" if commands else _FIX


def _listed(known: UserError, message: str, problems: Sequence[str], *, hint: str, as_json: bool) -> int:
    more: Mapping[str, Any] = {"problems": known.problems if isinstance(known, BadPlan) else problems}
    lines = [f"  {problem}" for problem in problems]
    return _told(known, message, lines, hint, more, as_json=as_json)


def _unclear(known: Ambiguous, arguments: Sequence[str], *, as_json: bool) -> int:
    """Print what a name could mean, with the command for the likeliest of them."""
    rows = [
        (one.handle, one.state.lower(), f"{duration(one.changed_s)} ago", one.title)
        for one in known.choices[:_SHOWN]
    ]
    lines = columns(rows)
    if len(known.choices) > _SHOWN:
        lines.append(f"  and {len(known.choices) - _SHOWN} more")
    meant = [known.choices[0].handle if one == known.text else one for one in arguments]
    hint = f"say which one, for example: {shlex.join(['loopwright', *meant])}"
    message = f"{known.text!r} could be any of {len(known.choices)}"
    return _told(known, message, lines, hint, {"choices": known.choices}, as_json=as_json)


def _told(
    known: UserError,
    message: str,
    lines: Sequence[str],
    hint: str,
    more: Mapping[str, Any],
    *,
    as_json: bool,
) -> int:
    code = ExitCode.USER_ERROR
    if as_json:
        error = {"code": known.code, "message": str(known), "hint": hint, **more}
        print_json({"error": error, "exit_code": int(code)})
        return code
    out = console(stderr=True)
    out.print(paragraph(f"[bold red]error[/]: {escape(message)}"))
    for line in lines:
        out.print(paragraph(escape(line), indent="    "))
    if hint:
        out.print(paragraph(f"[bold]to do[/]: {escape(hint)}"))
    return code
