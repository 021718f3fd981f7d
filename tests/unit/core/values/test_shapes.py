"""Dataclasses as the shape of JSON: what is read, what is refused, and the schema that says the same."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

import jsonschema
import pytest
from tests.cases import each_case
from tests.wording_plugin import Wording

from loopwright.core.values.shapes import (
    Count,
    Misshapen,
    RelativePath,
    Sha,
    TaskId,
    decode,
    json_schema,
    one_of,
)


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    path: RelativePath
    sha: Sha | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    name: str
    count: Count
    share: float
    on: bool
    colour: Colour
    version: Literal["1"]
    word: Annotated[str, one_of(("b", "a"))]
    task: TaskId | None
    parts: tuple[Part, ...]
    texts: Mapping[str, str]
    at: datetime
    facts: Mapping[str, Any]


GOOD: dict[str, Any] = {
    "name": "x",
    "count": 2,
    "share": 1.5,
    "on": True,
    "colour": "red",
    "version": "1",
    "word": "a",
    "task": None,
    "parts": [{"path": "a/b", "sha": "0" * 40}, {"path": "c", "sha": None}],
    "texts": {"k": "v"},
    "at": "2026-01-02T03:04:05+00:00",
    "facts": {"k": [1, None]},
}


def problems(value: Any) -> tuple[str, ...]:
    with pytest.raises(Misshapen) as refused:
        decode(Thing, value, "thing")
    return refused.value.problems


def test_a_value_becomes_the_dataclass_that_its_type_names() -> None:
    assert decode(Thing, GOOD, "thing") == Thing(
        name="x",
        count=2,
        share=1.5,
        on=True,
        colour=Colour.RED,
        version="1",
        word="a",
        task=None,
        parts=(Part(path="a/b", sha="0" * 40), Part(path="c")),
        texts={"k": "v"},
        at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        facts={"k": [1, None]},
    )


@each_case(
    ("change", "place"),
    [
        ({"name": 1}, "thing.name"),
        ({"count": -1}, "thing.count"),
        ({"count": True}, "thing.count"),
        ({"share": "1"}, "thing.share"),
        ({"on": 1}, "thing.on"),
        ({"colour": "green"}, "thing.colour"),
        ({"version": "2"}, "thing.version"),
        ({"word": "c"}, "thing.word"),
        ({"task": "ptask_x"}, "thing.task"),
        ({"parts": {}}, "thing.parts"),
        ({"parts": [7]}, "thing.parts[0]"),
        ({"parts": [{"path": "../x", "sha": None}]}, "thing.parts[0].path"),
        ({"parts": [{"path": "x"}]}, "thing.parts[0].sha"),
        ({"texts": []}, "thing.texts"),
        ({"texts": {"k": 1}}, "thing.texts.k"),
        ({"at": 1}, "thing.at"),
        ({"facts": []}, "thing.facts"),
        ({"more": 1}, "thing.more"),
    ],
)
def test_each_wrong_value_is_named_by_its_place_and_refused_by_the_schema(
    change: dict[str, Any], place: str
) -> None:
    (problem,) = problems(GOOD | change)
    assert problem.startswith(f"{place}: ")
    if not place.endswith(".path"):  # no pattern says that a path stays inside
        assert not jsonschema.Draft202012Validator(json_schema(Thing)).is_valid(GOOD | change)


def test_a_field_with_a_default_may_not_be_missing_either(wording: Wording) -> None:
    assert problems({}) == tuple(f"thing.{name}: missing" for name in GOOD)
    wording(problems([]))


def test_the_schema_accepts_what_is_read() -> None:
    jsonschema.Draft202012Validator(json_schema(Thing)).validate(GOOD)


@each_case("at", ["2026-01-02T03:04:05", "yesterday", ""])
def test_a_moment_without_a_time_zone_is_refused(at: str) -> None:
    (problem,) = problems(GOOD | {"at": at})
    assert problem.startswith("thing.at: ")
