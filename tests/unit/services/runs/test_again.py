"""Flags of `run` on a plan that was here before: said or refused, never ignored in silence."""

from typing import Any

import pytest
from tests.doubles import Home, planned
from tests.wording_plugin import Wording

from loopwright.core.rows.model import Plan
from loopwright.core.values.errors import Refused
from loopwright.core.values.policy import Policy
from loopwright.services.runs.last_plan import for_finished, idle_flags, refuse_idle

NONE = dict.fromkeys(("agent", "model", "parallel", "max_attempts", "max_cost", "permission_mode"))


def _plan(**policy: Any) -> Plan:
    return Home().submit(planned("a"), policy=Policy(**policy))


def _idle(plan: Plan, wanted: Policy, base_sha: str | None = None, **flags: Any) -> list[tuple[str, str]]:
    found = idle_flags({**NONE, **flags}, wanted, plan, base_sha=base_sha)
    return [(one.flag, one.kept) for one in found]


def test_the_same_flags_once_more_are_fine() -> None:
    plan = _plan(agent="command", max_cost=5_000_000)
    wanted = Policy(agent="command", max_cost=5_000_000)
    assert _idle(plan, wanted, base_sha=plan.base_sha, agent="command", max_cost="5") == []
    assert refuse_idle((), plan) == ()


def test_a_flag_that_was_not_given_is_never_at_fault() -> None:
    assert _idle(_plan(agent="command"), Policy(agent="claude", max_attempts=9)) == []


def test_a_flag_that_would_mislead_about_spending_is_refused_with_the_ways_out(wording: Wording) -> None:
    plan = _plan()
    wanted = Policy(agent="command", max_cost=2_000_000)
    flags = {**NONE, "agent": "command", "max_cost": "2"}
    with pytest.raises(Refused) as refused:
        refuse_idle(idle_flags(flags, wanted, plan, base_sha=None), plan)
    told = str(refused.value)
    wording(told)
    hint = refused.value.hint or ""
    wording(hint)
    assert "resume plan_" in hint
    assert "--max-cost" in hint
    assert "--new" in hint


def test_another_base_is_refused() -> None:
    plan = _plan()
    assert _idle(plan, Policy(), base_sha="9" * 40) == [("--base", "main (1111111)")]
    with pytest.raises(Refused, match="--base"):
        refuse_idle(idle_flags({}, Policy(), plan, base_sha="9" * 40), plan)


def test_a_harmless_flag_is_only_told(wording: Wording) -> None:
    plan = _plan()
    [told] = refuse_idle(idle_flags({"parallel": 9}, Policy(parallel=9), plan, base_sha=None), plan)
    wording(told)


def test_a_finished_plan_names_the_flags_that_did_nothing(wording: Wording) -> None:
    wording(for_finished(NONE, base=None))
    told = for_finished({**NONE, "max_cost": "2"}, base="main")
    wording(told)
