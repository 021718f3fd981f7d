"""Which verdict of a receipt speaks for a tree: the latest, and none that only says how it was before some work."""

from collections.abc import Iterator, Mapping
from typing import Any

from loopwright.core.rows.model import Role

Verdicts = dict[tuple[str, str], Mapping[str, Any]]


def speaking(receipt: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the verdicts on trees that were to be taken, the oldest first.

    What runs on the tree before some work is excused of nothing and held against nothing, so its red says nothing of
    who landed that tree, and its green is no leave to land it.
    """
    before = _before(receipt)
    return (one for one in receipt["verdicts"] if one["run_id"] not in before)


def latest(receipt: Mapping[str, Any]) -> Verdicts:
    """Return the verdict that counts for each tree and list of commands."""
    return {(one["tree"], one["gate_key"]): one for one in speaking(receipt)}


def red_verdict(receipt: Mapping[str, Any], tree: str, key: str) -> Mapping[str, Any] | None:
    """Return the verdict that says how these commands ended on a tree without some work."""
    before = _before(receipt)
    found = [one for one in receipt["verdicts"] if (one["tree"], one["gate_key"]) == (tree, key)]
    return next((one for one in reversed(found) if one["run_id"] in before), None)


def _before(receipt: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(run["id"] for run in receipt["runs"] if run["role"] == Role.BASELINE.value)
