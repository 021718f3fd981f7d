"""The assumptions of the simulation: one data file, each with its source and the range that it is varied over."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

FILE: Final = Path(__file__).with_name("assumptions.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """One number that nobody here measured."""

    name: str
    value: float
    low: float
    high: float
    unit: str
    meaning: str
    source: str
    """What published it; empty where no source has it."""


Values = Mapping[str, float]


@cache
def known() -> tuple[Assumption, ...]:
    """Return all assumptions in the order of the file."""
    return tuple(Assumption(**one) for one in json.loads(FILE.read_text(encoding="utf-8")))


def values(**changed: float) -> Values:
    """Return the value of each assumption, some of them changed."""
    found = {one.name: one.value for one in known()}
    if unknown := changed.keys() - found.keys():
        raise KeyError(f"{FILE.name} has no assumption {min(unknown)!r}")
    return found | changed
