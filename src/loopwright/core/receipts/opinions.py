"""What an evaluator said of a plan before it ran, in the plan's receipt: an opinion, apart from every fact."""

from typing import Any

from loopwright.core.rows.model import Plan


def opinions(plan: Plan) -> list[dict[str, Any]]:
    """Return what was said, with the plan by which it was asked: nobody has checked whether it is true."""
    said = plan.evaluation.get("evaluator")
    if not said:
        return []
    named = ("agent", "model", "summary")
    remarks = [{name: one[name] for name in ("task", "severity", "text")} for one in said["findings"]]
    return [{"id": said["plan_id"], **{name: said[name] for name in named}, "findings": remarks}]
