"""How well a mark of completion stands: what contradicts it comes first."""

import pytest

from loopwright.core.auditing import Checked, Named, Proof, proof_of

THERE = Named(text="abc1234", sha="abc1234" + "0" * 33, contained=True)
GONE = Named(text="abc1234")
ELSEWHERE = Named(text="abc1234", sha="abc1234" + "0" * 33)
NO_ID = Named(text="see above")
GOOD, BAD, BROKEN = (
    Checked(passed=True),
    Checked(passed=False, reason="red"),
    Checked(passed=None, reason="no"),
)


@pytest.mark.parametrize(
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
    ],
)
def test_a_claim_is_as_good_as_its_evidence(
    named: Named | None, checks: int, checked: Checked | None, proof: Proof
) -> None:
    found, reason = proof_of(named, checks, checked)
    assert found is proof
    assert bool(reason) == (proof is not Proof.PROVEN)
