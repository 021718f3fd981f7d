"""Closing milestones of a roadmap: status and pointers through anchors, and nothing that changes what it means."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from loopwright.adapters.sources.orchestrator.roadmap_bundle import Bundle, read_bundle
from loopwright.adapters.sources.orchestrator.roadmap_schema import STATUSES
from loopwright.adapters.sources.orchestrator.roadmap_text import Roadmap
from loopwright.adapters.sources.text.json_edits import storable
from loopwright.adapters.sources.text.located import Located, inner, words
from loopwright.config.nearest import quoted
from loopwright.core.values.errors import BadPlan
from loopwright.ports import Files


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusChange:
    """One milestone's new status, as a review record asks for it."""

    milestone_id: str
    expected_current_status: str
    target_status: str
    roadmap_view_anchor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointer:
    """One line that says what completed a milestone."""

    anchor_id: str
    text: str
    instead_of: str = ""
    """How an older line begins that this one replaces; without a text, that is taken out."""


def close_out(
    files: Files,
    bundle: Bundle,
    changes: Iterable[StatusChange],
    pointers: Iterable[Pointer],
    history: Iterable[Pointer] = (),
) -> Files:
    """Return the files of a bundle that was read from them with these changes made, or refuse all of them."""
    view_file, prose_file = f"{bundle.folder}/roadmap-view.json", f"{bundle.folder}/roadmap.md"
    history_file = f"{bundle.folder.rpartition('/')[0]}/roadmap-history.md"
    past = _Prose(files[history_file])
    closing = _Closing(bundle, _Prose(files[prose_file]))
    for change in changes:
        closing.apply(change)
    for pointer in pointers:
        closing.point(pointer)
    for entry in history:
        closing.remember(past, entry, history_file)
    if closing.problems:
        raise BadPlan(bundle.label, tuple(closing.problems))
    made = {view_file: bundle.view.bytes(), prose_file: closing.prose.bytes(), history_file: past.bytes()}
    changed = {file: content for file, content in made.items() if content != files[file]}
    if changed:
        refuse_other_meaning(bundle, read_bundle({**files, **made}, bundle.label))
    return changed


class _Closing:
    """Makes the changes of one closeout, and gathers what is against them."""

    def __init__(self, bundle: Bundle, prose: "_Prose") -> None:
        self.problems: list[str] = []
        self.prose = prose
        self._bundle = bundle
        self._milestones = {words(one, "milestone_id"): one for one in bundle.milestones}
        self._completions = {words(one, "completion_anchor") for one in bundle.milestones}
        self._anchors = anchors_of(bundle.view.document)

    def apply(self, change: StatusChange) -> None:
        milestone = self._milestones.get(change.milestone_id)
        label = f"{change.milestone_id}: "
        if milestone is None:
            self.problems.append(f"{label}there is no such milestone")
            return
        present = words(milestone, "status")
        if change.target_status not in STATUSES:
            self.problems.append(
                f"{label}{quoted(change.target_status)} is not a status: {', '.join(STATUSES)}"
            )
        elif present != change.expected_current_status:
            self.problems.append(
                f"{label}expected to be {change.expected_current_status}, but it is {present}"
            )
        elif change.roadmap_view_anchor != words(milestone, "status_anchor"):
            self.problems.append(
                f"{label}{quoted(change.roadmap_view_anchor)} is not the anchor of its status"
            )
        else:
            edits, anchor = self._bundle.view, self._anchors[change.roadmap_view_anchor]
            before, after = f"[{present}]", f"[{change.target_status}]"
            edits.put(milestone, "status", change.target_status)
            selector = words(anchor, "selector")
            if before in selector:
                edits.put(anchor, "selector", selector.replace(before, after, 1))
            self.prose.replace(self._bundle.texts[change.milestone_id].line, before, after)

    def point(self, pointer: Pointer) -> None:
        label = f"{pointer.anchor_id}: "
        if pointer.anchor_id not in self._completions:
            self.problems.append(f"{label}this is not the anchor of a milestone's completion")
        elif "\n" in pointer.text or pointer.text.lstrip().startswith("#"):
            self.problems.append(f"{label}expected one line that is not a heading")
        else:
            selector = words(self._anchors[pointer.anchor_id], "selector")
            (line,) = self._bundle.roadmap.selected(selector)
            self.prose.point(line, pointer)

    def remember(self, past: "_Prose", entry: Pointer, file: str) -> None:
        """Write an entry below the one line of the history that its anchor selects."""
        anchor = self._anchors.get(entry.anchor_id)
        target = words(anchor, "target_file") if anchor is not None else ""
        found = past.selected(words(anchor, "selector")) if anchor is not None else []
        if not target.endswith(f"/{file}"):
            self.problems.append(f"{entry.anchor_id}: this is not an anchor of the roadmap's history")
        elif len(found) != 1:
            self.problems.append(f"{entry.anchor_id}: its selector is not exactly one line of {file}")
        else:
            past.point(found[0], entry)


def anchors_of(view: Located) -> dict[str, Located]:
    """Return the anchors of a view that was checked."""
    anchors = inner(view, "anchors")
    assert anchors is not None
    assert isinstance(anchors.value, dict)
    return anchors.value


class _Prose:
    """A roadmap.md as lines with their ends, of which single ones are changed."""

    def __init__(self, content: bytes) -> None:
        self._lines = content.decode("utf-8").split("\n")
        self._new: dict[int, list[str]] = {}

    def selected(self, selector: str) -> list[int]:
        """Return the lines that are exactly what a selector says."""
        return [n for n, line in enumerate(self._lines, 1) if line.strip() == selector.strip()]

    def replace(self, line: int, before: str, after: str) -> None:
        """Change the first such words on a line."""
        self._lines[line - 1] = self._lines[line - 1].replace(before, after, 1)

    def point(self, line: int, pointer: Pointer) -> None:
        """Write a pointer below the line of its anchor, or put it in the place of an older one."""
        end = line
        while end < len(self._lines) and not self._lines[end].startswith("#"):
            end += 1
        ending = "\r" if self._lines[line - 1].endswith("\r") else ""
        entry = f"- {' '.join(storable(pointer.text).split())}{ending}" if pointer.text else None
        older = [
            number
            for number in range(line, end)
            if pointer.instead_of and _begins(self._lines[number], f"- {pointer.instead_of}")
        ]
        if older:
            self._new[older[0]] = [] if entry is None else [entry]
            if entry is None and not self._lines[older[0] - 1].strip():
                self._new[older[0] - 1] = []
        elif entry is not None and entry not in self._lines[line:end]:
            last = max(
                (number for number in range(line, end) if self._lines[number].strip()), default=line - 1
            )
            before = [ending] if last == line - 1 else []
            self._new[last] = [self._lines[last], *before, entry]

    def bytes(self) -> bytes:
        """Return the text as it is now."""
        lines = [new for number, line in enumerate(self._lines) for new in self._new.get(number, [line])]
        return "\n".join(lines).encode("utf-8")


def _begins(line: str, start: str) -> bool:
    # The plan's id ends here: another one may begin with it.
    return line.rstrip() == start or line.startswith((f"{start} ", f"{start};"))


def refuse_other_meaning(was: Bundle, now: Bundle) -> None:
    """Raise `BadPlan` when two states of a bundle differ in more than status, pointers and history.

    Every closeout goes through this before anything of it is written.
    """
    problems = []
    if was.folder != now.folder:
        problems.append(f"the active bundle was {was.folder} and is {now.folder}")
    elif _without_status(was.view.document) != _without_status(now.view.document):
        problems.append("roadmap-view.json says something else than before, apart from status")
    if was.verification != now.verification:
        problems.append("verification.md says something else than before")
    before, after = _prose_without_status(was), _prose_without_status(now)
    for (_, one), (line, other) in zip(before, after, strict=False):
        if one != other:
            problems.append(f"roadmap.md:{line}: {quoted(other)} was {quoted(one)} before")
            break
    else:
        if len(before) != len(after):
            problems.append("roadmap.md has other lines than before")
    if problems:
        hint = "a roadmap's meaning changes in a new revision, not in a closeout"
        raise BadPlan(now.label, (*problems, hint))


def _without_status(view: Located) -> Any:
    document = view.plain()
    anchors = {one["status_anchor"] for one in document["milestones"]}
    for one in document["milestones"]:
        one["status"] = ""
    for key in anchors:
        document["anchors"][key]["selector"] = _unmarked(document["anchors"][key]["selector"])
    return document


def _prose_without_status(bundle: Bundle) -> list[tuple[int, str]]:
    """Return the lines of roadmap.md that mean something, with their numbers."""
    roadmap = bundle.roadmap
    skipped: set[int] = set()
    anchors = anchors_of(bundle.view.document)
    headings = {block.line for block in bundle.texts.values()}
    for one in bundle.milestones:
        (line,) = roadmap.selected(words(anchors[words(one, "completion_anchor")], "selector"))
        skipped.update(range(line + 1, _next_heading(roadmap, line)))
    return [
        (number, _unmarked(line) if number in headings else line)
        for number, line in enumerate(roadmap.lines, 1)
        if number not in skipped and line.strip()
    ]


def _unmarked(text: str) -> str:
    for status in STATUSES:
        text = text.replace(f"[{status}]", "[]", 1)
    return text


def _next_heading(roadmap: Roadmap, line: int) -> int:
    following = line + 1
    while following <= len(roadmap.lines) and not roadmap.lines[following - 1].startswith("#"):
        following += 1
    return following
