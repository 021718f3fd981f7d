"""Writes progress into a checkbox plan: marks, commits, a few lines below a task, and sections at the end."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Final

from loopwright.adapters.sources.lists.status_words import StatusWords
from loopwright.adapters.sources.plan_md.more_boxes import boxed, status_words
from loopwright.adapters.sources.plan_md.plan_md_meaning import commit_of
from loopwright.adapters.sources.plan_md.plan_md_outline import (
    ADDED,
    DISCOVERED,
    LABELS,
    SUMMARY,
    Item,
    Outline,
    SectionKind,
    id_comment,
    outline,
)
from loopwright.adapters.sources.text.markdown import BOXES, MARKS, Kind, Line, Markdown, read_markdown
from loopwright.adapters.sources.text.markdown import Item as Box
from loopwright.adapters.sources.text.problems import Problems, refuse
from loopwright.adapters.sources.text.titles import (
    OURS,
    SHA_LENGTH,
    is_manual,
    is_sha,
    one_line,
    plain_title,
    without_comments,
)
from loopwright.ports import Discovered, FixTask, ItemProgress, Mark, Progress

_SHOWN: Final = 5
_LONGEST_REASON: Final = 200
_LEVEL: Final = SUMMARY.index(" ")
_ADVICE: Final = {"current": "Add to current track", "new": "Create new track"}
_FINISHED: Final = "<!-- finished: "
_READY: Final = "Step 4 (Evaluate Execution) → hand off to loop-execution-evaluator"
_READY_PLAIN: Final = "your review"
_UNREADY: Final = "a person: not everything is done"
Rows = list[tuple[str, str | None]]
"""The lines of the new file with their endings; None is the file's usual one."""


def told(content: bytes, progress: Progress, name: str, track: str) -> bytes:
    """Return the file with the progress written into it, or raise `BadPlan`."""
    found = _outline(content, name)
    for change in (_added, _fixes, _items, _discovered, _phases):
        changed = change(found, progress)
        if changed != content:
            content, found = changed, _outline(changed, name)
    return _summary(found, progress, track)


def _outline(content: bytes, name: str) -> Outline:
    problems = Problems(name)
    found = outline(read_markdown(content), problems)
    refuse(name, problems)
    return found


def _rows(markdown: Markdown) -> Rows:
    return [(line.text, ending) for line, ending in zip(markdown.lines, markdown.endings, strict=True)]


def _added(found: Outline, _: Progress) -> bytes:
    """Return the file with a separate heading, in place of our summary, over tasks that were appended to it."""
    rows = _rows(found.markdown)
    start = _summary_at(found)
    with_tasks = {item.section for item in found.tasks}
    number = next((n for n, one in enumerate(found.sections) if one.start == start >= 0), len(found.sections))
    below = enumerate(found.sections[number + 1 :], start=number + 1)
    inside = takewhile(lambda one: one[1].title == ADDED or one[1].level > _LEVEL, below)
    if any(n in with_tasks for n, _ in inside):
        rows[start : _summary_end(rows, start)] = [(f"## {ADDED} {OURS}", rows[start][1]), ("", None)]
    return found.markdown.joined(rows)


def _items(found: Outline, progress: Progress) -> bytes:
    rows = _rows(found.markdown)
    below = {one.line: one for one in found.markdown.items if one.box in MARKS}
    words = status_words(found.markdown)
    # From the end to the beginning, so that the places of what is still to be changed stay right.
    for item in reversed(found.tasks):
        standing = progress.items.get(item.key)
        if standing is not None:
            _follow(rows, found.markdown, item, standing, below, words)
            _tell(rows, found, item, standing, words)
    return found.markdown.joined(rows)


def _follow(
    rows: Rows,
    markdown: Markdown,
    item: Item,
    standing: ItemProgress,
    boxes: Mapping[int, Box],
    words: StatusWords,
) -> None:
    """Tick the boxes below a task that becomes done, and untick them if it is taken back.

    Boxes that are optional, are for a person, or have another mark stay as they are.
    """
    is_done = standing.mark is Mark.DONE
    if is_done is (item.mark is Mark.DONE):
        return
    until = item.at
    for at in range(item.at + 1, item.end):
        box = boxes.get(at)
        if box is None or at < until:
            continue
        if box.optional or (is_manual(plain_title(box.words)) and not is_manual(item.title)):
            until = box.end
        elif box.mark in (Mark.OPEN, Mark.RUNNING) if is_done else box.mark is Mark.DONE:
            mark = Mark.DONE if is_done else Mark.OPEN
            rows[at] = (boxed(markdown.lines[at], mark, words), rows[at][1])


def _tell(rows: Rows, found: Outline, item: Item, standing: ItemProgress, words: StatusWords) -> None:
    inside, line = found.body(item), found.markdown.lines[item.at]
    # The box and the commit are not your words: both change with the mark.
    own = _replaced(line.words, commit_of(item) or "", "")
    said = [] if _is_said(standing, own, inside) else _said(standing)
    wanted = [f"{_child(line, inside)}{one} {OURS}" for one in said]
    present = [at for at, line in enumerate(inside, start=item.at + 1) if _is_ours(line)]
    if [rows[at][0] for at in present] != wanted:
        place = present[0] if present else item.steps[0][0] if item.steps else item.end
        for at in reversed(present):
            del rows[at]
        rows[place:place] = [(one, None) for one in wanted]
    rows[item.at] = (_marked(line, item, standing, words), rows[item.at][1])


def _is_said(standing: ItemProgress, own: str, inside: Sequence[Line]) -> bool:
    """Return whether you already wrote why the task is blocked, on its line or below."""
    reason = one_line(standing.reason)
    theirs = (own, *(line.text for line in inside if not _is_ours(line)))
    return standing.mark is Mark.BLOCKED and any(reason in one_line(words) for words in theirs)


def _is_ours(line: Line) -> bool:
    return line.kind is Kind.BULLET and line.text.rstrip().endswith(OURS)


def _child(line: Line, inside: Sequence[Line]) -> str:
    """Return indent and bullet of a line below a task, as the others below it have them."""
    beside = next((one for one in inside if one.kind is Kind.BULLET and one.indent > line.indent), None)
    like = beside or line
    space = like.text[: len(like.text) - len(like.text.lstrip())]
    deeper = "" if beside is not None or not line.bullet else " " * (len(line.bullet) + 1)
    return f"{space}{deeper}{like.bullet if like.bullet in tuple('-*+') else '-'} "


def _said(standing: ItemProgress) -> list[str]:
    reason = one_line(standing.reason)
    if standing.mark is Mark.BLOCKED and reason:
        return [f"Blocked: {reason}"]
    if standing.mark is not Mark.DONE:
        return []
    summary = "; ".join(filter(None, (one_line(standing.summary), _changed(standing.changed))))
    said = [f"Summary: {summary}"] if summary else []
    if standing.checks:
        sign = "✅" if all(check.endswith("passed") for check in standing.checks) else "❌"
        said.append(f"Acceptance: {sign} {one_line(', '.join(standing.checks))}")
    return [*said, f"TDD: {one_line(standing.tdd)}"] if standing.tdd else said


def _changed(paths: Sequence[str]) -> str:
    named = one_line(", ".join(paths[:_SHOWN]))
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return f"changed {named}{more}" if named else ""


def _marked(line: Line, item: Item, standing: ItemProgress, words: StatusWords) -> str:
    text = line.text if item.mark is standing.mark else boxed(line, standing.mark, words)
    present = commit_of(item)
    if standing.mark is Mark.DONE and standing.commit:
        commit = standing.commit[:SHA_LENGTH]
        if present is None and item.sha is not None and commit.startswith(item.sha[:SHA_LENGTH]):
            return text
        if present is None:
            end = len(text.rstrip())
            return f"{text[:end]} <!-- {commit} -->{text[end:]}"
        if not (present.startswith(commit) or commit.startswith(present)):
            return _replaced(text, present, f"<!-- {commit} -->")
    elif item.mark is Mark.DONE and standing.mark is not Mark.DONE and present is not None:
        return _replaced(text, present, "")
    return text


def _replaced(text: str, sha: str, new: str) -> str:
    """Return a line with its last comment of this commit replaced, or taken out together with a space."""
    at = len(text)
    while (at := text.rfind("<!--", 0, at)) >= 0:
        end = text.find("-->", at) + 3
        if text[at + 4 : end - 3].strip() == sha and is_sha(sha):
            start = at - 1 if not new and text[at - 1 : at] == " " else at
            return f"{text[:start]}{new}{text[end:]}"
    return text


def _fixes(found: Outline, progress: Progress) -> bytes:
    known = {item.key for item in found.tasks}
    rows = _rows(found.markdown)
    missing: dict[str, list[FixTask]] = {}
    for fix in progress.fixes:
        if fix.key not in known:
            known.add(fix.key)
            day = (fix.added_at or progress.at).date().isoformat()
            missing.setdefault(f"Fix Phase (from Evaluation on {day})", []).append(fix)
    for title, fixes in missing.items():
        lines = [words for fix in fixes for words in _fix(fix)]
        rows = _in_section(found, rows, title, lines)
        found = outline(read_markdown(found.markdown.joined(rows)), Problems(""))
        rows = _rows(found.markdown)
    return found.markdown.joined(rows)


def _fix(fix: FixTask) -> list[str]:
    title = one_line(fix.title).removeprefix("Fix: ") or "Fix what the evaluation found"
    number = fix.key.removeprefix("fix-")
    named = fix.key == f"fix-{number}" and number.isascii() and number.isdigit() and len(number) < 5
    name = f"Fix {number}: {title}" if named else f"Fix: {title} {id_comment(fix.key)}"
    issue = [f"  - Issue: {one_line(fix.issue)}"] if fix.issue.strip() else []
    return [f"- [ ] {name} {OURS}", *issue, "  - Acceptance: the complete gate passes"]


def finished(found: Outline) -> dict[int, list[Item]]:
    """Return the phases of which nothing is left to do, by the places of their sections, with their tasks."""
    phases: dict[int, list[Item]] = {}
    for item in found.tasks:
        if found.markdown.lines[item.at].kind is Kind.HEADING:
            continue
        phases.setdefault(item.section, []).append(item)
    settled = (Mark.DONE, Mark.SKIPPED)
    return {
        at: items
        for at, items in phases.items()
        if found.sections[at].start >= 0
        and all(item.mark in settled for item in items)
        and any(item.mark is Mark.DONE for item in items)
    }


def _phases(found: Outline, progress: Progress) -> bytes:
    """Return the file with a line behind each phase that we have finished, and none behind others."""
    rows = _rows(found.markdown)
    over = finished(found) if progress.phases else {}
    for number, section in reversed(tuple(enumerate(found.sections))):
        inside = range(section.start + 1, section.end)
        present = [at for at in inside if _tells_end(found.markdown.lines[at])]
        items = over.get(number, [])
        is_ours = present or any(_is_done(progress, item) for item in items)
        wanted = [_end_of(items, progress)] if items and is_ours else []
        if not progress.phases or [rows[at][0] for at in present] == wanted:
            continue
        for at in reversed(present):
            del rows[at]
        end = max((item.end for item in items), default=0)
        place = end - sum(at < end for at in present)
        rows[place:place] = _new(wanted)
    return found.markdown.joined(rows)


def _is_done(progress: Progress, item: Item) -> bool:
    standing = progress.items.get(item.key)
    return standing is not None and standing.mark is Mark.DONE


def _tells_end(line: Line) -> bool:
    return line.kind is Kind.COMMENT and line.text.startswith(_FINISHED) and line.text.rstrip().endswith(OURS)


def in_time(items: Iterable[Item], progress: Progress) -> list[Item]:
    """Return tasks in the order in which they were done.

    Those that were done before the plan come first; those that are about to land, behind those that have.
    """

    def ended(item: Item) -> tuple[float, bool]:
        standing = progress.items.get(item.key)
        if item.key in progress.landing or (standing is not None and standing.mark is not Mark.DONE):
            return progress.at.timestamp(), False
        at = standing.ended_at if standing is not None else None
        return (0.0 if at is None else at.timestamp()), True

    return sorted(items, key=ended)


def _end_of(items: Sequence[Item], progress: Progress) -> str:
    """Return the line with the first and the last commit of a phase."""
    commits = list(dict.fromkeys(commit for item in in_time(items, progress) if (commit := commit_of(item))))
    return f"{_FINISHED}{'..'.join([*commits[:1], *commits[1:][-1:]]) or 'without a commit'} --> {OURS}"


def _discovered(found: Outline, progress: Progress) -> bytes:
    lines_of = found.markdown.lines
    present = {_alike(lines_of[item.at].words) for item in (*found.found, *found.tasks)}
    ours = {_alike(lines_of[item.at].words): item for item in found.found if item.ours}
    rows, words = _rows(found.markdown), status_words(found.markdown)
    lines: list[str] = []
    # The same words are the same work: what was said last of it holds.
    for one in {_alike(one_line(one.title)): one for one in progress.discovered}.values():
        title = one_line(one.title)
        if (item := ours.get(_alike(title))) is not None:
            rows[item.at] = (boxed(lines_of[item.at], one.mark, words), rows[item.at][1])
        elif title and _alike(title) not in present and one.mark is not Mark.SKIPPED:
            present.add(_alike(title))
            lines += _entry(title, one, found.tasks)
    return found.markdown.joined(_in_section(found, rows, "Discovered Work", lines) if lines else rows)


def _alike(words: str) -> str:
    return " ".join(without_comments(words)[0].casefold().split())


def _entry(title: str, one: Discovered, tasks: Iterable[Item]) -> list[str]:
    by = next((item.name for item in tasks if item.key == one.by), one.by)
    reason = one_line(one.reason) + (f" (found in {one_line(by, 128)})" if by else "")
    advice = _ADVICE.get(one.recommendation, one_line(one.recommendation))
    said = [f"  - Reason: {reason.strip()}"] if reason.strip() else []
    return [
        f"- [{BOXES[one.mark]}] {title} {OURS}",
        *said,
        *([f"  - Recommendation: {advice}"] if advice else []),
    ]


def _in_section(found: Outline, rows: Rows, title: str, lines: list[str]) -> Rows:
    """Return the file with these lines at the end of a section, which is made before the reports if need be."""
    section = next((one for one in found.sections if one.start >= 0 and one.title == title), None)
    if section is None and title.casefold() == DISCOVERED:
        section = next((one for one in found.sections if one.kind is SectionKind.DISCOVERED), None)
    new: Rows = [(words, None) for words in lines]
    if section is not None:
        place = _last(rows, section.start + 1, section.end)
        blank: Rows = [("", None)]
        above = blank if place == section.start + 1 else []
        # A heading of the underlined kind would become a part of the list above it.
        below = blank if place < len(rows) and rows[place][0].strip() else []
        return [*rows[:place], *above, *new, *below, *rows[place:]]
    late = (SectionKind.REPORT, SectionKind.DISCOVERED)
    before = next(
        (
            one.start
            for one in found.sections
            if one.start >= 0 and one.kind in late and _is_last(found, one.start)
        ),
        len(rows),
    )
    place = _last(rows, 0, before)
    lead: Rows = [("", None)] if place else []
    return [*rows[:place], *lead, (f"## {title}", None), ("", None), *new, *rows[place:]]


def _is_last(found: Outline, start: int) -> bool:
    """Return whether no task follows: sections are added after the last phase."""
    return not any(item.at > start for item in found.tasks)


def _last(rows: Rows, start: int, end: int) -> int:
    """Return the place after the last line before `end` that is not blank."""
    while end > start and not rows[end - 1][0].strip():
        end -= 1
    return end


def _summary(found: Outline, progress: Progress, track: str) -> bytes:
    """Return the file with the summary of the plan, or without it while work continues."""
    rows = _rows(found.markdown)
    start = _summary_at(found)
    is_over = progress.completed_at is not None or progress.rests
    wanted = _fields(found, progress, track) if is_over else []
    if start < 0:
        if wanted:
            end = _last(rows, 0, len(rows))
            rows[end:end] = [*([("", None)] if end else []), (SUMMARY, None), ("", None), *_new(wanted)]
        return found.markdown.joined(rows)
    end = _summary_end(rows, start)
    if wanted:
        rows[start:end] = [(SUMMARY, rows[start][1]), ("", None), *_new(wanted)]
    else:
        del rows[start - 1 if start and not rows[start - 1][0].strip() else start : end]
    return found.markdown.joined(rows)


def _summary_at(found: Outline) -> int:
    """Return the line of our summary's heading, -1 where there is none."""
    lines = found.markdown.lines
    headings = (one.start for one in found.sections if one.start >= 0)
    return next((at for at in headings if lines[at].text.rstrip() == SUMMARY), -1)


def _summary_end(rows: Rows, start: int) -> int:
    """Return the place after the last line of our summary that we wrote."""
    end = start + 1
    while end < len(rows) and not rows[end][0].strip():
        end += 1
    while end < len(rows) and rows[end][0].startswith(LABELS):
        end += 1
    return _last(rows, start + 1, end)


def _new(lines: list[str]) -> Rows:
    return [(words, None) for words in lines]


def is_met(tasks: Iterable[Item], progress: Progress) -> bool:
    """Return whether the plan ended with every task done or dropped."""
    return not progress.failed and all(item.mark in (Mark.DONE, Mark.SKIPPED) for item in tasks)


def _fields(found: Outline, progress: Progress, track: str) -> list[str]:
    done = [item for item in found.tasks if item.mark is Mark.DONE]
    blocked = [item for item in found.tasks if item.mark is Mark.BLOCKED]
    commits = dict.fromkeys(commit for item in done if (commit := commit_of(item)))
    is_evaluated = progress.execution is not None and progress.execution.mark is Mark.DONE
    next_ = _READY if track and not is_evaluated else _READY_PLAIN
    ready = next_ if is_met(found.tasks, progress) else _UNREADY
    values = (
        one_line(track),
        f"{len(done)}/{len(found.tasks)}",
        _named(blocked, progress),
        ", ".join(commits) or "none",
        str(len(found.found)),
        ready,
        *_sync(progress),
    )
    # A plan that is not a track has no fields of tracks.
    return [f"{label} {value}" for label, value in zip(LABELS, values, strict=False) if value]


def _named(blocked: Sequence[Item], progress: Progress) -> str:
    """Return how many tasks are blocked, and what blocks each."""
    reasons = [
        f"{item.name}: {one_line(standing.reason, _LONGEST_REASON)}"
        if (standing := progress.items.get(item.key)) is not None and standing.reason.strip()
        else item.name
        for item in blocked
    ]
    return f"{len(blocked)} ({'; '.join(reasons)})" if reasons else "0"


def _sync(progress: Progress) -> tuple[str, ...]:
    if progress.sync is None:
        return ("No",)
    return "Yes", one_line(progress.sync.reason) or "none given", one_line(", ".join(progress.sync.documents))
