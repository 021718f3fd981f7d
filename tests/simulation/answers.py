"""Simulated reviewers: whether there are any, and what they answer."""

import json

from tests.simulation.services import OTHER
from tests.simulation.trouble import Trouble

from loopwright.core.replies.investigations import FENCE as INVESTIGATION
from loopwright.core.replies.reviews import FENCE
from loopwright.core.values.healing import Cause
from loopwright.core.values.policy import ReviewPolicy


def draw_policy(trouble: Trouble, plan: str) -> ReviewPolicy:
    """Decide whether the work of a plan is reviewed, and by whom; drawn apart, so other chances stay as they are."""
    chance = trouble.chance(f"review of {plan}")
    if chance.random() > 0.2:
        return ReviewPolicy()
    # Whoever is over a limit here pauses the loop; a review over its share does not, which other tests show.
    return ReviewPolicy(
        mode="always", agent=chance.choice((None, OTHER)), max_turns=chance.choice((0, 1, 2)), max_share=0
    )


def draw_answer(trouble: Trouble, key: str) -> str:
    """Return a reviewer's last words: nothing to say, an objection, an opinion elsewhere, or rubbish."""
    chance = trouble.chance("reviewer").random()
    if chance < 0.12:
        return "Looks good to me!"
    finding = {"file": f"{key}.txt", "line": 1, "severity": "blocking", "text": "It is not right yet."}
    if chance < 0.24:
        finding["file"] = "elsewhere.txt"
    answer = {"summary": "I looked.", "findings": [finding] if chance < 0.45 else []}
    return f"```{FENCE}\n{json.dumps(answer)}\n```"


def draw_investigation(trouble: Trouble) -> str:
    """Return an investigator's last words: a cause, perhaps with smaller tasks, or rubbish."""
    chance = trouble.chance("investigator")
    if chance.random() < 0.15:
        return "I do not know."
    parts = [{"title": f"Part {n}", "description": "Do it."} for n in range(chance.choice((0, 2, 2, 3)))]
    answer = {
        "cause": chance.choice(tuple(Cause)).value,
        "why": "I looked.",
        "advice": "Try.",
        "parts": parts,
    }
    return f"```{INVESTIGATION}\n{json.dumps(answer)}\n```"
