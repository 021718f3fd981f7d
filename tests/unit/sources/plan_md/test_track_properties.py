"""Whatever a track's `metadata.json` contains and however its plan goes, nothing of others' in it is lost."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import jsonschema
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from tests.unit.sources.plan_md.test_plan_md_properties import items

from loopwright.adapters.sources.plan_md.plan_md import PlanMdSource
from loopwright.adapters.sources.plan_md.plan_md_schema import TRACK
from loopwright.ports import EvaluatedPlan, FixTask, ItemProgress, Judged, Mark, Progress, SyncProgress

SOURCE = PlanMdSource()
AT = datetime(2026, 11, 16, 12, tzinfo=UTC)
PLAN = b"## A\n\n- [ ] Task 1: one\n- [x] Task 2: two <!-- abc1234 -->\n\n## B\n\n- [ ] Task 3: three\n"
OWN = ("1", "2", "3")
STEPS = ("PLAN", "EVALUATE_PLAN", "EXECUTE", "PARALLEL_EXECUTE", "EVALUATE_EXECUTION", "FIX", "BUSINESS_SYNC")
quick = settings(max_examples=25, deadline=None, phases=(Phase.explicit, Phase.generate))

words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
plain = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-9, 9), words),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(words, inner, max_size=2)),
    max_leaves=4,
)
foreign = st.dictionaries(words.map(lambda name: f"x-{name}"), plain, max_size=2)
"""Keys that no program of ours knows."""
times = st.integers(0, 3).map(lambda hours: AT + timedelta(hours=hours))
statuses = st.sampled_from(["NOT_STARTED", "IN_PROGRESS", "PASSED", "FAILED", "", None])


def table(**known: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Draw a table with some of these keys, and others of somebody else's."""
    optional = st.fixed_dictionaries({}, optional=known)
    return st.tuples(optional, foreign).map(lambda drawn: {**drawn[0], **drawn[1]})


entries = st.lists(
    st.one_of(plain, st.fixed_dictionaries({"task": st.sampled_from(["Task 1", "Task 9"]), "sha": words})),
    max_size=2,
)
checkpoint = table(
    status=statuses,
    agent=st.sampled_from(["loopwright", "loop-executor"]),
    verdict=st.sampled_from(["PASS", "FAIL"]),
    last_task=st.sampled_from(["Task 2", "Task 9"]),
    commits=entries,
    completed_at=st.just("2026-11-16T12:00:00Z"),
)
tracks = table(
    version=st.just(3),
    status=st.sampled_from(["new", "in_progress", "complete", "blocked"]),
    blockers=entries,
    discovered_work=entries,
    loop_state=table(
        current_step=st.sampled_from([*STEPS, "COMPLETE"]),
        step_status=statuses,
        checkpoints=table(**dict.fromkeys(STEPS, checkpoint)),
    ),
).map(lambda drawn: {"track_id": "t", **drawn})
sound_entries = st.lists(st.fixed_dictionaries({"title": words, "task": words, "id": words}), max_size=2)
sound_checkpoint = st.tuples(
    table(
        agent=st.sampled_from(["loopwright", "loop-executor"]),
        verdict=st.sampled_from(["PASS", "FAIL"]),
        last_task=st.sampled_from(["Task 2", "Task 9"]),
        commits=sound_entries,
        completed_at=st.sampled_from(["2026-11-16T12:00:00Z", None]),
    ),
    st.sampled_from(["NOT_STARTED", "IN_PROGRESS", "PASSED", "FAILED"]),
).map(lambda drawn: {**drawn[0], "status": drawn[1]})
sound_tracks = table(
    version=st.just(3),
    status=st.sampled_from(["new", "in_progress", "complete", "blocked"]),
    blockers=sound_entries,
    discovered_work=sound_entries,
    loop_state=table(
        current_step=st.sampled_from([*STEPS, "COMPLETE"]),
        step_status=st.sampled_from(["NOT_STARTED", "IN_PROGRESS"]),
        checkpoints=table(**dict.fromkeys(STEPS, sound_checkpoint)),
    ),
).map(lambda drawn: {"track_id": "t", **drawn})
"""Those whose values are as the published schema has them; what is missing is ours to add."""
progresses = st.builds(
    Progress,
    plan_id=st.just("plan_1"),
    at=times,
    items=st.dictionaries(st.sampled_from([*OWN, "fix-1"]), items, max_size=4),
    fixes=st.sampled_from([(), (FixTask(key="fix-1", title="Mend it", added_at=AT),)]),
    sync=st.sampled_from([None, SyncProgress(documents=("a.md",), reason="", mark=Mark.OPEN)]),
    started_at=st.just(AT),
    completed_at=st.one_of(st.none(), times),
    rests=st.booleans(),
    failed=st.booleans(),
    fix_cycles=st.integers(0, 2),
    max_fix_cycles=st.just(2),
    phases=st.booleans(),
    evaluated=st.sampled_from(
        [
            None,
            EvaluatedPlan(passed=True, at=AT),
            EvaluatedPlan(passed=True, at=AT, by="claude"),
            EvaluatedPlan(passed=False, at=AT, against=("no criterion can fail",)),
        ]
    ),
    judged=st.one_of(st.none(), st.builds(Judged, passed=st.booleans(), at=times, failed=st.just(("lint",)))),
)


def theirs(value: Any) -> Any:
    """Return what nobody but others wrote: the keys that we do not know, wherever they are."""
    if not isinstance(value, dict):
        return None
    known = {
        key: found for key, inner in value.items() if not key.startswith("x-") and (found := theirs(inner))
    }
    return {**known, **{key: inner for key, inner in value.items() if key.startswith("x-")}}


@quick
@given(tracks, st.lists(progresses, min_size=1, max_size=3), st.sampled_from([None, 1, 4]))
def test_a_track_is_told_once_and_keeps_what_others_wrote(
    track: dict[str, Any], told: list[Progress], indent: int | None
) -> None:
    files = {"plan.md": PLAN, "metadata.json": json.dumps(track, indent=indent).encode()}
    before, others = SOURCE.parse(files, "plan.md"), theirs(track)
    for progress in told:
        files |= SOURCE.written(files, progress)
        assert SOURCE.written(files, progress) == {}, "twice is once"
        now = json.loads(files["metadata.json"])
        assert theirs(now) == others
        work = SOURCE.parse(files, "plan.md")
        assert work.sha256 == before.sha256
        checkpoints = now["loop_state"]["checkpoints"]
        execute = checkpoints["EXECUTE" if "EXECUTE" in checkpoints else "PARALLEL_EXECUTE"]
        done = [task for task in work.tasks if task.key in OWN and task.mark is Mark.DONE]
        assert (execute["tasks_completed"], execute["tasks_total"]) == (len(done), len(OWN))
        assert execute.get("last_task") in ({f"Task {task.key}" for task in done} or {None})
        if progress.completed_at is None and not progress.rests:
            assert now["status"] not in ("new", "complete")
            assert now["loop_state"]["current_step"] in (
                "EXECUTE",
                "PARALLEL_EXECUTE",
                "FIX",
                "EVALUATE_EXECUTION",
            )


BY_HAND = Progress(
    plan_id="plan_1",
    at=AT,
    items={key: ItemProgress(mark=Mark.DONE) for key in OWN},
    started_at=AT,
    rests=True,
)
"""Every task is done, and nothing says when."""


@quick
@example({"track_id": "t"}, [BY_HAND])
@given(sound_tracks, st.lists(progresses, min_size=1, max_size=3))
def test_what_is_written_into_a_sound_track_is_as_the_published_schema_has_it(
    track: dict[str, Any], told: list[Progress]
) -> None:
    files = {"plan.md": PLAN, "metadata.json": json.dumps(track).encode()}
    for progress in told:
        files |= SOURCE.written(files, progress)
        jsonschema.validate(json.loads(files["metadata.json"]), TRACK)
