"""What `verify` finds wrong with a receipt, as values."""

from dataclasses import dataclass
from enum import StrEnum


class DifferenceCode(StrEnum):
    """What is wrong. A code never changes; the sentence may."""

    HASH = "hash"
    """The receipt's own hash does not match."""
    DERIVED = "derived"
    """Outcome, sums, gaps or notes do not follow from the facts."""
    TASK_OUTCOME = "task_outcome"
    COMMIT_MISSING = "commit_missing"
    RESULT_TREE = "result_tree"
    REPOSITORY_DAMAGED = "repository_damaged"
    BASE_NOT_CONTAINED = "base_not_contained"
    RESULT_DIFF = "result_diff"
    TASK_DID_NOT_LAND = "task_did_not_land"
    LANDINGS = "landings"
    """A task did not land exactly once, as the receipt says."""
    LANDED_TREE = "landed_tree"
    LANDED_PARENT = "landed_parent"
    TASK_DIFF = "task_diff"
    LANDING_HASH = "landing_hash"
    """A commit names the hash of another part of a receipt."""
    REVIEW_HASH = "review_hash"
    REVIEW_COUNT = "review_count"
    REVIEW_RUN = "review_run"
    REVIEW_MISSING = "review_missing"
    REVIEWED_CHANGE = "reviewed_change"
    QA_HASH = "qa_hash"
    QA_COUNT = "qa_count"
    QA_MISSING = "qa_missing"
    FAILED_BEFORE = "failed_before"
    """No verdict shows that a task's tests failed before its work."""
    RED_PROOF = "red_proof"
    SANDBOX = "sandbox"
    ROLLBACK = "rollback"
    FINISH_RECEIPT = "finish_receipt"
    FINISH_NOT_PASSED = "finish_not_passed"
    FINISH_TREE = "finish_tree"
    FINISH_TRAILER = "finish_trailer"
    FINISH_PARENT = "finish_parent"
    FINISH_SIGNATURE = "finish_signature"
    RECORDED_FILE = "recorded_file"
    SCRIPT = "script"
    ROWS = "rows"
    """The rows of the home differ."""
    FOREIGN_COMMITS = "foreign_commits"
    OVERRIDES = "overrides"
    CHECKOUT_CHANGES = "checkout_changes"
    EVENT_CHAIN = "event_chain"
    EVENT_MISSING = "event_missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One false statement of a receipt."""

    code: DifferenceCode
    subject: str
    """The field, or the id, key or commit that it is about; empty for the receipt as a whole."""
    text: str


def differs(code: DifferenceCode, subject: str, text: str) -> Difference:
    """Return a difference; a shorthand."""
    return Difference(code=code, subject=subject, text=text)
