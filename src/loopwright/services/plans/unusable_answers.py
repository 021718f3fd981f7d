"""Why an answer could not be used: what its check found, where a person can read it at once."""

from loopwright.core.rows.model import Attempt, VerdictRecord
from loopwright.ports import Tx


def found_wrong(tx: Tx, plan_id: str) -> tuple[str, ...]:
    """Return what the check found in the last answer that was judged, each problem on its line."""
    for one in tx.find(Attempt, plan_id=plan_id, order_by=("-n",)):
        record = tx.get(VerdictRecord, one.verdict_id) if one.verdict_id else None
        bad = [each for each in record.verdict.commands if each.refused] if record else []
        if bad:
            return tuple(line.strip() for line in bad[0].tail.splitlines() if line.strip())
    return ()
