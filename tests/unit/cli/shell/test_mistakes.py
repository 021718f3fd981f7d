"""How errors are told: every problem on its own line, and the very command to type."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cases import each_case
from tests.wording_plugin import Wording

import loopwright
from loopwright.cli.shell.mistakes import explain
from loopwright.core.values.errors import (
    Ambiguous,
    BadConfig,
    BadPlan,
    Choice,
    GitFailed,
    Held,
    LoopwrightError,
    NotFound,
)

UNCLEAR = Ambiguous(
    "mul",
    tuple(
        Choice(handle=f"plan_{n}/mul", state="ERROR", title=f"plan {n}", changed_s=60.0 * n)
        for n in range(1, 4)
    ),
)


def _told(capsys: pytest.CaptureFixture[str], known: LoopwrightError, *arguments: str) -> list[str]:
    explain(known, arguments, as_json=False)
    said = capsys.readouterr()
    assert said.out == ""
    return said.err.splitlines()


def test_every_problem_of_a_plan_has_its_own_line(
    capsys: pytest.CaptureFixture[str], wording: Wording
) -> None:
    bad = BadPlan("p.yaml", ("p.yaml:3: tasks: no", "p.yaml:7: title: [missing]"))
    first, *problems, last = _told(capsys, bad, "run", "p.yaml")
    wording(first)
    assert problems == ["  p.yaml:3: tasks: no", "  p.yaml:7: title: [missing]"]
    assert "loopwright plan check" in last


def test_a_schema_is_named_only_for_a_form_that_has_one(
    capsys: pytest.CaptureFixture[str], wording: Wording
) -> None:
    bad = BadPlan("w", ("w:3: no", "w:7: no"))
    for kind, schema in (("spec", "plan"), ("yaml", "plan"), ("test_state", "test_state")):
        bad.kind = kind
        assert f"`loopwright config schema {schema}`" in _told(capsys, bad, "run", "w")[-1]
    for kind in ("plan_md", "thoughts", "prompt_md", "issues_json", ""):
        bad.kind = kind
        wording(_told(capsys, bad, "run", "w")[-1])


@each_case(
    ("kind", "file", "schema"),
    [
        ("orchestrator", "state.json", "orchestrator_state"),
        ("orchestrator", "roadmaps/r/rev-001/roadmap-view.json", "roadmap_view"),
        ("test_state", "config.json", "test_state_config"),
        ("test_state", "specs/test-state.json", "test_state"),
        ("plan_md", "metadata.json", "track"),
    ],
)
def test_the_schema_is_that_of_the_file_with_the_problem(
    kind: str, file: str, schema: str, capsys: pytest.CaptureFixture[str], wording: Wording
) -> None:
    bad = BadPlan("w", (f"w/{file}:3: no", f"w/{file}:7: no"))
    bad.kind = kind
    last = _told(capsys, bad, "run", "w")[-1]
    wording(last)
    bad = BadPlan("w", ("w/roadmap.md:3: no", "w/roadmap.md:7: no"))
    bad.kind = "orchestrator"
    assert "config schema" not in _told(capsys, bad, "run", "w")[-1]


def test_every_problem_of_the_settings_has_its_own_line(
    capsys: pytest.CaptureFixture[str], wording: Wording
) -> None:
    bad = BadConfig("a:1: x\nb:2: y", code="settings_wrong", hint="see the docs")
    wording(_told(capsys, bad))
    assert _told(capsys, BadConfig("a:1: x", code="settings_wrong")) == ["error: a:1: x"]


def test_what_a_name_could_mean_is_listed_with_the_command_that_means_it(
    capsys: pytest.CaptureFixture[str], wording: Wording
) -> None:
    wording(_told(capsys, UNCLEAR, "retry", "mul", "--note", "be brave"))


@each_case(
    ("known", "code"),
    [
        (NotFound("x", code="no_plan"), 2),
        (Held("x", code="home_in_use"), 5),
        (GitFailed("x"), 6),
        (UNCLEAR, 2),
    ],
)
def test_a_program_gets_one_document_with_the_exit_code(
    capsys: pytest.CaptureFixture[str], known: LoopwrightError, code: int
) -> None:
    assert explain(known, ("show", "mul"), as_json=True) == code
    said = json.loads(capsys.readouterr().out)
    assert said["exit_code"] == code
    assert said["error"]["code"] == known.code
    assert said["error"]["message"] == str(known)


def test_no_message_sends_anyone_to_a_page_that_is_not_installed() -> None:
    """Who has the package from a registry has no folder `docs`; help texts are looked at as they are printed."""
    sources = Path(loopwright.__file__).parent.rglob("*.py")
    # A text without a space is a place where Loopwright looks for work, not a message.
    told = [(path.name, text) for path in sources for text in _texts(path) if "docs/" in text and " " in text]
    assert told == []


def _texts(path: Path) -> Iterator[str]:
    source = path.read_text(encoding="utf-8")
    if "docs" not in source:
        return  # most have no such text: nothing to take apart
    tree = ast.parse(source)
    docstrings = {
        ast.get_docstring(node, clean=False)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value not in docstrings:
            yield node.value
