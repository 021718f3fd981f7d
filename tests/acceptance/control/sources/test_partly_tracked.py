"""Sources of several files of which git tracks only some: each file is told where it belongs."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from tests.acceptance.control.workshop import Workshop

from loopwright.core.rows.model import Plan

SETTINGS = '[[gates]]\nname = "greeting"\nrun = "grep -q hello greet.txt"\n'
PLAN = "# Work\n\n## Phase 1\n\n- [ ] Task 1: Say hello\n  - Acceptance: `test -s made`\n"
TRACK = (
    '{"version": 3, "track_id": "t", "loop_state": {"checkpoints": {"EVALUATE_PLAN": {"verdict": "PASS"}}}}\n'
)
CONFIG = json.dumps({"name": "path", "specs_dir": "specs", "test_state_file": "test-state.json"})
TESTS = json.dumps(
    {
        "loopName": "path",
        "lastUpdated": "2026-01-07T09:15:00Z",
        "summary": {"total": 1, "passed": 0, "failed": 0, "blocked": 0, "pending": 1},
        "tests": [
            {"id": "CP-A-001", "category": "a", "status": "pending", "passCriteria": ["`test -s made`"]}
        ],
    }
)


@dataclass(frozen=True, kw_only=True)
class Mixed:
    """A source, its files by whether git tracks them, the task that is done, and what each file says then."""

    place: str
    tracked: Mapping[str, str]
    beside: Mapping[str, str]
    does: str
    books: tuple[str, ...]
    on_branch: Mapping[str, str]
    in_place: Mapping[str, tuple[str, ...]]


MIXED = {
    "tests": Mixed(
        place="config.json",
        tracked={"config.json": CONFIG},
        beside={"test-state.json": TESTS},
        does="CP-A-001",
        books=(),
        on_branch={},
        in_place={"test-state.json": ('"status": "passed"',)},
    ),
    "metadata": Mixed(
        place="track",
        tracked={"track/plan.md": PLAN},
        beside={"track/metadata.json": TRACK},
        does="1",
        books=("track/plan.md",),
        on_branch={"track/plan.md": "- [x] Task 1: Say hello <!--"},
        in_place={
            "track/metadata.json": ('"last_task": "Task 1"', '"current_step": "COMPLETE"'),
            "track/plan.md": ("- [ ] Task 1: Say hello\n",),
        },
    ),
    "specification": Mixed(
        place="track/plan.md",
        tracked={"track/spec.md": "The goal.\n"},
        beside={"track/plan.md": PLAN},
        does="1",
        books=(),
        on_branch={"track/spec.md": "The goal.\n"},
        in_place={"track/plan.md": ("- [x] Task 1: Say hello <!--",)},
    ),
    "phase": Mixed(
        place="thoughts/plans",
        tracked={"thoughts/plans/sign-up-00-overview.md": "# Sign-up\n"},
        beside={"thoughts/plans/sign-up-01-form.md": "# Form\n\nBuild it.\n"},
        does="sign-up-01-form",
        books=("thoughts/plans/sign-up-00-overview.md",),
        on_branch={"thoughts/plans/sign-up-00-overview.md": "# Sign-up\n"},
        in_place={"thoughts/plans/sign-up-01-form.md": ("done",)},
    ),
}


@pytest.mark.parametrize("mixed", MIXED.values(), ids=MIXED)
def test_a_file_that_git_tracks_is_told_on_the_branch_and_the_others_where_they_are(
    shop: Workshop, mixed: Mixed
) -> None:
    (shop.repository / "loopwright.toml").write_text(SETTINGS)
    for files in (mixed.tracked, mixed.beside):
        for name, text in files.items():
            path = shop.repository / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        if files is mixed.tracked:
            shop.git("add", "-A")
            shop.git("commit", "-qm", "what is tracked")
    shop.play({mixed.does: [[{"write": "made", "text": "x\n"}]]})
    said = shop("run", mixed.place, timeout=100)
    assert said.code == 0, said.out + said.err
    plan = shop.row(Plan)
    assert plan.books == mixed.books
    for name, words in mixed.on_branch.items():
        assert words in shop.git("show", f"{plan.branch}:{name}")
    for name, all_words in mixed.in_place.items():
        assert all(words in (shop.repository / name).read_text() for words in all_words)
    assert shop.git("status", "--porcelain", "--untracked-files=no") == "", (
        "the user's copy comes with the merge"
    )
    assert not shop.events("source_not_told", "checkout_changed")
    assert shop.git("diff", "--name-only", plan.base_sha, plan.branch).split() == [
        "made",
        *(name for name in mixed.books if mixed.tracked[name] not in mixed.on_branch.values()),
    ]
