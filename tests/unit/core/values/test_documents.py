"""Rows as plain documents."""

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.contracts.store import rows

from loopwright.core.rows.model import Plan
from loopwright.core.rows.row_types import ROW_TYPES
from loopwright.core.values.documents import document, plain
from loopwright.core.values.policy import GateCommand


def test_a_row_keeps_its_field_names_and_gives_up_its_types() -> None:
    row: Plan = rows.plan(rows.loop(rows.project()), gates=(GateCommand(name="tests", command="pytest"),))
    shown = document(row)
    assert shown["id"] == row.id
    assert shown["status"] == "DRAFT"
    assert type(shown["status"]) is str
    assert shown["created_at"] == "2031-05-06T07:08:09.123456+00:00"
    assert shown["verdict"] is None
    assert shown["gates"] == [{"name": "tests", "command": "pytest", "timeout_s": 600.0, "junit": None}]
    assert shown["policy"]["limits"]["hard"] == 3600.0


@pytest.mark.trap("naive time")
def test_every_time_is_shown_in_utc() -> None:
    noon = datetime(2031, 5, 6, 12, tzinfo=timezone(timedelta(hours=5)))
    assert plain(noon) == "2031-05-06T07:00:00+00:00"
    assert plain(noon.astimezone(UTC)) == plain(noon)


def test_keys_become_texts_and_collections_become_lists() -> None:
    assert plain({1: (2, {3}), "x": frozenset({4})}) == {"1": [2, [3]], "x": [4]}


def test_a_class_is_left_alone() -> None:
    """Only a value of a row type is a document; the type itself is not."""
    assert plain(Plan) is Plan


@settings(max_examples=30, deadline=None)
@given(row=st.one_of([rows.filled(kind) for kind in ROW_TYPES]))
def test_any_row_becomes_json_with_all_its_fields(row: object) -> None:
    shown = document(row)
    assert set(shown) == set(type(row).__dataclass_fields__)  # type: ignore[attr-defined]
    assert json.loads(json.dumps(shown)) == shown
