"""`config`: every setting with its origin, whether all are good, and the published schemas."""

from typing import Annotated, Final, Literal

from cyclopts import App, Parameter
from rich.markup import escape
from rich.text import Text

from loopwright.cli.shell.lines import Wrapped, columns
from loopwright.cli.shell.output import console, print_json
from loopwright.cli.shell.parameters import SettingsFile
from loopwright.config.publish import toml_value
from loopwright.config.resolve import DEFAULT_ORIGIN
from loopwright.core.values.wording import listed
from loopwright.services.settings import check_settings, show_settings

app = App(name="config", help="Show every setting with its origin.", help_format="plaintext")

_WIDEST: Final = 24
_EMPTY: Final[tuple[object, ...]] = ("", [], None)


@app.command
def show(*, settings_file: SettingsFile = None, json: bool = False) -> int:
    """Show every setting in force here, and where each value comes from.

    Parameters
    ----------
    settings_file
        Read the project's settings from this file instead of the commit's loopwright.toml.
    json
        Print one JSON document, with what each setting means.
    """
    found = show_settings(settings_file)
    shown, notes = found.settings, found.notes
    if json:
        print_json({"settings": shown, "notes": notes})
        return 0
    rows = [
        (one.key, "(empty)" if one.value in _EMPTY else toml_value(one.value), one.origin) for one in shown
    ]
    out = console()
    # A path may be of any length: it pushes nothing but its own origin aside.
    for one, line in zip(shown, columns(rows, most=_WIDEST), strict=True):
        style = "dim" if one.origin == DEFAULT_ORIGIN else "bold"
        out.print(Wrapped(Text(line, style=style), indent="      "))
    for note in notes:
        out.print(f"[yellow]note[/]: {escape(note)}")
    return 0


@app.command
def check(*, settings_file: SettingsFile = None, json: bool = False) -> int:
    """Check every setting in force here, and the options of agents. Nothing starts.

    Parameters
    ----------
    settings_file
        Read the project's settings from this file instead of the commit's loopwright.toml.
    json
        Print one JSON document.
    """
    checked = check_settings(settings_file)
    if json:
        print_json({"ok": True, "set_by": checked.set_by, "notes": checked.notes})
    else:
        for note in checked.notes:
            console().print(f"[yellow]note[/]: {escape(note)}")
        places = listed(checked.set_by, 9) or "defaults alone"
        console().print(f"[green]ok[/]: every setting is valid; set by {escape(places)}")
    return 0


@app.command
def schema(
    what: Annotated[
        Literal[
            "config",
            "plan",
            "user",
            "beads",
            "evaluation",
            "feature_list",
            "loop_config",
            "loop_health",
            "loop_registry",
            "orchestrator_closeout",
            "orchestrator_retry",
            "orchestrator_review",
            "orchestrator_round_plan",
            "orchestrator_selection",
            "orchestrator_state",
            "orchestrator_update",
            "packet",
            "planner",
            "qa_full",
            "qa_lite",
            "receipt",
            "review",
            "roadmap_view",
            "template",
            "test_state",
            "test_state_config",
            "test_state_health",
            "track",
        ],
        Parameter(show_default=True),
    ] = "config",
    /,
) -> int:
    """Print a published JSON Schema, for editors and other programs.

    Parameters
    ----------
    what
        config: loopwright.toml; plan: a plan file; user: your own config.toml; planner, evaluation, review, qa_full,
        qa_lite: what agents answer; packet: an inspection packet; receipt: a receipt; the others: files of work
        sources, loops and templates.
    """
    # The schemas take long to load, and `config show` needs none of them.
    from loopwright.services.settings import published_schema

    print_json(published_schema(what))
    return 0
