"""An orchestrator's roadmap as a work source: its milestones are tasks, closed by status alone."""

import re
from pathlib import Path, PurePosixPath
from typing import Final

from loopwright.adapters.sources.orchestrator.roadmap_bundle import (
    CHECKS,
    STATE_FILE,
    Bundle,
    bundle_folder,
    is_template,
    read_bundle,
)
from loopwright.adapters.sources.orchestrator.roadmap_closeout import Pointer, StatusChange, close_out
from loopwright.adapters.sources.orchestrator.roadmap_text import SECTIONS
from loopwright.adapters.sources.spec.plan_format import MAX_DESCRIPTION
from loopwright.adapters.sources.text.criteria import acceptance, lines_of, runnable
from loopwright.adapters.sources.text.json_edits import JsonEdits, storable
from loopwright.adapters.sources.text.located import Located, inner, line_of, plain, tables, words
from loopwright.adapters.sources.text.meaning import fingerprint
from loopwright.adapters.sources.text.problems import Unreadable
from loopwright.adapters.sources.text.reading import folder_of, located_at, read_file
from loopwright.core.values.criteria import checks_in
from loopwright.core.values.errors import BadPlan
from loopwright.core.values.policy import GateCommand
from loopwright.ports import Files, ItemProgress, Mark, PlannedTask, PlannedWork, Progress, Source

FOLDER: Final = "orchestrator"
_OURS: Final = "Loopwright: "
_COMPLETED: Final = "Completed by Loopwright"
_COMMIT: Final = re.compile(rf"{_COMPLETED} \S+ at ([0-9a-f]{{7,64}})\b")
_MARKS: Final = {"pending": Mark.OPEN, "in-progress": Mark.RUNNING, "done": Mark.DONE}
_STATUS: Final = {Mark.OPEN: "pending", Mark.RUNNING: "in-progress", Mark.DONE: "done"}


class OrchestratorSource(Source):
    """Reads the active roadmap of an `orchestrator/` folder, and closes its milestones."""

    kind = "orchestrator"
    format_name = "Orchestrator folder"
    usual_places = ("orchestrator",)

    def recognises(self, place: Path) -> bool:
        """Take the folder by its name or by what is in it, and its state.json."""
        if place.is_dir():
            return place.name == FOLDER or ((place / STATE_FILE).is_file() and (place / "roadmaps").is_dir())
        return place.name == STATE_FILE and (place.parent / "roadmaps").is_dir()

    def canonical(self, place: Path) -> Path:
        """Return the folder of a state.json."""
        return place.parent if place.name == STATE_FILE and place.is_file() else place

    def files(self, place: Path) -> Files:
        """Return state.json and the files of the bundle that it names, as far as they are there."""
        folder = folder_of(place)
        if not (folder / STATE_FILE).is_file():
            return {}
        found = {STATE_FILE: read_file(folder / STATE_FILE)}
        try:
            active = bundle_folder(JsonEdits(found[STATE_FILE]).document)
        except Unreadable as broken:
            raise located_at(f"{folder.name}/{STATE_FILE}".lstrip("/"), broken) from broken
        if active is not None:
            names = [f"{active}/{each}" for each in ("roadmap.md", "roadmap-view.json", "verification.md")]
            names.append(f"{PurePosixPath(active).parent}/roadmap-history.md")
            found |= {name: read_file(folder / name) for name in names if (folder / name).is_file()}
        return found

    def parse(self, files: Files, name: str) -> PlannedWork:
        """Return the milestones as tasks; a bundle in which anything is wrong is refused, never finished."""
        if is_template(files):
            note = f"{name}: this is the template of the scaffold: scaffold a roadmap from it to have it done"
            return PlannedWork(title="Roadmap template", tasks=(), sha256=fingerprint(()), notes=(note,))
        bundle = read_bundle(files, name)
        tasks = tuple(_task(bundle, one) for one in bundle.milestones)
        context = _context(bundle)
        settings = {"parallel": plain(bundle.state.document, "max_parallel_rounds", 1)}
        title = bundle.roadmap.lines[0].lstrip("# ").strip()[:200] or words(
            bundle.view.document, "roadmap_id"
        )
        return PlannedWork(
            title=title,
            tasks=tasks,
            settings=settings,
            baseline=_baseline(bundle.verification),
            sha256=fingerprint(tasks, title, context, settings, bundle.folder),
            context=context,
            base_branch=words(bundle.state.document, "base_branch"),
            notes=(*bundle.notes, *_notes(bundle, name)),
            open_ends=_open_ends(bundle),
        )

    def written(self, files: Files, progress: Progress) -> Files:
        """Return the bundle with its milestones closed as far as they are done, and state.json with what blocks it."""
        bundle = read_bundle(files, FOLDER)
        changes: list[StatusChange] = []
        pointers: list[Pointer] = []
        for one in bundle.milestones:
            key, present = words(one, "milestone_id"), words(one, "status")
            item = progress.items.get(key)
            target = _STATUS.get(item.mark, present) if item is not None else present
            if target != present:
                changes.append(_change(one, target))
            if item is not None and item.mark in _STATUS:
                pointers.append(_pointer(one, item, progress.plan_id))
        made = close_out(files, bundle, changes, pointers)
        state = _told_state(
            bundle, {change.milestone_id: change.target_status for change in changes}, progress
        )
        return {**made, **({STATE_FILE: state} if state != files[STATE_FILE] else {})}


def _put_error(edits: JsonEdits, message: str | None) -> None:
    """Write our error behind that of another controller, or with None take only ours out."""
    errors = inner(edits.document, "resume_errors")
    if errors is None or not isinstance(errors.value, dict):
        if message is not None:
            edits.put(edits.document, "resume_errors", {"controller": f"{_OURS}{storable(message)}"})
        return
    present = inner(errors, "controller")
    if present is not None and not isinstance(present.value, str | None):
        return  # not in the contract, so not ours to change
    theirs, found, _ = (present.text if present is not None and present.value else "").partition(_OURS)
    if message is not None:
        edits.put(
            errors, "controller", f"{theirs}{' ' if theirs and not found else ''}{_OURS}{storable(message)}"
        )
    elif found and theirs.strip():
        edits.put(errors, "controller", theirs.rstrip())
    elif found:
        edits.drop(errors, "controller")


def _told_state(bundle: Bundle, targets: dict[str, str], progress: Progress) -> bytes:
    edits = bundle.state
    trouble = _trouble(progress)
    _put_error(edits, "; ".join(trouble) if trouble else None)
    statuses = {words(one, "milestone_id"): words(one, "status") for one in bundle.milestones} | targets
    is_verified = progress.final or (progress.judged is not None and progress.judged.passed)
    is_done = is_verified and not trouble and all(status == "done" for status in statuses.values())
    rounds = tables(inner(edits.document, "active_rounds"))
    is_free = is_done and not rounds and not plain(edits.document, "roadmap_update")
    if is_free and not _foreign_errors(bundle):
        edits.put(edits.document, "controller_stage", "done")
    elif is_free or words(edits.document, "controller_stage") == "done":
        # What another controller could not resume is its own to clear: it looks for that where it dispatches rounds.
        edits.put(edits.document, "controller_stage", "dispatch-rounds")
    return edits.bytes()


def _trouble(progress: Progress) -> list[str]:
    """Return what the plan needs a person for: its blocked tasks, and why it was not verified."""
    found = [
        f"{key} is blocked: {item.reason or 'no reason was given'}"
        for key, item in progress.items.items()
        if item.mark is Mark.BLOCKED
    ]
    if progress.judged is not None and not progress.judged.passed:
        found.append(f"the checks of the whole failed: {', '.join(progress.judged.failed)}")
    elif progress.failed or (progress.stopped and not found):
        found.append(f"the plan is not verified: {progress.stopped}")
    return found


def _foreign_errors(bundle: Bundle) -> bool:
    """Return whether there is an error of another controller, which nothing that we do resolves."""
    errors = dict(plain(bundle.state.document, "resume_errors", {}))
    ours = errors.pop("controller", None)
    theirs = ours.partition(_OURS)[0].strip() if isinstance(ours, str) else ours
    return bool(theirs) or any(errors.values())


def _open_ends(bundle: Bundle) -> tuple[str, ...]:
    """Return what keeps the roadmap open; an error of our own only where no milestone is left that clears it."""
    ours = f"controller: {_OURS}"
    return tuple(one for one in bundle.open_ends if not bundle.unfinished or not one.startswith(ours))


def _change(milestone: Located, target: str) -> StatusChange:
    return StatusChange(
        milestone_id=words(milestone, "milestone_id"),
        expected_current_status=words(milestone, "status"),
        target_status=target,
        roadmap_view_anchor=words(milestone, "status_anchor"),
    )


def _pointer(milestone: Located, item: ItemProgress, plan_id: str) -> Pointer:
    """Return the line below a milestone that says what completed it, or what takes that line out again."""
    start = f"{_COMPLETED} {plan_id}"
    parts = [f"{start}{f' at {item.commit}' if item.commit else ''}"]
    parts += [item.summary] if item.summary.strip() else []
    parts += [f"evidence: {', '.join(item.checks)}"] if item.checks else []
    text = "; ".join(parts) if item.mark is Mark.DONE else ""
    return Pointer(
        anchor_id=words(milestone, "completion_anchor"), text=" ".join(text.split()), instead_of=start
    )


def _task(bundle: Bundle, milestone: Located) -> PlannedTask:
    key = words(milestone, "milestone_id")
    block = bundle.texts[key]
    parts = [bundle.roadmap.between(block.line + 1, block.blocks[0].line if block.blocks else block.end)]
    # What completed a milestone is its status, not what it asks for.
    parts += [
        bundle.roadmap.between(each.line, each.end) for each in block.blocks if "Direction id" in each.fields
    ]
    description = "\n\n".join(parts)
    if len(description) > MAX_DESCRIPTION:
        where = f"{bundle.label}/{bundle.folder}/roadmap.md:{block.line}"
        raise BadPlan(bundle.label, (f"{where}: a milestone of more than {MAX_DESCRIPTION} characters",))
    criteria = (block.said("Completion signal"),) if block.said("Completion signal") else ()
    return PlannedTask(
        key=key,
        title=words(milestone, "title"),
        description=description,
        criteria=criteria,
        acceptance=acceptance(criteria),
        depends_on=tuple(dict.fromkeys(plain(milestone, "depends_on"))),
        phase=words(milestone, "parallel_lane"),
        mark=_MARKS[words(milestone, "status")],
        commit=_commit(bundle, key) if words(milestone, "status") == "done" else None,
        line=line_of(milestone, "milestone_id"),
    )


def _commit(bundle: Bundle, key: str) -> str | None:
    """Return the commit that our newest pointer below a milestone names."""
    block = bundle.texts[key]
    found = _COMMIT.findall(bundle.roadmap.between(block.line, block.end))
    return str(found[-1]) if found else None


def _context(bundle: Bundle) -> str:
    sections = [bundle.roadmap.between(*bundle.roadmap.sections[name]) for name in SECTIONS[:-1]]
    return "\n\n".join([*sections, bundle.verification.strip()])


def _baseline(verification: str) -> tuple[GateCommand, ...]:
    """Return the commands among the baseline checks: each line of that section that is one, with or without a label."""
    _, _, below = f"\n{verification}".partition(f"\n## {CHECKS[0]}")
    section = below.partition("\n## ")[0].partition("\n")[2]
    return runnable(command for entry in lines_of(section) for command in checks_in(entry))


def _notes(bundle: Bundle, name: str) -> tuple[str, ...]:
    if bundle.is_terminal:
        return (f"{name}: every milestone of {bundle.folder} is done",)
    notes = [f"{name}: not finished: {each}" for each in bundle.open_ends]
    if bundle.resumes:
        notes.insert(
            0,
            f"{name}: Loopwright resumes what was begun: {', '.join(bundle.unfinished) or 'nothing is left'}",
        )
    return tuple(notes)
