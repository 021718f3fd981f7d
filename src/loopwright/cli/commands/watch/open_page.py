"""`open`: the dashboard in a browser."""

import json as jsonlib
import sys
import webbrowser

from rich.markup import escape

from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.output import console
from loopwright.services.daemon.links import login_link
from loopwright.services.homes.context import settings_for


def open_page(page: str | None = None, *, show: bool = False, json: bool = False) -> int:
    """Open the page of the current project in your browser, signed in.

    Parameters
    ----------
    page
        Another page, such as `/questions` or `/plans/plan_...`.
    show
        Print the link and open nothing. It works once, within two minutes.
    json
        Print the link as JSON and open nothing.
    """
    link = login_link(settings_for().home, page)
    if json:
        sys.stdout.write(jsonlib.dumps({"url": link}) + "\n")
    elif show or not webbrowser.open(link):
        console().print(escape(link), soft_wrap=True)
    return ExitCode.VERIFIED
