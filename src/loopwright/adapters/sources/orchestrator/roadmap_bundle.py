"""The active roadmap bundle of an orchestrator folder: found through state.json, checked, and only then believed."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from loopwright.adapters.sources.orchestrator.roadmap_schema import (
    CONTRACT,
    RETIRED,
    ROADMAP_VIEW,
    STATE,
    STATUSES,
)
from loopwright.adapters.sources.orchestrator.roadmap_text import (
    DIRECTION_FIELDS,
    MILESTONE_FIELDS,
    SECTIONS,
    Block,
    Roadmap,
    read_roadmap,
)
from loopwright.adapters.sources.text.json_edits import JsonEdits, opened
from loopwright.adapters.sources.text.located import Located, inner, line_of, plain, tables, words
from loopwright.adapters.sources.text.plan_file import decoded_lines
from loopwright.adapters.sources.text.problems import Problems, Unreadable, check_graph, refuse
from loopwright.adapters.sources.text.schema_check import check_schema
from loopwright.config.nearest import quoted
from loopwright.core.values.wording import to_type
from loopwright.ports import Files

STATE_FILE: Final = "state.json"
_TEMPLATE: Final = "TEMPLATE_"
_ADDED: Final = (
    f", or let `{to_type('scaffold', 'orchestrator', migrate=True)}` add what an older folder lacks"
)
_OTHER: Final = (
    "if another tool uses this folder, name the file with your work instead, "
    f"or rename the folder and type `{to_type('scaffold', 'orchestrator', 'GOAL')}`"
)
FOREIGN: Final = f"this does not look like the state of an orchestrator folder ({CONTRACT}): {_OTHER}"
CHECKS: Final = (
    "Baseline Checks",
    "Alignment Checks",
    "Task-Specific Checks",
    "Manual Checks",
    "Roadmap Overrides",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """A bundle in which everything agrees."""

    label: str
    """What a person calls the orchestrator's folder."""
    folder: str
    """Where it is below the orchestrator's folder."""
    state: JsonEdits
    view: JsonEdits
    roadmap: Roadmap
    verification: str
    texts: Mapping[str, Block]
    """Each milestone's part of roadmap.md."""
    notes: tuple[str, ...]

    @property
    def milestones(self) -> list[Located]:
        """The milestones of the view, which decides."""
        return tables(inner(self.view.document, "milestones"))

    @property
    def unfinished(self) -> tuple[str, ...]:
        """The milestones that are not done."""
        return tuple(words(one, "milestone_id") for one in self.milestones if words(one, "status") != "done")

    @property
    def open_ends(self) -> tuple[str, ...]:
        """What keeps an orchestrator from being finished even when every milestone is done."""
        state = self.state.document
        rounds = tuple(
            f"round {words(one, 'round_id')} is live" for one in tables(inner(state, "active_rounds"))
        )
        update = ("a roadmap update is under way",) if plain(state, "roadmap_update") else ()
        errors = tuple(f"{key}: {value}" for key, value in plain(state, "resume_errors", {}).items() if value)
        return (*rounds, *update, *errors)

    @property
    def is_terminal(self) -> bool:
        """Whether there is nothing left to do; an invalid bundle never gets here."""
        return not self.unfinished and not self.open_ends

    @property
    def resumes(self) -> bool:
        """Whether something was begun here before."""
        state = self.state.document
        begun = any(words(one, "status") != "pending" for one in self.milestones)
        stage = words(state, "controller_stage")
        return (
            bool(self.open_ends) or begun or stage != "dispatch-rounds" or plain(state, "retry") is not None
        )


def bundle_folder(state: Located) -> str | None:
    """Return where the active bundle is, or None when state.json does not name one that may be looked for."""
    problems = Problems(STATE_FILE)
    schema = STATE["properties"]
    for key in ("roadmap_id", "roadmap_revision"):
        found = inner(state, key)
        if found is None:
            return None
        check_schema(found, schema[key], problems)
    if problems.count:
        return None
    return f"roadmaps/{words(state, 'roadmap_id')}/{words(state, 'roadmap_revision')}"


def is_foreign(state: Located) -> bool:
    """Return whether nothing in state.json is of the contract: the folder is another tool's."""
    known = STATE["properties"].keys()
    return isinstance(state.value, dict) and bool(state.value) and not state.value.keys() & known


def is_template(files: Files) -> bool:
    """Return whether these are the files of the scaffold, in which there is no roadmap yet."""
    try:
        state = JsonEdits(files[STATE_FILE]).document if STATE_FILE in files else None
    except Unreadable:
        return False  # `read_bundle` reports it
    return state is not None and words(state, "roadmap_id").startswith(_TEMPLATE)


def read_bundle(files: Files, name: str) -> Bundle:
    """Return the active bundle, or raise `BadPlan` with everything that does not hold."""
    label = name.removesuffix(f"/{STATE_FILE}") if name != STATE_FILE else "."
    state, state_notes = _state(files, label)
    folder = bundle_folder(state.document)
    assert folder is not None  # the schema of state.json says so
    family = str(PurePosixPath(folder).parent)
    names = [f"{folder}/{each}" for each in ("roadmap.md", "roadmap-view.json", "verification.md")]
    missing = Problems(f"{label}/{STATE_FILE}")
    history = f"{family}/roadmap-history.md"
    for each in (*names, history):
        if each not in files:
            line = line_of(state.document, "roadmap_dir")
            added = _ADDED if each in (names[1], history) else ""
            missing.note(line, "roadmap_dir", f"{each} is missing in this folder: restore it{added}")
    refuse(name, missing)
    problems, prose, checks = (Problems(f"{label}/{each}") for each in (names[1], names[0], names[2]))
    view = opened(f"{label}/{names[1]}", files[names[1]])
    check_schema(view.document, ROADMAP_VIEW, problems)
    refuse(name, problems)
    roadmap = read_roadmap(_text(files[names[0]], prose))
    verification = _text(files[names[2]], checks)
    refuse(name, prose, checks)
    headings = {
        line.removeprefix("##").strip() for line in verification.splitlines() if line.startswith("## ")
    }
    for section in CHECKS:
        if section not in headings:
            checks.note(1, "", f"the section ## {section} is missing")
    _check_view(view.document, state.document, problems)
    texts = _check_prose(view.document, roadmap, prose)
    refuse(name, problems, prose, checks)
    _check_anchors(view.document, roadmap, texts, problems)
    refuse(name, problems)
    return Bundle(
        label=label,
        folder=folder,
        state=state,
        view=view,
        roadmap=roadmap,
        verification=verification,
        texts=texts,
        notes=state_notes,
    )


def _text(content: bytes, problems: Problems) -> str:
    try:
        return decoded_lines(content)
    except Unreadable as broken:
        problems.note(broken.line or 1, "", broken.message)
        return ""


def _state(files: Files, label: str) -> tuple[JsonEdits, tuple[str, ...]]:
    name = f"{label}/{STATE_FILE}"
    problems = Problems(name)
    if STATE_FILE not in files:
        problems.note(1, "", f"there is no such file: restore it; {_OTHER}")
        refuse(name, problems)
    edits = opened(name, files[STATE_FILE])
    state = edits.document
    if is_foreign(state):
        problems.note(1, "", FOREIGN)
        refuse(name, problems)
    check_schema(state, STATE, problems)
    refuse(name, problems)
    wanted = bundle_folder(state)
    path = words(state, "roadmap_dir").rstrip("/")
    if path != wanted and not path.endswith(f"/{wanted}"):
        message = f"expected a path that ends with {wanted}, got {quoted(path)}"
        problems.note(line_of(state, "roadmap_dir"), "roadmap_dir", message)
    refuse(name, problems)
    if plain(state, "contract_version") != CONTRACT:
        message = f'a number is read as "{CONTRACT}"; write that text instead'
        problems.warn(line_of(state, "contract_version"), "contract_version", message)
    assert isinstance(state.value, dict)
    retired = [key for key in state.value if key in RETIRED]
    if retired:
        problems.warn(
            line_of(state, retired[0]), "", f"retired fields are kept and not read: {', '.join(retired)}"
        )
    return edits, problems.notes


def _check_view(view: Located, state: Located, problems: Problems) -> None:
    directory = words(state, "roadmap_dir").rstrip("/")
    wanted = {
        "roadmap_id": words(state, "roadmap_id"),
        "roadmap_revision": words(state, "roadmap_revision"),
        "roadmap_dir": directory,
        "roadmap_file": f"{directory}/roadmap.md",
    }
    for key, value in wanted.items():
        if words(view, key).rstrip("/") != value:
            message = f"expected {quoted(value)} as in state.json, got {quoted(words(view, key))}"
            problems.note(line_of(view, key), key, message)
    milestones = _unique(tables(inner(view, "milestones")), "milestone_id", "milestones", problems)
    directions = _unique(tables(inner(view, "directions")), "direction_id", "directions", problems)
    places = {key: (line_of(one, "depends_on"), f"{key}.depends_on") for key, one in milestones.items()}
    edges = {key: plain(one, "depends_on") for key, one in milestones.items()}
    check_graph(problems, edges, places, "milestone")
    for key, one in directions.items():
        if words(one, "milestone_id") not in milestones:
            message = f"unknown milestone {quoted(words(one, 'milestone_id'))}"
            problems.note(line_of(one, "milestone_id"), f"{key}.milestone_id", message)
    owned: dict[str, list[str]] = {key: [] for key in milestones}
    for key, one in directions.items():
        owned.get(words(one, "milestone_id"), []).append(key)
    for key, one in milestones.items():
        theirs = owned[key]
        if sorted(plain(one, "direction_ids")) != sorted(theirs):
            message = f"expected {', '.join(theirs) or 'none'}: the directions that name this milestone"
            problems.note(line_of(one, "direction_ids"), f"{key}.direction_ids", message)


def _unique(found: list[Located], key: str, place: str, problems: Problems) -> dict[str, Located]:
    known: dict[str, Located] = {}
    for index, one in enumerate(found):
        if words(one, key) in known:
            message = f"{quoted(words(one, key))} is here a second time"
            problems.note(line_of(one, key), f"{place}[{index}].{key}", message)
        known.setdefault(words(one, key), one)
    return known


_NUMBER: Final = r"(?:\d+\.\s+)?"
_HEADING: Final = re.compile(rf"{_NUMBER}\[({'|'.join((*STATUSES, 'completed'))})\]\s*{_NUMBER}(.*)")


def heading(title: str) -> tuple[str, str]:
    """Return the status and the title of a milestone's heading, `[done] 3. Name`; no status is an empty one.

    Older folders write `3. [completed] Name`.
    """
    found = _HEADING.fullmatch(title)
    if found is None:
        return "", title
    return "done" if found[1] == "completed" else found[1], found[2].strip()


def _check_prose(view: Located, roadmap: Roadmap, problems: Problems) -> dict[str, Block]:
    """Note where roadmap.md says something else than the view; return each milestone's part of it."""
    for section in SECTIONS:
        if section not in roadmap.sections:
            problems.note(1, "", f"the section ## {section} is missing")
    listed = {words(one, "milestone_id"): one for one in tables(inner(view, "milestones"))}
    texts: dict[str, Block] = {}
    for block in roadmap.milestones:
        status, title = heading(block.title)
        if not status:
            problems.note(
                block.line, "", "a milestone's heading begins with [pending], [in-progress] or [done]"
            )
        _check_fields(block, MILESTONE_FIELDS, problems)
        key = block.said("Milestone id")
        if key in texts:
            problems.note(block.line, "", f"the milestone {quoted(key)} is here a second time")
        elif key not in listed:
            problems.note(block.line, "", f"roadmap-view.json has no milestone {quoted(key)}")
        else:
            texts[key] = block
            _compare(block, listed[key], status, title, problems)
    for key in listed:
        if key not in texts:
            problems.note(1, "", f"the milestone {quoted(key)} of roadmap-view.json is missing")
    return texts


def _check_fields(block: Block, names: tuple[str, ...], problems: Problems) -> None:
    for name in names:
        if name not in block.fields:
            problems.note(block.line, "", f"`{name}:` is missing here")


def _compare(block: Block, listed: Located, status: str, title: str, problems: Problems) -> None:
    said = {
        "status": (block.line, status),
        "title": (block.line, title),
        "parallel_lane": (
            block.fields.get("Parallel lane", (block.line, ""))[0],
            block.said("Parallel lane"),
        ),
    }
    for key, (line, value) in said.items():
        if _unmarked(value) != _unmarked(words(listed, key)):
            problems.note(
                line, "", f"{key} is {quoted(value)} here and {quoted(words(listed, key))} in the view"
            )
    needs = block.listed("Depends on")
    if sorted(needs) != sorted(plain(listed, "depends_on")):
        line = block.fields.get("Depends on", (block.line, ""))[0]
        view = ", ".join(plain(listed, "depends_on")) or "none"
        problems.note(line, "", f"depends on {', '.join(needs) or 'none'} here and on {view} in the view")
    directions = [each for each in block.blocks if "Direction id" in each.fields]
    for each in directions:
        _check_fields(each, DIRECTION_FIELDS, problems)
    named = [each.said("Direction id") for each in directions]
    if sorted(named) != sorted(plain(listed, "direction_ids")):
        view = ", ".join(plain(listed, "direction_ids")) or "none"
        problems.note(
            block.line, "", f"has the directions {', '.join(named) or 'none'} here and {view} in the view"
        )


def _unmarked(text: str) -> str:
    """Return a text without the marks of Markdown, which a view may leave out."""
    return " ".join(text.replace("`", "").replace("*", "").split())


def _check_anchors(view: Located, roadmap: Roadmap, texts: Mapping[str, Block], problems: Problems) -> None:
    anchors = inner(view, "anchors")
    assert anchors is not None
    for one in tables(inner(view, "milestones")):
        block = texts[words(one, "milestone_id")]
        for kind in ("status_anchor", "completion_anchor"):
            anchor = inner(anchors, words(one, kind))
            if anchor is None:
                message = f"there is no anchor {quoted(words(one, kind))}"
                problems.note(line_of(one, kind), kind, message)
                continue
            place, line = words(one, kind), line_of(anchor, "selector")
            if words(anchor, "target_file") != words(view, "roadmap_file"):
                problems.note(line_of(anchor, "target_file"), place, "expected the roadmap's own file")
            found = roadmap.selected(words(anchor, "selector"))
            if len(found) != 1:
                where = (
                    f"it is ambiguous: lines {', '.join(map(str, found[:5]))}"
                    if found
                    else "it is none of them"
                )
                problems.note(line, place, f"the selector must be one whole line of roadmap.md; {where}")
            elif kind == "status_anchor" and found[0] != block.line:
                problems.note(
                    line, place, f"selects line {found[0]}, not the milestone's heading on {block.line}"
                )
            elif not block.line <= found[0] < block.end:
                problems.note(line, place, f"selects line {found[0]}, which is in another milestone")
