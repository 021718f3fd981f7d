"""Which verdict of a receipt speaks for a tree: the latest, and none that only says how it was before some work."""

from collections.abc import Iterator, Mapping
from typing import Any

from loopwright.core.model import Role

Verdicts = dict[tuple[str, str], Mapping[str, Any]]


def speaking(receipt: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the verdicts on trees that were to be taken, the oldest first.

    What runs on the tree before some work is excused of nothing and held against nothing, so its red says nothing of
    who landed that tree, and its green is no leave to land it.
    """
    before = {run["id"] for run in receipt["runs"] if run["role"] == Role.BASELINE.value}
    return (one for one in receipt["verdicts"] if one["run_id"] not in before)


def latest(receipt: Mapping[str, Any]) -> Verdicts:
    """Return the verdict that counts for each tree and list of commands."""
    return {(one["tree"], one["gate_key"]): one for one in speaking(receipt)}
