"""Graphs and time lines as geometry."""

import random
from datetime import UTC, datetime, timedelta

from tests.cases import each_case

from loopwright.core.rows.model import Role
from loopwright.core.values.states import AttemptState, RunState
from loopwright.server.pages import graph, timeline
from loopwright.services.dashboard.plan import AttemptSpan, Span, TaskSpans

BEGIN = datetime(2026, 1, 2, tzinfo=UTC)


def _plan(seed: int, tasks: int) -> dict[str, list[str]]:
    chance = random.Random(seed)
    names = [f"t{n}" for n in range(tasks)]
    return {
        name: chance.sample(
            names[max(0, n - 8) : n], k=min(n, chance.randint(0, 3)) if n < 8 else chance.randint(0, 3)
        )
        for n, name in enumerate(names)
    }


@each_case("seed, tasks", [(1, 1), (2, 10), (3, 200)])
def test_every_task_has_its_own_place_right_of_what_it_needs(seed: int, tasks: int) -> None:
    needs = _plan(seed, tasks)
    drawn = graph.lay_out(needs)
    places = {one.id: one for one in drawn.nodes}
    assert set(places) == set(needs)
    assert len({(one.x, one.y) for one in drawn.nodes}) == tasks
    assert all(places[before].x < places[after].x for after, needed in needs.items() for before in needed)
    assert max(one.x for one in drawn.nodes) + graph.NODE_WIDTH < drawn.width
    assert max(one.y for one in drawn.nodes) + graph.NODE_HEIGHT < drawn.height
    assert len(drawn.edges) == sum(map(len, needs.values()))


def test_many_independent_tasks_stand_in_several_columns() -> None:
    drawn = graph.lay_out({f"t{n}": [] for n in range(40)})
    assert len({one.x for one in drawn.nodes}) == 2


def test_a_dependency_over_several_columns_passes_no_box() -> None:
    drawn = graph.lay_out({"a": [], "b": ["a"], "c": ["b"], "d": ["c", "a"]})
    (far,) = (one for one in drawn.edges if (one.before, one.after) == ("a", "d"))
    # It goes straight through one free place in each of the two columns between them.
    assert far.path.count("H") == 2
    assert len({one.y for one in drawn.nodes}) == 1
    assert drawn.height > 2 * graph.NODE_HEIGHT


def test_an_empty_plan_draws_nothing() -> None:
    assert graph.lay_out({}) == graph.Graph(nodes=(), edges=(), width=0, height=0)


def _at(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


def _run(role: Role, began: float, ended: float | None, state: RunState = RunState.COMPLETE) -> Span:
    return Span(
        run_id=f"run_{began}",
        role=role,
        state=state,
        began_at=_at(began),
        ended_at=None if ended is None else _at(ended),
    )


def test_a_time_line_shows_runs_waits_and_retries() -> None:
    first = AttemptSpan(
        attempt_id="a1",
        n=1,
        state=AttemptState.REJECTED,
        began_at=_at(0),
        ended_at=_at(40),
        runs=(_run(Role.IMPLEMENTER, 0, 20), _run(Role.GATE, 30, 40, RunState.ERROR)),
    )
    second = AttemptSpan(
        attempt_id="a2",
        n=2,
        state=AttemptState.WORKING,
        began_at=_at(50),
        ended_at=None,
        runs=(_run(Role.IMPLEMENTER, 50, None, RunState.RUNNING),),
    )
    task = TaskSpans(task_id="t", key="t", title="T", attempts=(first, second))
    idle = TaskSpans(task_id="u", key="u", title="U", attempts=())
    drawn = timeline.draw([task, idle], _at(100))
    (row,) = drawn.rows
    assert [(bar.kind, bar.left, bar.width) for bar in row.lanes[0].bars] == [
        ("implementer", 0.0, 20.0),
        ("wait", 20.0, 10.0),
        ("gate", 30.0, 10.0),
    ]
    assert [bar.failed for bar in row.lanes[0].bars] == [False, False, True]
    assert [(bar.kind, bar.left, bar.width, bar.live) for bar in row.lanes[1].bars] == [
        ("implementer", 50.0, 50.0, True)
    ]
    assert [tick.label for tick in drawn.ticks][:3] == ["0 s", "15 s", "30 s"]


def test_nothing_that_began_is_an_empty_time_line() -> None:
    assert timeline.draw([], BEGIN) == timeline.Timeline(rows=(), ticks=())


@each_case(
    "seconds, words",
    [
        (1.24, "1.2 s"),
        (12.9, "12 s"),
        (125, "2 m 5 s"),
        (120, "2 m"),
        (3 * 3600 + 60, "3 h 1 m"),
        (50 * 3600, "2 d 2 h"),
    ],
)
def test_lengths_of_time_are_short(seconds: float, words: str) -> None:
    assert timeline.duration(seconds) == words
