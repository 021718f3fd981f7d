"""One question on the screen: what is asked, by which task, and what to type."""

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from loopwright.cli.shell.lines import Wrapped, local_time
from loopwright.core.values.ids import short_id
from loopwright.core.values.wording import counted, on_one_line, to_type, visible

if TYPE_CHECKING:  # `status` shows questions and answers none
    from loopwright.services.questions import QuestionView

_NAMED = 3


_SHOWN = 2_000


_SHOWN_LINES = 30
"""A question that is longer, in letters or in lines, is shown in part below its plan."""


_HINTED = "with a hint for its agent: 'retry: mind the cache'; nothing waits for your answer"


_DECIDES = "`'reject: …'` gives the next attempt your reason"


_DECIDES_PLAN = "accept: the plan is verified and its receipt names these checks; reject: the plan fails"


_BY_HAND = "or skip, or 'failed: WHY'; other tasks continue in the meantime"


_WIDER = "for this once; later runs too: --for loop (this plan file) or --for project"


def picture(view: "QuestionView", *, whole: bool = False, again: bool = False) -> Group:
    """Return a question as lines: what is asked, by which task, until when, and what to type.

    A long question is shown with its beginning and its end, unless `whole`. A question about a task that was given up
    is shown with what to type: the reason is beside the task. With `again`, only the first line of a long one is shown.
    """
    if again and "\n" in view.text:
        first = visible(view.text).partition("\n")[0]
        return Group(Wrapped(_head(view).append(f": {first}"), indent="  "))
    if not whole and view.state == "OPEN" and view.is_given_up:
        return Group(_briefly(view))
    parts = [Wrapped(_head(view), indent="  "), *_asked(visible(view.text), whole=whole)]
    for n, option in enumerate(view.options, 1):
        parts.append(Wrapped(Text(f"    {n}  {on_one_line(option)}"), indent="       "))
    if view.state == "OPEN":
        if view.default is not None:
            parts.append(Wrapped(Text(f"  {_by_default(view)}"), indent="  "))
        parts.append(Wrapped(Text(f"  {command(view)}", style="bold"), indent="    "))
        if view.kind == "permission":
            parts.append(Wrapped(Text(f"  {_WIDER}", style="dim"), indent="  "))
        if view.is_given_up:
            parts.append(Wrapped(Text(f"  {_HINTED}", style="dim"), indent="  "))
        if view.is_manual:
            parts.append(Wrapped(Text(f"  {_BY_HAND}", style="dim"), indent="  "))
        if view.is_contradiction:
            then = (
                f"if no worker is running, `{to_type('resume', short_id(view.plan_id))}` continues after that"
            )
            said = _DECIDES if view.tasks else _DECIDES_PLAN
            parts.append(Wrapped(Text(f"  {said}; {then}", style="dim"), indent="  "))
    else:
        said = f": {on_one_line(view.answer)}" if view.answer else ""
        parts.append(Wrapped(Text(f"  {view.state.lower()}{said}", style="dim"), indent="    "))
    return Group(*parts)


def _briefly(view: "QuestionView") -> Wrapped:
    said = _head(view).append(": ").append(command(view), style="bold")
    return Wrapped(said.append(', or "retry: a hint", "leave it", cancel'), indent="  ")


def _head(view: "QuestionView") -> Text:
    return Text("? ", style="yellow").append(short_id(view.id), style="bold").append(f"  {_asker(view)}")


def _asked(text: str, *, whole: bool) -> list[Wrapped]:
    """Return what is asked. Several lines have a bar in front, so that none looks like a line of Loopwright."""
    lines = text.split("\n")
    if not whole and (len(text) > _SHOWN or len(lines) > _SHOWN_LINES):
        head = "\n".join(lines[: _SHOWN_LINES // 2])[: _SHOWN // 2]
        tail = "\n".join(lines[-_SHOWN_LINES // 2 :])[-_SHOWN // 2 :]
        left_out = counted(len(text) - len(head) - len(tail), "letter")
        cut = f"[{left_out} left out here: `loopwright answer` shows all of it]"
        lines = [*head.split("\n"), cut, *tail.split("\n")]
    front = "  " if len(lines) == 1 else "  │ "
    return [Wrapped(Text(f"{front}{line}"), indent=front) for line in lines]


def _by_default(view: "QuestionView") -> str:
    """Return what happens if you do not answer."""
    default = on_one_line(view.default or "")
    other = "" if not view.options or view.default in view.options else " (none of the options)"
    if view.deadline is None and not view.is_given_up:
        return f"the agent would take: {default}{other}; it waits for your answer"
    return f"taken if you do not answer: {default}{other}"


def command(view: "QuestionView") -> str:
    """Return what to type to answer."""
    said = view.options[0] if view.options else "..."
    return to_type("answer", short_id(view.id), on_one_line(said))


def _asker(view: "QuestionView") -> str:
    named = ", ".join(view.tasks[:_NAMED])
    more = f" and {counted(len(view.tasks) - _NAMED, 'more task')}" if len(view.tasks) > _NAMED else ""
    if view.is_about_budget:
        end = (
            f"; it continues by itself at {local_time(view.deadline, seconds=False)}" if view.deadline else ""
        )
        return f"budget of {short_id(view.plan_id)}{end if view.state == 'OPEN' else ''}"
    if view.is_contradiction and not view.tasks:
        return f"{view.kind} in the result of {short_id(view.plan_id)}"
    until = (
        f", until {local_time(view.deadline, seconds=False)}"
        if view.deadline and view.state == "OPEN"
        else ""
    )
    if view.is_manual:
        return f"manual step {named or 'that is gone'}"
    if view.is_given_up:
        return f"given up: {named or 'a task that is gone'}"
    return f"{view.kind} asked by {named or 'a task that is gone'}{more}{until}"
