"""What a benchmark says: one figure, its spread over repeats, the baseline of the same run, and its target."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Literal, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a figure must not exceed, and which of its numbers is meant."""

    limit: float
    of: Literal["ratio", "value"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One figure."""

    case: str
    name: str
    unit: str
    values: tuple[float, ...]
    """One value per repeat."""
    against: str = ""
    """What the baseline is; empty when the figure stands alone."""
    baseline: tuple[float, ...] = ()
    target: Target | None = None
    group: str = ""
    """The chart that draws it; empty for the table alone."""
    at: str = ""
    """Its place in that chart."""

    @property
    def value(self) -> float:
        """The figure."""
        return median(self.values)

    @property
    def base(self) -> float | None:
        """The baseline's figure."""
        return median(self.baseline) if self.baseline else None

    @property
    def ratio(self) -> float | None:
        """How many times the baseline; repeats that ran side by side are compared with each other."""
        if not self.baseline:
            return None
        if len(self.baseline) == len(self.values):
            pairs = zip(self.values, self.baseline, strict=True)
            return median(mine / theirs for mine, theirs in pairs if theirs) if all(self.baseline) else None
        base = median(self.baseline)
        return self.value / base if base else None

    @property
    def spread(self) -> tuple[float, float]:
        """The smallest and the largest value."""
        return min(self.values), max(self.values)

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without one."""
        if self.target is None:
            return None
        judged = self.value if self.target.of == "value" else self.ratio
        return judged is not None and judged <= self.target.limit

    def document(self) -> dict[str, Any]:
        """Return it as JSON."""
        low, high = self.spread
        return {
            "case": self.case,
            "name": self.name,
            "unit": self.unit,
            "value": self.value,
            "values": list(self.values),
            "spread": [low, high],
            "against": self.against or None,
            "baseline": self.base,
            "baseline_values": list(self.baseline),
            "ratio": self.ratio,
            "target": {"limit": self.target.limit, "of": self.target.of} if self.target else None,
            "met": self.met,
            "group": self.group,
            "at": self.at,
        }


def read(document: Mapping[str, Any]) -> Measurement:
    """Return the measurement of a JSON document."""
    target = document["target"]
    return Measurement(
        case=document["case"],
        name=document["name"],
        unit=document["unit"],
        values=tuple(document["values"]),
        against=document["against"] or "",
        baseline=tuple(document["baseline_values"]),
        target=Target(limit=target["limit"], of=target["of"]) if target else None,
        group=document["group"],
        at=document["at"],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How a benchmark is run."""

    folder: Path
    """An empty place of its own; deleted afterwards."""
    quick: bool
    repeats: int
    say: Callable[[str], None] = field(default=print)

    def place(self, name: str) -> Path:
        """Make a folder in it."""
        path = self.folder / name
        path.mkdir(parents=True)
        return path

    def pick(self, full: int, quick: int) -> int:
        """Return the size for this way of running."""
        return quick if self.quick else full


Case = Callable[[Setting], Iterator[Measurement]]


def taken_in_turn(repeats: int, ways: Sequence[Callable[[int], T]]) -> list[list[T]]:
    """Run several ways alternately, so that a busy moment of the machine meets all of them; one list each."""
    found: list[list[T]] = [[] for _ in ways]
    for n in range(repeats):
        # Every other round backwards: whoever comes second finds warmer caches.
        order = list(enumerate(ways))
        for position, way in order if n % 2 == 0 else reversed(order):
            found[position].append(way(n))
    return found
