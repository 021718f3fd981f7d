"""The pure parts of single cases: bounds, random plans, shares of processor time, shapes of statements."""

import pytest
from bench.cases.makespan import Worked, lower_bound, parts, random_jobs
from bench.cases.script import cpu_of
from bench.counted import Counts, git_command, shape
from bench.meter import Ended, Metered
from bench.yard import Job
from tests.cases import each_case


def job(key: str, seconds: float, *needs: str) -> Job:
    return Job(key=key, seconds=seconds, needs=needs)


def test_the_bound_is_the_longest_chain_or_the_work_divided_among_the_slots() -> None:
    chain = (job("a", 2), job("b", 3, "a"), job("c", 1))
    assert lower_bound(chain, 2) == 5
    assert lower_bound((job("a", 2), job("b", 2), job("c", 2)), 2) == 3
    assert lower_bound((), 2) == 0


def test_random_plans_are_the_same_every_time_and_need_only_what_came_before() -> None:
    jobs = random_jobs(40, 1)
    assert jobs == random_jobs(40, 1)
    assert jobs != random_jobs(40, 2)
    seen: set[str] = set()
    for one in jobs:
        assert set(one.needs) <= seen
        seen.add(one.key)
    assert sum(one.seconds for one in jobs) == pytest.approx(40, rel=0.01)
    assert max(one.seconds for one in jobs) > 3 * sorted(one.seconds for one in jobs)[20]


def ended(pid: int, own: float, below: float) -> Ended:
    return Ended(pid=pid, own_cpu_s=own, below_cpu_s=below, peak_bytes=1)


def test_processor_time_is_sorted_by_what_it_was_for() -> None:
    took = Metered(
        code=0,
        wall_s=1,
        main=ended(1, 5.0, 2.0),
        others=(ended(2, 0.1, 0.5), ended(3, 0.2, 0.4), ended(4, 0.3, 0.6)),
        out="",
    )
    cpu = cpu_of(took, {2: "implementer", 3: "gate", 4: "verify"}, 0.25)
    assert (cpu.orchestrator, cpu.agents, cpu.gates) == (5.0, 0.5, 1.0)
    assert cpu.keepers == pytest.approx(0.75 + 0.6)
    assert cpu.git == pytest.approx(2.0 - 0.75)
    assert cpu.own == pytest.approx(5.0 + 1.35 + 1.25)


@each_case(
    ("sql", "seen"),
    [
        ("SELECT a.b, c FROM tasks WHERE x", "SELECT tasks"),
        ("INSERT INTO events(n) VALUES (1)", "INSERT events"),
        ("UPDATE runs SET x=1", "UPDATE runs"),
        ("DELETE FROM workers", "DELETE workers"),
        ("begin immediate", "BEGIN IMMEDIATE"),
        ("PRAGMA x", "PRAGMA"),
        ("", "?"),
    ],
)
def test_statements_are_counted_by_verb_and_table(sql: str, seen: str) -> None:
    assert shape(sql) == seen


def test_programs_are_counted_by_what_they_are() -> None:
    counts = Counts()
    counts.started(["git", "-c", "a=b", "-c", "c=d", "status", "-z"])
    counts.started(["python", "-I", "-S", "x/keeper/__main__.py", "dir"])
    counts.started(["true"])
    assert counts.git == {"status": 1}
    assert counts.programs == {"keeper": 1, "true": 1}
    assert git_command(["git", "--version"]) == "?"


def test_a_makespan_is_taken_apart_into_what_adds_up_to_it() -> None:
    """Two slots: b needs a; while a is landed, nothing else can be done; c has been ready all the time."""
    work = [
        Worked(key="a", needs=(), start=1.0, end=3.0, landed=4.0, own=1.5),
        Worked(key="c", needs=(), start=2.0, end=5.0, landed=6.0, own=3.0),
        Worked(key="b", needs=("a",), start=4.5, end=7.0, landed=8.0, own=2.0),
    ]
    found = parts(work, 8.0, 2)
    assert found == pytest.approx(
        {"head": 1.0, "agents": 0.5, "turn": 0.75, "landing": 0.5, "shape": 1.0, "tail": 1.0}
    )
    assert sum(found.values()) + sum(one.own for one in work) / 2 == pytest.approx(8.0)
