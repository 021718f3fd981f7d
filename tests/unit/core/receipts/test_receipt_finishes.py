"""What a receipt says of the finishes of its plan, compared with the commits that they made."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from tests.cases import each_case
from tests.unit.core.gates.test_held_out import HELD
from tests.unit.core.receipts.as_json import check_script, verify_receipt
from tests.unit.core.receipts.test_receipts import (
    BASE,
    FACTS,
    NOW,
    RESULT,
    TREE1,
    TREE2,
    build,
    rows,
    sha,
    uid,
)

from loopwright.core.policy.finishing import receipt_hash
from loopwright.core.receipts.model import FinishEntry, read_receipt
from loopwright.core.receipts.verify import CommitFacts, read_commit
from loopwright.core.rows.model import Finish
from loopwright.core.values.states import FinishState

SQUASH = sha("5a")
FINISH = Finish(
    id=uid("finish", 1),
    plan_id=uid("plan", 1),
    how="squash",
    state=FinishState.FINISHED,
    actor="user:eva",
    source_sha=RESULT,
    target_sha=BASE,
    commit_sha=SQUASH,
    tree=TREE2,
    verdict_id=uid("verdict", 6),
    receipt_sha256="e" * 64,
    created_at=NOW,
    updated_at=NOW,
    finished_at=NOW,
)
COMMIT = CommitFacts(
    parents=(BASE,),
    trailers={"Loopwright-Finish": FINISH.id, "Loopwright-Receipt": f"sha256:{'e' * 64}"},
    signed=False,
)


def differences(
    changes: dict[str, Any] | None = None,
    *,
    tree: str | None = TREE2,
    commit: CommitFacts | None = COMMIT,
    frozen: str | None = None,
    **more: Any,
) -> list[str]:
    """Verify a receipt whose plan finished like this, in a repository that has this commit."""
    one = replace(FINISH, **changes or {})
    sha = one.commit_sha or SQUASH
    facts = replace(
        FACTS,
        trees={**FACTS.trees, sha: tree},
        commits={sha: commit} if commit else {},
        frozen={one.id: frozen} if frozen is not None else {},
    )
    return verify_receipt(build(finishes=[one], **more), facts)


def entry(**changes: Any) -> FinishEntry:
    (one,) = read_receipt(build(finishes=[replace(FINISH, **changes)])).finishes
    return one


def taken_over(**changes: Any) -> list[str]:
    """Return what the script of a receipt says of where the tasks are now."""
    receipt = build(finishes=[replace(FINISH, **changes)])
    lines = check_script(receipt, "", name="receipt.sh").splitlines()
    return [line.strip() for line in lines if "taken over as" in line]


def test_a_finish_as_it_was_made_has_no_difference() -> None:
    assert differences() == []
    assert differences(commit=None) == [], "an unread commit is compared by its tree alone"
    text = "the receipt as it was"
    trailers = {**COMMIT.trailers, "Loopwright-Receipt": f"sha256:{receipt_hash(text)}"}
    kept = {"receipt_sha256": receipt_hash(text)}
    assert differences(kept, frozen=text, commit=replace(COMMIT, trailers=trailers)) == []
    assert len(differences(kept, frozen="other", commit=replace(COMMIT, trailers=trailers))) == 1


def test_a_pull_request_carries_no_hash() -> None:
    request = {"how": "pull-request", "commit_sha": RESULT, "request_url": "https://forge/1"}
    assert not entry(**request).carries_hash
    assert differences(request, commit=replace(COMMIT, trailers={})) == []


def test_the_script_says_where_each_task_is_now() -> None:
    assert taken_over() == [f"taken over as {SQUASH}"] * 2
    assert taken_over(tasks=(uid("ptask", 1),)) == [f"taken over as {SQUASH}"]
    assert taken_over(state=FinishState.REFUSED) == []
    assert (
        taken_over(how="pull-request", request_url="https://forge/1") == ["taken over as https://forge/1"] * 2
    )


@each_case(
    ("changes", "found"),
    [
        ({}, {"tree": None}),
        ({}, {"tree": TREE1}),
        ({"tree": sha("f0")}, {"tree": sha("f0")}),
        ({}, {"commit": replace(COMMIT, parents=(RESULT,))}),
        ({"signed": True}, {}),
        ({"receipt_sha256": "0" * 64}, {}),
        ({}, {"commit": replace(COMMIT, trailers={**COMMIT.trailers, "Loopwright-Finish": "x"})}),
        ({"tasks": (uid("ptask", 2),), "tree": sha("f0")}, {"tree": sha("f0")}),
    ],
    ids=[
        "missing",
        "other tree",
        "no verdict",
        "other parent",
        "unsigned",
        "other receipt",
        "other finish",
        "tasks",
    ],
)
def test_each_untrue_statement_about_a_finish_is_one_difference(
    changes: dict[str, Any], found: dict[str, Any]
) -> None:
    assert len(differences(changes, **found)) == 1


def test_a_finish_must_pass_the_held_out_checks_of_its_tasks() -> None:
    first, second = rows()["tasks"]
    tasks = [replace(first, held_out=HELD), second]
    named = f"finish_not_passed {FINISH.id}"
    assert named in differences(tasks=tasks)
    assert named not in differences({"tasks": (second.id,)}, tasks=tasks), "the other task was not chosen"


def test_a_finish_that_made_no_commit_yet_says_nothing_about_the_repository() -> None:
    for going in ({"state": FinishState.REFUSED}, {"commit_sha": None}):
        assert differences(going, tree=None, commit=None) == []


def test_a_finish_that_found_nothing_left_to_do_is_in_the_receipt_once() -> None:
    idle = replace(FINISH, target_sha=FINISH.commit_sha)
    again = [replace(idle, id=uid("finish", n), created_at=NOW + timedelta(n)) for n in (2, 3, 4)]

    def told(*finishes: Finish) -> list[str]:
        return [one["id"] for one in build(finishes=finishes)["finishes"]]

    assert told(*again, FINISH) == [FINISH.id]
    assert told(*again) == [again[0].id]
    refused = replace(again[1], state=FinishState.REFUSED)
    assert told(FINISH, again[0], refused) == [FINISH.id, refused.id]


def test_a_finish_that_needed_no_commit_carries_no_hash() -> None:
    assert not entry(commit_sha=BASE).is_made
    forward = {"how": "fast-forward", "commit_sha": RESULT}
    assert not entry(**forward).is_made
    assert entry(**forward, tasks=(uid("ptask", 1),)).carries_hash


def test_a_commit_is_read_as_git_prints_it() -> None:
    text = (
        f"tree {TREE1}\nparent {BASE}\nparent {RESULT}\nauthor a\ncommitter b\n"
        "gpgsig -----BEGIN SSH SIGNATURE-----\n abc\n\nTitle\n\n- a\n\nLoopwright-Finish: finish_1\n"
    )
    facts = read_commit(text)
    assert facts.parents == (BASE, RESULT)
    assert (facts.signed, facts.trailers) == (True, {"Loopwright-Finish": "finish_1"})
