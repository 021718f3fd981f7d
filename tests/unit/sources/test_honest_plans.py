"""Plans as people and agents write them: none is refused, and what is read of each is what was meant."""

import shutil
from pathlib import Path

from tests.cases import each_case
from tests.unit.sources.golden import DATA
from tests.wording_plugin import Wording

from loopwright.adapters import registry
from loopwright.adapters.sources.plan_md.plan_md import PlanMdSource
from loopwright.adapters.sources.text.reading import read, recognise
from loopwright.core.replies.doc_sync import DocSync
from loopwright.ports import Mark, PlannedTask, PlannedWork

HONEST = DATA / "honest"
KEYS = {
    "spec-kit-tasks.md": ["T001", "T002", "T003", "T004", "T005"],
    "claude-plan.md": ["write-the-encoder", "add-the-endpoint", "document-it-see-docs-docs-export-md"],
    "legend-and-nesting.md": [
        "choose-one",
        "migrate-the-schema",
        "version-the-routes",
        "answer-errors-in-one-form",
        "xml",
        "show-the-version",
        "ask-for-a-logo",
    ],
    "bold-labels.md": ["1.1", "1.2", "2.1"],
    "conductor-plan.md": [
        "write-the-price-table",
        "read-prices-from-the-table",
        "conductor-user-manual-verification-prices-protocol-in-workflow-md",
        "show-the-tier",
    ],
    "emoji-todo.md": ["fix-the-crash-on-start-41", "dark-mode", "write-the-readme"],
    "numbered.md": ["1.1", "1.2", "1.3"],
    "codex-plan.md": ["add-a-ttl-to-cache-put", "evict-on-read", "metrics"],
    "windows.md": ["line-ends-stay-as-they-are", "byte-order-marks", "last-one"],
    "thoughts/shared/plans/2026-01-05-sign-up-00-overview.md": [
        "2026-01-05-sign-up-01-form",
        "2026-01-05-sign-up-02-client",
    ],
    "thoughts/shared/plans/2026-02-01-cache.md": ["phase-1", "phase-2", "phase-3"],
    "thoughts/shared/plans/2026-03-01-small-fix.md": ["2026-03-01-small-fix"],
}


def found(place: Path) -> PlannedWork:
    return read(recognise(place, registry.sources()), place)


def commands(task: PlannedTask) -> list[str]:
    return [one.command for one in task.acceptance]


@each_case("name", KEYS)
@each_case("newline", ["\n", "\r\n"])
def test_honest_plans_are_read(name: str, newline: str, tmp_path: Path) -> None:
    shutil.copytree(HONEST, tmp_path / "honest")
    for path in (tmp_path / "honest").rglob("*.md"):
        path.write_bytes(path.read_bytes().replace(b"\n", newline.encode()))
    work = found(tmp_path / "honest" / name)
    assert [task.key for task in work.tasks] == KEYS[name]


def test_every_honest_plan_is_among_them_and_a_folder_has_the_sets_alone() -> None:
    top = {path.name for path in HONEST.glob("*.md")}
    assert top == {name for name in KEYS if "/" not in name}
    work = found(HONEST / "thoughts")
    assert [task.key for task in work.tasks] == [
        f"shared/plans/{key}" for key in ("2026-01-05-sign-up-01-form", "2026-01-05-sign-up-02-client")
    ]
    assert [note.rpartition("/")[2].partition(" ")[0] for note in work.notes] == [
        "2026-02-01-cache.md",
        "2026-03-01-small-fix.md",
    ]


def test_the_checks_and_documents_in_them_are_those_that_were_meant(wording: Wording) -> None:
    one, two, three = found(HONEST / "bold-labels.md").tasks
    assert (commands(one), one.criteria) == (["make test-db", "make lint"], ("Rows survive a restart",))
    assert (commands(two), two.depends_on) == (["set -e\nmake test\nmake lint"], ("1.1",))
    assert commands(three) == ["make test", "make e2e", "make smoke"]
    wording(two.description)
    _, endpoint, _ = found(HONEST / "claude-plan.md").tasks
    assert commands(endpoint) == ["pytest -q tests/orders"]
    assert endpoint.description == "- Accept: `text/csv`\n- Very: `important`"
    first, _, last = found(HONEST / "codex-plan.md").tasks
    assert (commands(first), last.depends_on) == (["python -m pytest tests/test_cache.py"], (first.key,))
    assert commands(found(HONEST / "numbered.md").tasks[2]) == ["go test ./..."]
    assert found(HONEST / "bold-labels.md").doc_sync is None
    assert found(HONEST / "conductor-plan.md").doc_sync == DocSync(
        reason="A premium tier is added", documents=("docs/pricing.md", "docs/tiers.md")
    )
    phases = found(HONEST / "thoughts/shared/plans/2026-02-01-cache.md")
    assert "Put the slice back." in phases.tasks[0].description
    assert commands(phases.tasks[0]) == ["go test ./..."]
    assert "## Phase 1 open points" in phases.context


def test_the_marks_in_them_are_those_that_were_meant() -> None:
    marks = [task.mark for task in found(HONEST / "legend-and-nesting.md").tasks]
    assert marks == [
        Mark.DONE,
        Mark.OPEN,
        Mark.RUNNING,
        Mark.OPEN,
        Mark.SKIPPED,
        Mark.OPEN,
        Mark.BLOCKED,
    ]
    form, client = found(HONEST / "thoughts/shared/plans/2026-01-05-sign-up-00-overview.md").tasks
    assert (form.mark, client.mark) == (Mark.DONE, Mark.OPEN)


def test_a_plan_of_windows_is_read_with_its_byte_order_mark() -> None:
    content = (HONEST / "windows.md").read_bytes().replace(b"\n", b"\r\n")
    work = PlanMdSource().parse({"plan.md": b"\xef\xbb\xbf" + content}, "plan.md")
    assert [task.key for task in work.tasks] == KEYS["windows.md"]
