"""What `init` advises about the work."""

from pathlib import Path

import pytest
from tests.wording_plugin import Wording

from loopwright.cli.commands.start.init import work_steps


def test_work_that_is_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wording: Wording
) -> None:
    monkeypatch.chdir(tmp_path)
    wording(work_steps(tmp_path)[0])
    assert work_steps(tmp_path, sample=True)[0].startswith("edit plan.yaml, a sample")
    (tmp_path / "plan.md").write_text("- [ ] one\n")
    (tmp_path / "PROMPT.md").write_text("go\n")
    steps = work_steps(tmp_path)
    assert steps[0].endswith(": plan.md (plan_md, 1 of 1 open), PROMPT.md (prompt_md)")
    wording(steps[2])


def test_finished_work_is_not_proposed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wording: Wording
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.md").write_text("- [x] one\n")
    first, check, run = work_steps(tmp_path)
    wording(first)
    assert check.endswith(" plan.yaml")
    assert run.endswith(" plan.yaml")
    (tmp_path / "tasks.md").write_text("- [ ] two\n")
    assert work_steps(tmp_path)[0].endswith(": tasks.md (plan_md, 1 of 1 open)")
