"""How well a mark of completion stands: what contradicts it comes first."""

from tests.cases import each_case
from tests.wording_plugin import Wording

from loopwright.core.plans.audits import Checked, Named, Proof, proof_of

THERE = Named(text="abc1234", sha="abc1234" + "0" * 33, contained=True)
GONE = Named(text="abc1234")
ELSEWHERE = Named(text="abc1234", sha="abc1234" + "0" * 33)
UNMERGED = Named(text="abc1234", sha="abc1234" + "0" * 33, branch="work")
NO_ID = Named(text="see above")
GOOD, BAD, BROKEN = (
    Checked(passed=True),
    Checked(passed=False, reason="red"),
    Checked(passed=None, reason="no"),
)


@each_case(
    ("named", "checks", "checked", "proof"),
    [
        (THERE, 1, GOOD, Proof.PROVEN),
        (None, 1, GOOD, Proof.PASSES),
        (THERE, 0, None, Proof.CLAIMED),
        (None, 0, None, Proof.CLAIMED),
        (THERE, 1, None, Proof.UNKNOWN),
        (THERE, 1, BROKEN, Proof.UNKNOWN),
        (THERE, 1, BAD, Proof.FAILING),
        (GONE, 1, BAD, Proof.FAILING),
        (GONE, 1, GOOD, Proof.LOST),
        (ELSEWHERE, 1, GOOD, Proof.LOST),
        (NO_ID, 0, None, Proof.LOST),
        (UNMERGED, 1, GOOD, Proof.UNMERGED),
        (UNMERGED, 1, BAD, Proof.UNMERGED),
        (UNMERGED, 0, None, Proof.UNMERGED),
    ],
)
def test_a_claim_is_as_good_as_its_evidence(
    named: Named | None, checks: int, checked: Checked | None, proof: Proof
) -> None:
    found, reason = proof_of(named, checks, checked)
    assert found is proof
    assert bool(reason) == (proof is not Proof.PROVEN)


def test_what_is_wrong_with_a_commit_is_said(wording: Wording) -> None:
    assert THERE.problem == ""
    wording(GONE.problem)
    wording(ELSEWHERE.problem)
    wording(UNMERGED.problem)
    wording(NO_ID.problem)
    wording(proof_of(THERE, 0, None)[1])
