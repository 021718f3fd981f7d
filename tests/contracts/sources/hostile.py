"""Work that nobody wrote in good faith: files of 5 MB, for every kind of source."""

import os
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from loopwright.adapters.sources.text.plan_file import MAX_BYTES

SEED: Final = int(os.environ.get("HOSTILE_SEED") or random.SystemRandom().getrandbits(32))
"""Of what is made by chance: another each time, and said when something fails."""
NO_LINE: Final = frozenset({"too large"})
"""What is refused before anybody looks where in it something is."""
_BUNDLE: Final = Path(__file__).parents[2] / "unit/sources/data/orchestrator/mixed/given"
_ROADMAP: Final = "orchestrator/roadmaps/2026-03-01-00-limits/rev-001"


@dataclass(frozen=True, kw_only=True)
class Form:
    """Where a kind of work lies, and one item of it as often as wanted."""

    place: str
    """What is run."""
    file: str
    """What is hostile."""
    items: Callable[[int], str]
    """So many items, all with the same name: right in form, wrong in meaning."""
    fine: frozenset[str] = frozenset()
    """What is nothing to refuse here."""


def _json(head: str, item: str, tail: str) -> Callable[[int], str]:
    return lambda n: head + ",\n".join([item] * n) + tail


_FEATURE: Final = '{"id": "a", "name": "A", "description": "Do it.", "dependencies": ["a"]}'
_STORY: Final = '{"id": "a", "title": "A", "priority": 1, "dependsOn": ["a"]}'
_CHECKBOX: Final = "- [ ] Task 1.1: Do it\n  - Depends on: 1.1\n"
_TESTS: Final = b'{"loopName": "p", "tests": [{"id": "A-B-1", "category": "c", "status": "pending"}]}'
_MILESTONE: Final = '{"milestone_id": "m", "status": "pending"}'

FORMS: Final[Mapping[str, tuple[Form, ...]]] = {
    "beads": (
        Form(
            place=".beads",
            file=".beads/issues.jsonl",
            items=lambda n: '{"id":"a","title":"A","status":"open"}\n' * n,
            fine=frozenset({"empty lines"}),  # a tracker without issues
        ),
    ),
    "feature_list": (
        Form(
            place="feature_list.json",
            file="feature_list.json",
            items=_json('{"project": "P", "features": [', _FEATURE, "]}"),
        ),
    ),
    "bmad": (
        Form(
            place="sprint-status.yaml",
            file="sprint-status.yaml",
            items=lambda n: "project: P\ndevelopment_status:\n" + "  1-1-a: backlog\n" * n,
        ),
        Form(
            place="a.story.md",
            file="a.story.md",
            items=lambda n: "# Story 1.1: A\n\n## Tasks / Subtasks\n\n" + "- [ ] Task 1: Do it\n" * n,
        ),
    ),
    "prd_json": (
        Form(place="prd.json", file="prd.json", items=_json('{"userStories": [', _STORY, "]}")),
        Form(place="prd.json", file="prd.json", items=_json("[", _STORY, "]")),
    ),
    "task_master": (
        Form(
            place=".taskmaster/tasks/tasks.json",
            file=".taskmaster/tasks/tasks.json",
            items=_json('{"master": {"tasks": [', '{"id": 1, "title": "A", "dependencies": [1]}', "]}}"),
        ),
        Form(
            place=".taskmaster",
            file=".taskmaster/state.json",
            items=_json('{"currentTag": "master", "branchTagMapping": [', '{"a": "a"}', "]}"),
            fine=frozenset({"the same item again and again", "changed at random"}),
        ),
    ),
    "issues_json": (
        Form(place="issues.json", file="issues.json", items=_json("[", '{"number": 1, "title": "A"}', "]")),
    ),
    "orchestrator": (
        Form(
            place="orchestrator",
            file="orchestrator/state.json",
            items=_json('{"rounds": [', _MILESTONE, "]}"),
        ),
        Form(
            place="orchestrator",
            file=f"{_ROADMAP}/roadmap-view.json",
            items=_json('{"milestones": [', _MILESTONE, "]}"),
        ),
        Form(
            place="orchestrator",
            file=f"{_ROADMAP}/roadmap.md",
            items=lambda n: "### 1. [pending] Do it\n\n- Milestone id: `m`\n" * n,
        ),
        Form(
            place="orchestrator",
            file=f"{_ROADMAP}/verification.md",
            items=lambda n: "## Baseline Checks\n\n- `make test`\n" * n,
        ),
    ),
    "plan_md": (
        Form(place="plan.md", file="plan.md", items=lambda n: _CHECKBOX * n),
        Form(
            place="conductor/tracks/t",
            file="conductor/tracks/t/metadata.json",
            items=_json('{"version": 3, "discovered_work": [', '{"description": "A"}', "]}"),
        ),
        Form(
            place="conductor/tracks/t",
            file="conductor/tracks/t/spec.md",
            items=lambda n: "- [ ] do\n" * n,
            fine=frozenset({"empty lines"}),
        ),
    ),
    "speckit": (
        Form(place="specs/001-a", file="specs/001-a/tasks.md", items=lambda n: "- [ ] T001 [P] Do it\n" * n),
    ),
    "openspec": (
        Form(
            place="openspec/changes/a",
            file="openspec/changes/a/tasks.md",
            items=lambda n: "## 1. Do\n- [ ] 1.1 Do it\n" * n,
        ),
    ),
    "kiro": (
        Form(
            place=".kiro/specs/a",
            file=".kiro/specs/a/tasks.md",
            items=lambda n: "- [ ] 1. Do it\n  - [ ]* 1.1 And more\n  - _Depends: 1.1_\n" * n,
        ),
    ),
    "execplan": (
        Form(
            place="plan.md",
            file="plan.md",
            items=lambda n: "## Progress\n\n- [ ] Do it\n\n## Decision Log\n\n## Surprises\n\n" * n,
        ),
    ),
    "superpowers": (
        Form(
            place="docs/plans/a.md",
            file="docs/plans/a.md",
            items=lambda n: "### Task 1: Do it\n\n- [ ] **Step 1: Write it**\n\n" * n,
        ),
    ),
    "gsd": (
        Form(
            place="01-01-PLAN.md",
            file="01-01-PLAN.md",
            items=lambda n: '<task type="auto">\n<name>Task 1: Do it</name>\n</task>\n' * n,
        ),
    ),
    "backlog_md": (
        Form(
            place="backlog/tasks",
            file="backlog/tasks/task-1.md",
            items=lambda n: "---\nid: task-1\nstatus: To Do\nlabels:\n" + "  - a\n" * n,
        ),
    ),
    "todo_md": (Form(place="TODO.md", file="TODO.md", items=lambda n: "- Do it\n" * n),),
    "prompt_md": (Form(place="PROMPT.md", file="PROMPT.md", items=lambda n: "Do it, and then again.\n" * n),),
    "test_state": (
        Form(
            place="test-state.json",
            file="test-state.json",
            items=_json(
                '{"loopName": "p", "tests": [',
                '{"id": "a", "status": "pending", "passCriteria": ["x"]}',
                "]}",
            ),
        ),
        Form(
            place="config.json",
            file="config.json",
            items=_json('{"name": "p", "specs_dir": "specs", "metadata": {"tags": [', '"t"', "]}}"),
        ),
    ),
    "thoughts": (
        Form(place="plans", file="plans/p-01-first.md", items=lambda n: "# Phase 1: Do it\n\nWords.\n\n" * n),
        Form(place="plans", file="plans/p-00-overview.md", items=lambda n: "- [x](p-01-first.md)\n" * n),
    ),
    "spec": (
        Form(
            place="work.yaml",
            file="work.yaml",
            items=lambda n: (
                "write_status: true\ntitle: T\ntasks:\n" + "  - {id: a, title: A, depends_on: a}\n" * n
            ),
        ),
    ),
    "yaml": (
        Form(
            place="work.yaml",
            file="work.yaml",
            items=lambda n: "title: T\ntasks:\n" + "  - {id: a, title: A, depends_on: a}\n" * n,
        ),
        Form(
            place="work.json",
            file="work.json",
            items=_json('{"title": "T", "tasks": [', '{"id": "a", "title": "A", "depends_on": "a"}', "]}"),
        ),
    ),
}
"""By the kind of source; a kind that is missing here fails the test."""


def _filled(piece: bytes) -> Callable[[Form], bytes]:
    return lambda _: (piece * (MAX_BYTES // len(piece) + 1))[:MAX_BYTES]


def _grown(form: Form) -> bytes:
    one, two = len(form.items(1).encode()), len(form.items(2).encode())
    return form.items((MAX_BYTES - one) // (two - one)).encode()


def _changed(form: Form) -> bytes:
    """Return many items of which a few letters are others, still too many of the same."""
    chance = random.Random(f"{SEED}/{form.file}")
    content = bytearray(_grown(form))
    letters = b' \t\n"[]{}:,-#*`|\\0aZ'
    for _ in range(chance.randint(1, 200)):
        content[chance.randrange(len(content))] = chance.choice(letters)
    return bytes(content)


HOSTILE: Final[Mapping[str, Callable[[Form], bytes]]] = {
    "noise": lambda _: random.Random(SEED).randbytes(MAX_BYTES),
    "too large": lambda _: b"x" * (MAX_BYTES + 1),
    "nothing but zeros": _filled(b"\0"),
    "one endless word": _filled(b"x"),
    "empty lines": _filled(b"\n"),
    "open brackets": _filled(b"["),
    "nested lists": _filled(b"- "),
    "aliases": lambda _: (
        b"a: &a [x]\n"
        + b"".join(b"b%d: &b%d [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n" % (n, n) for n in range(100_000))
    ),
    "comments": _filled(b"<!-- "),
    "boxes": _filled(b"- [ ] a\n"),
    "the same item again and again": _grown,
    "cut off, then zeros": lambda form: form.items(100).encode()[:-20].ljust(MAX_BYTES, b"\0"),
    "changed at random": _changed,
    "a broken end": lambda form: _grown(form)[: MAX_BYTES - 1] + b"\xff",
}


OF_THE_FORM: Final = frozenset(
    {"the same item again and again", "cut off, then zeros", "changed at random", "a broken end"}
)
"""What is another for each form; all else is the same bytes for all of them."""


@cache
def _always(what: str) -> bytes:
    return HOSTILE[what](next(iter(FORMS.values()))[0])


def laid(folder: Path, form: Form, what: str) -> Path:
    """Write a source with a hostile file into a folder; return what is to be run."""
    if form.place == "orchestrator":
        for path in _BUNDLE.rglob("*"):
            if path.is_file():
                _write(folder / "orchestrator" / path.relative_to(_BUNDLE), path.read_bytes())
    if form.place == "plans":
        for name in ("p-00-overview.md", "p-01-first.md"):
            _write(folder / "plans" / name, b"# Phase 1: Do it\n\nWords.\n")
    if form.place == ".taskmaster":
        _write(folder / form.place / "tasks/tasks.json", b'{"master": {"tasks": [{"id": 1, "title": "A"}]}}')
    if form.place == "config.json":
        _write(folder / "test-state.json", _TESTS)
    if form.place == "conductor/tracks/t":
        _write(folder / form.place / "plan.md", _CHECKBOX.replace("  - Depends on: 1.1\n", "").encode())
    _write(folder / form.file, HOSTILE[what](form) if what in OF_THE_FORM else _always(what))
    return folder / form.place


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
