"""Somebody commits to the plan branch, deletes it, rewrites it and merges it, while the plan runs."""

from tests.acceptance.control.workshop import Workshop
from tests.unit.core.receipts.as_json import named

from loopwright.core.rows.model import Plan
from loopwright.core.values.ids import short_id


def test_what_people_do_to_the_plan_branch_is_noticed_and_reconciled(shop: Workshop) -> None:
    gates = {key: shop.gate(key) for key in ("b", "c", "d")}
    steps = {key: [[gate.step, {"write": key, "text": key}]] for key, gate in gates.items()}
    run = shop.start("run", str(shop.chain("a", "b", "c", "d", steps=steps)))
    shop.until_started("b")
    plan = shop.row(Plan)
    ref = f"refs/heads/{plan.branch}"

    tip = shop.git("rev-parse", ref).strip()
    mine = shop.git("commit-tree", "-p", tip, "-m", "a fix of mine", f"{tip}^{{tree}}").strip()
    shop.git("update-ref", ref, mine)
    gates["b"].let_go()
    shop.until_started("c")
    shop.git("branch", "-D", plan.branch)
    gates["c"].let_go()
    shop.until_started("d")
    kept = shop.git("rev-parse", ref).strip()
    shop.git("branch", "-f", plan.branch, shop.git("commit-tree", "-m", "anew", f"{tip}^{{tree}}").strip())
    # Without our note the rows tell what landed: nobody's branch becomes ours because it is gone.
    shop.git("update-ref", "-d", f"refs/loopwright/branches/{short_id(plan.id)}/main")
    shop.git("update-ref", "-d", f"refs/loopwright/attempts/{plan.id}/{shop.task('a').id}/1")
    gates["d"].let_go()
    assert run.end() == 3, run.out
    lost = f"refs/loopwright/attempts/{plan.id}/{shop.task('a').id}/1"
    assert shop.git("rev-parse", lost).strip() == shop.attempts("a")[0].tip_sha
    (event,) = shop.events("checkout_changed")
    assert event.payload["changes"] == [f"{lost} was deleted; it is at {shop.attempts('a')[0].tip_sha} again"]
    assert f"git branch -f {plan.branch} {kept[:10]}" in run.out.replace("\n", " ")
    told = [event.type for event in shop.events("branch_moved", "branch_restored", "branch_rewritten")]
    assert told == ["branch_moved", "branch_restored", "branch_rewritten"]

    shop.git("branch", "-f", plan.branch, kept)
    said = shop("resume", timeout=90)
    assert said.code == 4, said.out + said.err
    assert shop.row(Plan).outcome == "verified_with_gaps", "nobody judged a commit that no task made"
    for told in (said.out, shop("status").out):
        assert "gap: commits on the branch that no task made" in told
        assert f"loopwright receipt show {plan.id[:13]}" in told
    assert shop.landed() == ["a", "b", "c", "d"]
    assert shop.started() == [(key, 1) for key in "abcd"]
    shown = shop("receipt", "show", "--json").document
    (other,) = shown["plan"]["not_ours"]
    assert (other["sha"], other["subject"], other["gate_files"]) == (mine, "a fix of mine", [])
    assert shown["outcome"] == "verified_with_gaps"
    assert "foreign_commits" in named(shown)
    assert shop("receipt", "verify").code == 0

    shop.git("merge", "-q", "--ff-only", plan.branch)
    shop.git("branch", "-D", plan.branch)
    assert shop("clean", "--yes").code == 0
    assert shop.git("for-each-ref", "refs/loopwright", "refs/heads/loopwright") == ""
