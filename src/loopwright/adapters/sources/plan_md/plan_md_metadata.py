"""The `metadata.json` of a track: what it says about the plan, and the checkpoints that are written into it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from loopwright.adapters.sources.plan_md.plan_md_meaning import commit_of
from loopwright.adapters.sources.plan_md.plan_md_outline import Item
from loopwright.adapters.sources.plan_md.plan_md_schema import STATUSES, STEPS, TRACK, VERSION
from loopwright.adapters.sources.plan_md.plan_md_steps import (
    AGENT,
    EVALUATE,
    FIX,
    LIMIT,
    PLANNED,
    PLANNED_VERDICT,
    SYNC,
    SYNCING,
    VERDICT,
    Fixes,
    apart,
    by_role,
    entered,
    evaluation_step,
    fix_step,
    given_up_at,
    overridden,
    planned_step,
    position,
    time_text,
)
from loopwright.adapters.sources.plan_md.plan_md_write import in_time
from loopwright.adapters.sources.text.json_edits import JsonEdits
from loopwright.adapters.sources.text.located import Located, inner, line_of
from loopwright.adapters.sources.text.problems import Problems, Unreadable
from loopwright.adapters.sources.text.schema_check import check_types
from loopwright.adapters.sources.text.titles import SHA_LENGTH, one_line
from loopwright.config.nearest import nearest, quoted
from loopwright.config.settings import MOST_FIX_CYCLES
from loopwright.core.plans.tracks import TRACK_TABLE, StepStatus, TrackAction, rule_of
from loopwright.core.replies.doc_sync import DocSync, usable
from loopwright.ports import Mark, Progress, SyncProgress

EXECUTE: Final = "EXECUTE"
PARALLEL: Final = "PARALLEL_EXECUTE"
_THEIRS: Final = frozenset({"created_at", "track_id", "type"})
"""What only the maker of the track writes."""
_WRITTEN: Final = {
    **TRACK,
    "properties": {key: one for key, one in TRACK["properties"].items() if key not in _THEIRS},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """What a track's metadata says."""

    track: str
    verdict: str
    """`passed` or `failed` where an evaluation of the plan is recorded."""
    versioned: bool
    done: Mapping[str, str]
    """Commits by the name of the task that they were made for."""
    evaluated_sha256: str = ""
    """The hash of the plan that our own agent evaluated and found to be good."""
    type: str = ""
    stopped: str = ""
    """Why the table of steps lets nothing run, in words."""
    last_task: str = ""
    """Name of the task that was done last, where the work was left in the middle."""
    max_fix_cycles: int | None = None
    """How many fix cycles the track allows itself."""
    doc_sync: DocSync | None = None
    """Business documents that have to follow, where an evaluator has said so."""
    unnamed: int = 0
    """The line where an evaluator has said so without naming any."""
    unusable: tuple[tuple[int, object], ...] = ()
    """What an evaluator has named that is not a document of the project, each with its line."""


def read_metadata(content: bytes, problems: Problems) -> Metadata | None:
    """Return what the file says, None if it is not a track's; raise `Unreadable` if it cannot be read.

    A value that Loopwright could not write without losing another tool's data is a problem.
    """
    document = JsonEdits(content).document
    if not _is_track(document):
        return None
    check_types(document, _WRITTEN, problems)
    _check_version(document, problems)
    _check_steps(document, problems)
    _check_position(document, problems)
    plain = document.plain()
    checkpoints = _table(_table(plain, "loop_state"), "checkpoints")
    # Our own verdict is for others. It must not keep us from judging the next plan of the file.
    evaluated = {} if _is_ours(checkpoints, PLANNED) else _table(checkpoints, PLANNED)
    execute = _table(checkpoints, _step(plain))
    commits = execute.get("commits")
    entries = [one for one in commits if isinstance(one, dict)] if isinstance(commits, list) else []
    documents = _listed(document) if _is_sync_due(checkpoints) else []
    return Metadata(
        track=str(plain.get("track_id") or ""),
        verdict=verdict_in(f"{evaluated.get('verdict') or ''} {evaluated.get('status') or ''}"),
        versioned="version" in plain,
        evaluated_sha256=_own_verdict(_table(checkpoints, PLANNED)),
        type=str(plain.get("type") or ""),
        stopped=_stopped(plain),
        done={str(one["task"]): str(one.get("sha") or "") for one in entries if one.get("task")},
        last_task=str(execute.get("last_task") or "") if execute.get("status") == "IN_PROGRESS" else "",
        max_fix_cycles=_limit_in(document, problems),
        doc_sync=_flag(checkpoints, [one for _, one in documents]),
        unnamed=_flag_line(document) if _is_sync_due(checkpoints) and not documents else 0,
        unusable=tuple((line, one) for line, one in documents if not usable([one])),
    )


def _limit_in(document: Located, problems: Problems) -> int | None:
    """Return how many fix cycles the track allows itself, at most as many as the setting; None if it does not say."""
    found = _inner(document, "loop_state")
    held = found.value.get("max_fix_cycles") if found is not None and isinstance(found.value, dict) else None
    if held is None or type(held.value) is not int or held.value < 0:
        return None
    if held.value > MOST_FIX_CYCLES:
        problems.warn(held.line, "max_fix_cycles", f"{held.value} is too many: {MOST_FIX_CYCLES} are tried")
    return min(held.value, MOST_FIX_CYCLES)


def _own_verdict(checkpoint: Mapping[str, Any]) -> str:
    """Return the hash of the plan that our agent approved; it says nothing about another plan."""
    passed = "run_by" in checkpoint and checkpoint.get("verdict") == "PASS"
    return str(checkpoint.get("plan_sha256") or "") if passed else ""


def _stopped(plain: Mapping[str, Any]) -> str:
    """Return what another tool waits for a person with: its board, or an active blocker of a step that is blocked."""
    state = _table(plain, "loop_state")
    step, status = str(state.get("current_step") or ""), str(state.get("step_status") or "")
    rule = rule_of(step, status)
    if rule is None or rule.action is not TrackAction.ASK:
        return ""
    if status == StepStatus.BOARD_REVIEW:
        return f"its {step} waits for a board review"
    listed = plain.get("blockers")
    blockers = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    active = [
        f"{one.get('id')}: {one.get('description')}"
        for one in blockers
        if one.get("status") == "ACTIVE" and not str(one.get("id")).startswith("loopwright-")
    ]
    return f"its step {step} is blocked by {one_line('; '.join(active))}" if active else ""


def _check_position(document: Located, problems: Problems) -> None:
    """Note a status that the table of steps does not have for the current step."""
    state = _inner(document, "loop_state")
    held = state.value if state is not None and isinstance(state.value, dict) else {}
    step, status = (held.get(name) for name in ("current_step", "step_status"))
    if step is None or status is None or step.value not in TRACK_TABLE or status.value not in STATUSES:
        return
    if rule_of(str(step.value), str(status.value)) is None:
        known = ", ".join(TRACK_TABLE[str(step.value)])
        problems.note(
            status.line, "loop_state.step_status", f"{step.value} is never {status.value}: use {known}"
        )


def _check_version(document: Located, problems: Problems) -> None:
    found = inner(document, "version")
    if found is not None and isinstance(found.value, int) and found.value > VERSION:
        problems.note(
            found.line, "version", f"{found.value} is newer than {VERSION}, the newest that Loopwright knows"
        )


def _check_steps(document: Located, problems: Problems) -> None:
    """Note which checkpoint is probably misspelt: no tool would find it."""
    checkpoints = _inner(document, "loop_state", "checkpoints")
    held = checkpoints.value if checkpoints is not None and isinstance(checkpoints.value, dict) else {}
    for name, found in held.items():
        guess = None if name in STEPS else nearest(name, STEPS, cutoff=0.8)
        if guess is not None:
            message = f"an unknown step, it is ignored: did you mean {guess}?"
            problems.warn(found.line, f"loop_state.checkpoints.{quoted(name)[1:-1]}", message)


def _is_sync_due(checkpoints: Mapping[str, Any]) -> bool:
    required = _table(checkpoints, EVALUATE).get("business_sync_required") is True
    return required and _table(checkpoints, SYNC).get("status") != "PASSED"


def _listed(document: Located) -> list[tuple[int, object]]:
    """Return what is named as a document, each with its line."""
    step = _inner(document, "loop_state", "checkpoints", SYNC)
    held = inner(step, "affected_docs") if step is not None else None
    return [(one.line, one.plain()) for one in held.value] if held and isinstance(held.value, list) else []


def _flag_line(document: Located) -> int:
    return line_of(document, f"loop_state.checkpoints.{EVALUATE}.business_sync_required")


def _flag(checkpoints: Mapping[str, Any], listed: Iterable[object]) -> DocSync | None:
    documents = usable(listed)
    reason = str(_table(checkpoints, SYNC).get("reason") or "")
    return DocSync(reason=reason, documents=documents) if documents else None


def verdict_in(words: str) -> str:
    """Return `passed` or `failed` if the words say so, the first of them that does."""
    for word in words.upper().replace("*", " ").replace("_", " ").split():
        word = word.strip(".,:;()[]✅❌")
        if word in ("PASS", "PASSED", "APPROVED"):
            return "passed"
        if word in ("FAIL", "FAILED", "REJECTED"):
            return "failed"
    return ""


def checkpointed(
    content: bytes, progress: Progress, tasks: Iterable[Item], verdict: str, phases: list[str]
) -> bytes:
    """Return the file with its checkpoints as the progress has them, or raise `Unreadable`.

    `phases` are those of which nothing is left to do.
    """
    edits = JsonEdits(content)
    if not _is_track(edits.document):
        return content
    plain = edits.document.plain()
    wanted = _wanted(plain, progress, tuple(tasks), verdict)
    execute = wanted["loop_state"]["checkpoints"][_step(plain)]
    if progress.phases and phases:
        execute["phases_completed"] = [one_line(phase) for phase in phases]
    merge(edits, edits.document, wanted)
    if progress.phases and not phases:
        forget(edits, _step(plain), ("phases_completed",), wanted)
    for step in (_step(plain), FIX):
        forget(edits, step, ("completed_at", "last_task", "last_commit"), wanted)
    for step, keys in ((PLANNED, PLANNED_VERDICT), (EVALUATE, VERDICT)):
        if _is_ours(_table(_table(plain, "loop_state"), "checkpoints"), step):
            forget(edits, step, keys, wanted)
    if edits.bytes() != content:
        edits.put(edits.document, "updated_at", time_text(progress.at))
    return edits.bytes()


def _is_ours(checkpoints: Mapping[str, Any], name: str) -> bool:
    """Return whether we wrote a checkpoint: another tool takes back its own."""
    said = _table(checkpoints, name)
    return "run_by" in said or said.get("agent") == AGENT


def forget(edits: JsonEdits, name: str, keys: Iterable[str], wanted: Mapping[str, Any]) -> None:
    """Take out of a checkpoint what it said of its end, if that does not hold any more."""
    step = _table(_table(_table(wanted, "loop_state"), "checkpoints"), name)
    table = _inner(edits.document, "loop_state", "checkpoints", name)
    if table is not None and step:
        for key in keys:
            if key not in step:
                edits.drop(table, key)


def _is_track(document: Located) -> bool:
    """Return whether this is a track's file: another program may keep a `metadata.json` beside a plan."""
    if not isinstance(document.value, dict):
        raise Unreadable(document.line, "metadata is a table")
    return not document.value or bool({"track_id", "loop_state"} & document.value.keys())


def _wanted(
    plain: dict[str, Any], progress: Progress, tasks: tuple[Item, ...], verdict: str
) -> dict[str, Any]:
    state = _table(plain, "loop_state")
    checkpoints = _table(state, "checkpoints")
    step = _step(plain)
    before = _table(checkpoints, step)
    started = time_text(progress.started_at or progress.at)
    fixes = apart(tasks, progress)
    execute = _execute(before, progress, fixes, started)
    wanted: dict[str, Any] = {}
    steps: dict[str, Any] = {step: execute}
    if _table(checkpoints, "PLAN").get("status") in (None, "", "NOT_STARTED"):
        # There is a plan: it runs.
        steps["PLAN"] = {"status": "PASSED", "plan_version": 1, "tasks_total": len(fixes.own)}
    if "version" not in plain:
        wanted["version"] = VERSION
    planned, said = _table(checkpoints, PLANNED), progress.evaluated
    is_open = planned.get("status") in (None, "", "NOT_STARTED")
    # What our agent said of exactly this plan holds; what we said of an earlier one does not.
    holds = said is not None and said.source_sha256 == _own_verdict(planned)
    if is_open or (_is_ours(checkpoints, PLANNED) and not holds):
        steps |= planned_step(verdict, said)
    if because := overridden(verdict, progress):
        # The verdict of another tool stays as it is. What you decided about it is written beside it.
        steps[PLANNED] = {**steps.get(PLANNED, {}), "overridden_because": because}
    if progress.sync is not None:
        steps[SYNC] = _sync(progress.sync)
    if fixes.items:
        steps[FIX] = fix_step(fixes, progress)
    if progress.discovered:
        wanted["discovered_work"] = _discovered(plain.get("discovered_work"), progress, tasks)
    blockers = _blockers(plain.get("blockers"), progress, fixes, step)
    if blockers:
        wanted["blockers"] = blockers
    is_placed = bool(state.get("current_step"))
    place = position(step, execute, checkpoints, fixes, progress, is_placed=is_placed)
    # We write our verdict once. If there is no verdict yet, another tool may be about to write one.
    evaluated = evaluation_step(fixes, progress) if place else None
    goes_on = progress.completed_at is None and not progress.rests
    anew = goes_on and _is_ours(checkpoints, EVALUATE)
    if evaluated is None and (anew or place.get("current_step") == EVALUATE):
        evaluated = {"status": "NOT_STARTED"}
    if evaluated is not None:
        needed = {"business_sync_required": True} if progress.sync is not None else {}
        steps[EVALUATE] = {**evaluated, **needed}
    if plain.get("status") in (None, "", "new") or (goes_on and plain.get("status") == "complete"):
        wanted["status"] = "in_progress"
    if place.get("current_step") == "COMPLETE":
        wanted["status"] = "complete"
    elif place and progress.execution is not None and plain.get("status") == "complete":
        wanted["status"] = "in_progress"
    loop: dict[str, Any] = {"checkpoints": steps}
    if progress.fix_cycles > 0:
        loop["fix_cycle_count"] = progress.fix_cycles
        limit = progress.max_fix_cycles
        loop |= {"max_fix_cycles": limit} if limit > 0 else {}
    due = {EVALUATE: steps.get(EVALUATE), **({SYNC: steps[SYNC]} if SYNC in steps else {})}
    placed = entered(place, {name: one for name, one in due.items() if one}, str(plain.get("track_id") or ""))
    return {**wanted, "loop_state": {**loop, **placed}}


def _execute(before: dict[str, Any], progress: Progress, fixes: Fixes, started: str) -> dict[str, Any]:
    tasks = fixes.own
    done = [item for item in tasks if item.mark is Mark.DONE]
    execute: dict[str, Any] = {
        "status": _execution(progress, fixes),
        "started_at": started,
        **by_role(EXECUTE, progress.agent or str(before.get("run_by") or "")),
        "tasks_completed": len(done),
        "tasks_total": len(tasks),
    }
    timed = in_time(done, progress)
    if timed:
        execute["last_task"] = timed[-1].name
    commits = [item for item in timed if commit_of(item)]
    if commits:
        execute["last_commit"] = commit_of(commits[-1])
    execute["commits"] = _commits(before.get("commits"), progress, commits)
    ends = [one.ended_at for item in done if (one := progress.items.get(item.key)) and one.ended_at]
    if progress.completed_at is not None and not (progress.execution and before.get("completed_at")):
        execute["completed_at"] = time_text(progress.completed_at)
    elif execute["status"] == "PASSED" and (before.get("completed_at") or (progress.execution and ends)):
        # While later steps are in progress.
        execute["completed_at"] = before.get("completed_at") or time_text(max(ends))
    return execute


def _execution(progress: Progress, fixes: Fixes) -> str:
    over = progress.completed_at is not None or progress.rests
    later = over or fixes.items or progress.execution
    if fixes.is_worked_off and (progress.judged is not None or not progress.failed) and later:
        return "PASSED"  # what the evaluation of the whole found is another step
    if not over:
        return "IN_PROGRESS"
    return "FAILED" if progress.failed else "PARTIAL_FAIL"


def _sync(sync: SyncProgress) -> dict[str, Any]:
    """Return the checkpoint of the step that brings business documents up to date."""
    commit = {"commit_sha": sync.commit[:SHA_LENGTH]} if sync.commit else {}
    return {
        "status": SYNCING[sync.mark],
        "reason": sync.reason,
        "affected_docs": list(sync.documents),
        **commit,
    }


def _commits(before: Any, progress: Progress, done: list[Item]) -> list[Any]:
    """Return the list of commits: what others wrote stays, each of our tasks has one entry."""
    found = list(before) if isinstance(before, list) else []
    places = _places(found, "task")
    for item in done:
        standing = progress.items.get(item.key)
        subject = (standing.subject or standing.summary) if standing is not None else ""
        said = one_line(subject or item.title)
        if item.name not in places:
            found.append({"sha": commit_of(item), "message": said, "task": item.name})
        elif standing is not None:
            place = places[item.name]
            found[place] = {**found[place], "sha": commit_of(item), "message": said}
    return found


def _places(found: list[Any], key: str) -> dict[str, int]:
    """Return where in a list each entry is, by its text at a key; what else others wrote there has no place."""
    named = ((one.get(key), at) for at, one in enumerate(found) if isinstance(one, dict))
    return {name: at for name, at in named if isinstance(name, str)}


_DECIDED: Final = {
    Mark.OPEN: "open",
    Mark.RUNNING: "in_progress",
    Mark.DONE: "done",
    Mark.SKIPPED: "dismissed",
}


def _discovered(before: Any, progress: Progress, tasks: tuple[Item, ...]) -> list[Any]:
    """Return the list of discovered work: entries of other tools stay, and each entry that we wrote is there once."""
    found = list(before) if isinstance(before, list) else []
    places = _places(found, "title")
    names = {item.key: item.name for item in tasks}
    for one in progress.discovered:
        title = one_line(one.title)
        entry = {
            "title": title,
            "reason": one_line(one.reason),
            "recommendation": one.recommendation,
            "found_in": names.get(one.by, one.by),
            "status": _DECIDED.get(one.mark, "open"),
        }
        if title not in places:
            places[title] = len(found)
            found.append(entry)
        else:
            found[places[title]] = {**found[places[title]], **entry}
    return found


def _blockers(before: Any, progress: Progress, fixes: Fixes, step: str) -> list[Any]:
    """Return the list of blockers: a task that waits for a person has an active one, which it resolves itself."""
    found = list(before) if isinstance(before, list) else []
    places = _places(found, "id")
    _limit(found, places.get(LIMIT), progress)
    if progress.execution is not None:
        _evaluator(found, places.get(f"loopwright-{progress.execution.key}"), progress)
    for item in (*fixes.own, *fixes.items):
        standing, name = progress.items.get(item.key), f"loopwright-{item.key}"
        if standing is None:
            continue
        place = places.get(name)
        if standing.mark is Mark.BLOCKED:
            told = {
                "id": name,
                "description": f"{item.name}: {one_line(standing.reason) or 'no reason was given'}",
                "blocked_at": time_text(standing.ended_at or progress.started_at or progress.at),
                "blocked_step": FIX if item in fixes.items else step,
                "status": "ACTIVE",
            }
            if place is None:
                found.append(told)
            elif (found[place].get("status"), found[place].get("description")) != (
                "ACTIVE",
                told["description"],
            ):
                found[place] = {**found[place], **told}
        elif place is not None:
            found[place] = {**found[place], "status": "RESOLVED"}
    return found


def _evaluator(found: list[Any], place: int | None, progress: Progress) -> None:
    """Write that the evaluation itself waits for a person, as long as that is so."""
    execution = progress.execution
    if execution is None:
        return
    if execution.mark is Mark.BLOCKED and given_up_at(progress) is None:
        told = {
            "id": f"loopwright-{execution.key}",
            "description": one_line(execution.reason) or "no reason was given",
            "blocked_at": time_text(execution.ended_at or progress.at),
            "blocked_step": EVALUATE,
            "status": "ACTIVE",
        }
        if place is None:
            found.append(told)
        else:
            found[place] = {**found[place], **told}
    elif place is not None:
        found[place] = {**found[place], "status": "RESOLVED"}


def _limit(found: list[Any], place: int | None, progress: Progress) -> None:
    """Write that no more fixes are tried, as long as that is so."""
    at = given_up_at(progress)
    if at is not None:
        told = {
            "id": LIMIT,
            "description": f"Fix cycle limit exceeded ({progress.max_fix_cycles} cycles)",
            "blocked_at": time_text(at),
            "blocked_step": FIX,
            "status": "ACTIVE",
        }
        if place is None:
            found.append(told)
        else:
            found[place] = {**found[place], **told}
    elif place is not None:
        found[place] = {**found[place], "status": "RESOLVED"}


def _step(plain: Mapping[str, Any]) -> str:
    """Return the name of the step that this file uses: both are in use."""
    state = _table(plain, "loop_state")
    checkpoints = _table(state, "checkpoints")
    parallel = PARALLEL in checkpoints or state.get("current_step") == PARALLEL
    return PARALLEL if parallel and EXECUTE not in checkpoints else EXECUTE


def _inner(table: Located, *keys: str) -> Located | None:
    """Return a table inside of tables, if it is there."""
    found: Located | None = table
    for key in keys:
        found = found.value.get(key) if found is not None and isinstance(found.value, dict) else None
    return found if found is not None and isinstance(found.value, dict) else None


def _table(value: Any, key: str) -> dict[str, Any]:
    found = value.get(key) if isinstance(value, Mapping) else None
    return found if isinstance(found, dict) else {}


def merge(edits: JsonEdits, table: Located, wanted: Mapping[str, Any]) -> None:
    """Give a table these values; inside of tables that are there already only what differs is written."""
    assert isinstance(table.value, dict)
    for key, value in wanted.items():
        held = table.value.get(key)
        if isinstance(value, dict) and held is not None and isinstance(held.value, dict):
            merge(edits, held, value)
        elif isinstance(value, list) and held is not None and isinstance(held.value, list):
            present = held.plain()
            if present == value[: len(present)]:
                for one in value[len(present) :]:
                    edits.append(held, one)
            else:
                edits.put(table, key, value)
        else:
            edits.put(table, key, value)
