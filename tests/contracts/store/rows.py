"""Rows to put into a store: small ones by hand, and any possible one by hypothesis."""

from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints
from uuid import uuid4

from hypothesis import strategies as st

from loopwright.core.rows.events import Event
from loopwright.core.rows.model import Attempt, Loop, Plan, Project, Task
from loopwright.core.values.ids import Kind, make
from loopwright.core.values.policy import Policy
from loopwright.core.values.states import AttemptState, LoopState, PlanState, TaskState

AT = datetime(2031, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)
JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
STORABLE_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
MOMENTS = st.datetimes(
    datetime(1970, 1, 1),  # noqa: DTZ001 - hypothesis adds the zone
    datetime(2200, 1, 1),  # noqa: DTZ001
    timezones=st.integers(-840, 840).map(lambda minutes: timezone(timedelta(minutes=minutes))),
)


def new_id(kind: Kind) -> str:
    return make(kind, uuid4())


def project(**changes: Any) -> Project:
    return Project(
        **{"id": new_id(Kind.PROJECT), "name": "demo", "path": "/somewhere", "created_at": AT} | changes
    )


def loop(owner: Project, **changes: Any) -> Loop:
    values = {
        "id": new_id(Kind.LOOP),
        "project_id": owner.id,
        "name": "plan.md",
        "source_kind": "markdown",
        "source_path": f"{uuid4()}.md",
        "state": LoopState.IDLE,
        "created_at": AT,
        "updated_at": AT,
    }
    return Loop(**values | changes)


def plan(owner: Loop, **changes: Any) -> Plan:
    values = {
        "id": new_id(Kind.PLAN),
        "project_id": owner.project_id,
        "loop_id": owner.id,
        "title": "A plan",
        "status": PlanState.DRAFT,
        "source_sha256": "0" * 64,
        "base_ref": "main",
        "base_sha": "1" * 40,
        "branch": "loopwright/x/main",
        "policy": Policy(),
        "created_at": AT,
        "updated_at": AT,
    }
    return Plan(**values | changes)


def task(owner: Plan, **changes: Any) -> Task:
    values = {
        "id": new_id(Kind.TASK),
        "plan_id": owner.id,
        "key": "t1",
        "title": "A task",
        "status": TaskState.QUEUED,
        "created_at": AT,
        "updated_at": AT,
    }
    return Task(**values | changes)


def attempt(owner: Task, **changes: Any) -> Attempt:
    values = {
        "id": new_id(Kind.ATTEMPT),
        "plan_id": owner.plan_id,
        "task_id": owner.id,
        "n": 1,
        "state": AttemptState.QUEUED,
        "agent": "claude",
        "created_at": AT,
        "updated_at": AT,
    }
    return Attempt(**values | changes)


def family(tx: Any) -> Plan:
    """Insert a project with a loop, and return a plan that was inserted for it."""
    owner = project()
    driver = loop(owner)
    planned = plan(driver)
    for row in (owner, driver, planned):
        tx.insert(row)
    return planned


def event(**changes: Any) -> Event:
    return Event(**{"type": "TaskQueued", "actor": "test"} | changes)


def anything(hint: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for every value of a field's type."""
    if get_origin(hint) in (Union, UnionType):
        return st.one_of([st.none() if kind is NoneType else anything(kind) for kind in get_args(hint)])
    if get_origin(hint) is tuple:
        return st.lists(anything(get_args(hint)[0]), max_size=2).map(tuple)
    if get_origin(hint) is not None:
        return st.dictionaries(st.text(), JSON_VALUES, max_size=3)
    if issubclass(hint, StrEnum):
        return st.sampled_from(list(hint))
    if is_dataclass(hint):
        return filled(hint)
    return {
        str: STORABLE_TEXT,
        bool: st.booleans(),
        int: st.integers(-(2**63), 2**63 - 1),
        float: st.floats(allow_nan=False, allow_infinity=False),
        datetime: MOMENTS,
    }[hint]


def filled(kind: type[Any], **given: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for rows of a type with every field drawn, but for those given."""
    hints = get_type_hints(kind)
    drawn = {field.name: anything(hints[field.name]) for field in fields(kind) if field.name not in given}
    return st.builds(kind, **drawn, **{name: st.just(value) for name, value in given.items()})
