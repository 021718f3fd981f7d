"""Messages about a mistyped command: what it needs, and an example."""

import difflib
from collections.abc import Iterable
from typing import Final

from cyclopts import App
from cyclopts.exceptions import (
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    UnknownCommandError,
    UnusedCliTokensError,
)

from loopwright.cli.shell.command_table import COMMANDS, build
from loopwright.core.values.shell_hints import to_type

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
