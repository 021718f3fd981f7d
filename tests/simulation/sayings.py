"""What simulated agents say beside their work."""

import json
from typing import Any, Final

from tests.simulation.trouble import Trouble

from loopwright.core.policy.rounds import ROUND
from loopwright.core.replies.discoveries import DISCOVERED_FENCE, Noticed
from loopwright.core.replies.doc_sync import FENCE as DOCUMENTS_FENCE
from loopwright.core.replies.qa import AREAS, FULL, TYPE
from loopwright.core.replies.qa import FENCE as REPORT_FENCE
from loopwright.core.rows.model import Task

FIRST: Final = "p0t0"
"""The key of the first task of the first loop."""
_TITLES: Final = ("Tidy the cellar", "tidy  the Cellar", "Paint the door", "Mend the roof")
"""Few, and one of them spelt in two ways, so that several agents come upon the same."""


_DOCUMENTS: Final = ("docs/prices.md", "docs/offers.md")
_ISSUES: Final = ("It wobbles", "It is loud", "it  is Loud")


def draw_words(trouble: Trouble, run_id: str, task: Task) -> str:
    """Decide what else an agent says in the end: the report of a look, or that documents have to follow."""
    if task.type == TYPE:
        return _report(trouble, run_id)
    if not trouble.strikes("documents", 0.3, run_id):
        return ""
    chance = trouble.chance("flags")
    named = chance.sample(_DOCUMENTS, chance.choice((1, 1, 2)))
    return _block(DOCUMENTS_FENCE, {"documents": named, "reason": "It costs more now."})


def _report(trouble: Trouble, run_id: str) -> str:
    chance = trouble.chance("report")
    found = chance.sample(_ISSUES, chance.choice((1, 1, 2)))
    if chance.random() < 0.1:
        return "Looks good to me!"
    issues = found if trouble.strikes("look", 0.4, run_id) else []
    result = "issues" if issues else "fine"
    seen = [{"area": area, "result": result, "how": "I tried it."} for area in AREAS[FULL]]
    told = [{"what": what, "severity": chance.choice(("critical", "low"))} for what in issues]
    return _block(REPORT_FENCE, {"summary": "I looked.", "checked": seen, "issues": told})


def _block(fence: str, value: dict[str, Any]) -> str:
    return f"```{fence}\n{json.dumps(value)}\n```"


def draw_noticed(trouble: Trouble, run_id: str) -> tuple[tuple[Noticed, ...], str]:
    """Decide what work an agent comes upon: what it notes with its tool, and what it says in its last words."""
    if not trouble.strikes("discovery", 0.3, run_id):
        return (), ""
    chance = trouble.chance("noticed")
    found = [
        Noticed(title=title, reason="It is in a bad way.", recommendation=chance.choice(("current", "new")))
        for title in chance.sample(_TITLES, chance.choice((1, 1, 2)))
    ]
    if chance.random() < 0.7:
        return tuple(found), ""
    said = [{"title": one.title, "recommendation": one.recommendation} for one in found]
    return (), "\n".join(_block(DISCOVERED_FENCE, one) for one in said)


def draw_round(trouble: Trouble, task: Task, quality: str) -> str:
    """Decide what comes of a round of the first loop, where that is one over a prompt; the quality as it was, else."""
    if not trouble.has("rounds") or task.key.partition("-")[0] != FIRST or task.origin not in ("", ROUND):
        return quality
    chance = trouble.chance("round").random()
    if trouble.strikes("rounds", 0.3):
        return "bad"
    return "nothing" if chance < 0.4 else quality
