"""The page `docs/reference/worth.md`, made from what was played. Pure: values in, text out."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from bench.worth.assumptions import known
from bench.worth.ways import Result
from loopwright.core.healing.lessons import ERROR, EVERY, LEAST, MOST
from loopwright.core.healing.steps import MOST_IN_VAIN, REMEMBERED

INTRODUCTION: Final = """# Simulated worth

This page compares ways of working in a simulation. It proves bounds, not worth: no model took part.
Your own runs show what a mechanism is worth to you; Loopwright measures
[lessons](../how-to/teach-agents.md) and [healing steps](../how-to/heal-failed-tasks.md) there.

The agents are stochastic. The decisions are the product's own functions: retry, landing, diagnosis,
healing, fallback and lessons. All ways get the same tasks. Baselines: one plain agent that is believed,
and a Ralph loop that starts its agent again in the same folder, at most ten times.

```console
make worth          # a quick look
make worth DOCS=1   # play everything, and write this page
```
"""
_WAYS: Final = """## Ways of working

{tasks} tasks each. Right: done, and truly done. False done: share of the tasks called done that are not.
The rest waits for a person. Per hour: one agent at a time. Differences below {noise:.1%} may be chance.
"""
_LESSONS: Final = f"""## What switches itself off

A lesson on trial is judged every {EVERY} tasks. Without a gain it is removed from {LEAST} tasks on, at the
latest after {MOST}; half of these go without it. The chance to keep a useless one is at most {ERROR:.0%}.
"""
_STEPS: Final = f"""A healing step is left out after {MOST_IN_VAIN} tries within {REMEMBERED.days} days that healed
nothing.
"""
_NO_SWITCH: Final = """Nothing switches these off by measurement: retries, evidence, clean base, gates, held-out
checks, reviewer, fallback. You do, by their settings; `max_attempts`, cost limits and `review.max_share` bound
what they cost. Evidence, clean base and gates have no setting: their rows only show what they are for.
"""
_ASSUMPTIONS: Final = """## Assumptions

The values are in `bench/worth/assumptions.json`; none was chosen by its outcome. Thunderdome
(signalnine/thunderdome) has 6,097 scored trials of coding agents. An empty source means that none
was found. Each assumption was varied to both ends of its range, the others unchanged.

The last columns have ratios at the value, the low and the high end. False done: defaults, and everything,
against one plain agent; below 1 is better. Right per $: the same against the Ralph loop until the checks pass;
above 1 is better.
"""


def rendered(document: Mapping[str, Any]) -> str:
    """Return the page."""
    parts = [
        INTRODUCTION,
        _WAYS.format(tasks=document["tasks"], noise=_noise(document)),
        _ways(document["ways"]),
        _LESSONS,
        _switches(document["lessons"], "true lift", "{:+.0f} pp"),
        _STEPS,
        _switches(document["steps"], "tasks truly healed", "{:.0%}"),
        _NO_SWITCH,
        _ASSUMPTIONS,
        _assumptions(document),
    ]
    return "\n".join(parts)


def _noise(document: Mapping[str, Any]) -> float:
    """Return what two standard errors of a share of 90 % are."""
    return float(2 * (0.9 * 0.1 / document["tasks"]) ** 0.5)


def _ways(ways: Mapping[str, Any]) -> str:
    lines = [
        _line("way", "right", "false done", "right per $", "right per hour", "$ per task"),
        _line(*["---"] * 6),
    ]
    for way, said in ways.items():
        one = Result(**said)
        lines.append(
            _line(
                way,
                f"{one.right_share:.1%}",
                f"{one.false_done:.1%}",
                f"{one.per_dollar:.2f}",
                f"{one.per_hour:.1f}",
                f"{one.dollars / one.tasks:.2f}",
            )
        )
    return "\n".join([*lines, ""])


def _switches(rows: Sequence[Mapping[str, Any]], what: str, shown: str) -> str:
    lines = [
        _line(what, "decided", "switched off", "still used", "off after, mean", "longest"),
        _line(*["---"] * 6),
        *(
            _line(
                shown.format(one["true"]),
                str(one["of"]),
                f"{one['off']:.0%}",
                f"{one['kept']:.0%}",
                f"{one['after']:.0f}" if one["off"] else "",
                str(one["longest"]) if one["off"] else "",
            )
            for one in rows
        ),
    ]
    return "\n".join([*lines, ""])


def _assumptions(document: Mapping[str, Any]) -> str:
    """Return the assumptions, with what follows at both ends of each.

    The ways are in the order of `measuring.SENSITIVE`.
    """
    ends: dict[str, list[Mapping[str, Any]]] = {}
    for one in document["ends"]:
        ends.setdefault(one["name"], []).append(one)
    lines = [
        _line(
            *("assumption", "value", "range", "source"),
            *("false done, defaults", "everything", "right per $, defaults", "everything"),
        ),
        _line(*["---"] * 8),
    ]
    for one in known():
        shown = [document["middle"], *ends[one.name]]
        lines.append(
            _line(
                one.meaning,
                f"{one.value:g} {one.unit}",
                f"{one.low:g} … {one.high:g}",
                one.source,
                *(
                    " / ".join(_ratio(each[figure][way], each[figure][against]) for each in shown)
                    for figure, against in (("false_done", 0), ("per_dollar", 1))
                    for way in (2, 3)
                ),
            )
        )
    return "\n".join([*lines, ""])


def _ratio(one: float, other: float) -> str:
    return f"{one / other:.2f}" if other else "–"


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
