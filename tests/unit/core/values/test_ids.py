"""Ids are safe in paths, refs and workflow ids, and tell what they name."""

import re
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import each_case
from tests.refusals import raises_code

from loopwright.core.values.errors import UserError
from loopwright.core.values.ids import Kind, check, is_id, make

SAMPLE = UUID("12345678-9abc-4def-8123-456789abcdef")


@each_case(
    ("kind", "prefix"),
    [(Kind.PLAN, "plan_"), (Kind.TASK, "ptask_"), (Kind.RUN, "run_"), (Kind.PACKET, "pkt_")],
)
def test_the_prefixes_of_stored_ids_are_fixed(kind: Kind, prefix: str) -> None:
    assert make(kind, SAMPLE) == prefix + "12345678-9abc-4def-8123-456789abcdef"


def test_no_prefix_is_used_for_two_kinds() -> None:
    assert len({kind.value for kind in Kind}) == len(Kind)


@settings(deadline=None)
@given(kind=st.sampled_from(Kind), other=st.sampled_from(Kind), value=st.uuids())
def test_an_id_is_of_its_own_kind_only(kind: Kind, other: Kind, value: UUID) -> None:
    text = make(kind, value)
    assert check(text, kind) == text
    assert is_id(text, other) == (kind is other)


@pytest.mark.trap("id as a path")
@settings(deadline=None)
@given(kind=st.sampled_from(Kind), value=st.uuids())
def test_an_id_is_one_safe_name(kind: Kind, value: UUID) -> None:
    assert re.fullmatch(r"[a-z]+_[0-9a-f-]{36}", make(kind, value))


@each_case(
    "text",
    [
        "",
        "plan_",
        "plan_../../etc/passwd",
        f"plan_{SAMPLE}/..",
        f"../plan_{SAMPLE}",
        f"plan_{SAMPLE}\n",
        f" plan_{SAMPLE}",
        f"PLAN_{SAMPLE}",
        f"plan_{str(SAMPLE).upper()}",
        f"plan_{SAMPLE.hex}",
        f"plan_{SAMPLE}\0",
        f"run_{SAMPLE}",
    ],
)
def test_text_from_outside_that_is_no_plan_id_is_refused(text: str) -> None:
    assert not is_id(text, Kind.PLAN)
    with raises_code("bad_id"):
        check(text, Kind.PLAN)


@settings(deadline=None)
@given(text=st.text())
def test_arbitrary_text_is_never_taken_for_an_id_it_could_not_be(text: str) -> None:
    """Whatever passes has exactly the form that `make` gives."""
    for kind in Kind:
        if is_id(text, kind):
            assert make(kind, UUID(text.split("_", 1)[1])) == text


def test_a_bad_id_is_the_users_to_mend() -> None:
    with pytest.raises(UserError):
        check("nonsense", Kind.RUN)
