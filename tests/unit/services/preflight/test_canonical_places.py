"""A folder and the file in it that means the same work are one source."""

from pathlib import Path

from tests.cases import each_case
from tests.doubles import Home, planned

from loopwright.core.rows.model import Loop, Project
from loopwright.services.homes.loop_sources import known_path
from loopwright.services.preflight.run_inputs import meant_path, read_plan
from loopwright.services.projects.found_work import find_work

TASKS = "# Plan\n\n- [ ] 1. Add the login form\n"
TASK_MASTER = '{"master": {"tasks": [{"id": 1, "title": "Add it", "status": "pending", "subtasks": []}]}}'
BACKLOG = "---\nid: task-1\ntitle: Add it\nstatus: To Do\ncreated_date: 2026-01-05\n---\n\nText.\n"


@each_case(
    "files, folder, file, canonical",
    [
        ({".kiro/specs/login/tasks.md": TASKS}, ".kiro/specs/login", ".kiro/specs/login/tasks.md", "file"),
        (
            {".taskmaster/tasks/tasks.json": TASK_MASTER},
            ".taskmaster",
            ".taskmaster/tasks/tasks.json",
            "file",
        ),
        ({"conductor/tracks/a/plan.md": TASKS}, "conductor/tracks/a", "conductor/tracks/a/plan.md", "folder"),
        ({"work/plan.md": TASKS}, "work", "work/plan.md", "file"),
        ({"backlog/tasks/task-1 - Add.md": BACKLOG}, "backlog", "backlog/tasks", "folder"),
    ],
)
def test_both_names_lead_to_one_place(
    tmp_path: Path, files: dict[str, str], folder: str, file: str, canonical: str
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    wanted = tmp_path / (folder if canonical == "folder" else file)
    assert [meant_path(tmp_path / one) for one in (folder, file)] == [wanted, wanted]
    source, work = read_plan(wanted)
    assert (source.canonical(wanted), len(work.tasks)) == (wanted, 1)
    proposed = [one.path for one in find_work(tmp_path)]
    assert proposed == ([wanted] if folder != "work" else []), "a bare run names the same place"


def test_a_loop_that_was_made_of_the_folder_is_found_by_the_file(tmp_path: Path) -> None:
    file = tmp_path / ".kiro/specs/login/tasks.md"
    file.parent.mkdir(parents=True)
    file.write_text(TASKS)
    home = Home()
    home.submit(planned("1"), source_kind="kiro", source_path=".kiro/specs/login")
    (project,) = home.all(Project)
    home.store.transact_sync("here", lambda tx: tx.update(Project, project.id, path=str(tmp_path)))
    path = ".kiro/specs/login/tasks.md"

    def known() -> str:
        return home.store.read_sync(lambda tx: known_path(tx, str(tmp_path), path))

    assert known() == ".kiro/specs/login"
    (loop,) = home.all(Loop)
    home.store.transact_sync("moved", lambda tx: tx.update(Loop, loop.id, source_path="elsewhere"))
    assert known() == path
