"""The documentation says what the code does, because tests compare the two."""

import re
from itertools import chain
from pathlib import Path

import pytest
from scripts import render_docs
from tests.cases import each_case
from tests.simulation import scenario
from tests.simulation.promises import invariants
from tests.simulation.universe import MORE_PROMISES

from loopwright.adapters import registry
from loopwright.adapters.agents.acp.profiles import PROFILES
from loopwright.adapters.agents.claude.claude import ClaudeAgent
from loopwright.adapters.sources.spec.yaml_plan import YamlSource
from loopwright.adapters.sources.text.reading import read
from loopwright.cli.shell.command_table import COMMANDS
from loopwright.cli.shell.exits import ExitCode
from loopwright.core.values.error_codes import CODES
from loopwright.core.values.failures import Failure
from loopwright.core.values.states import MACHINES, drawn
from loopwright.server.problems import HTTP_CODES
from loopwright.testing import agent_program
from loopwright.testing.conformance.behaviours import BEHAVIOURS, NO_STAND_IN

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+\s+(.*)$", re.MULTILINE)
YAML_BLOCK = re.compile(r"^```yaml\n(title:.*?)^```", re.MULTILINE | re.DOTALL)
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def page_name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def anchors_of(path: Path) -> set[str]:
    """Return the anchors that a Markdown viewer makes of a page's headings."""
    text = FENCED.sub("", path.read_text(encoding="utf-8"))
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
        for heading in HEADING.findall(text)
    }


@each_case("name", render_docs.PAGES)
def test_a_page_made_from_the_code_is_up_to_date(name: str) -> None:
    written = (ROOT / name).read_text(encoding="utf-8")
    assert written == render_docs.PAGES[name](), "run `make docs`"


def test_checking_the_pages_notices_a_stale_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pages = {"good.md": lambda: "right\n", "old.md": lambda: "new\n"}
    (tmp_path / "good.md").write_text("right\n")
    (tmp_path / "old.md").write_text("old\n")
    assert render_docs.main(["--check"], root=tmp_path, pages=pages) == 1
    assert "old.md" in capsys.readouterr().err
    assert (tmp_path / "old.md").read_text() == "old\n"
    assert render_docs.main([], root=tmp_path, pages=pages) == 0
    assert (tmp_path / "old.md").read_text() == "new\n"
    assert render_docs.main(["--check"], root=tmp_path, pages=pages) == 0


def test_a_page_without_the_marks_of_its_table_is_refused() -> None:
    with pytest.raises(ValueError, match="needs the marks"):
        render_docs.between("# Title\n", "<!-- a: begin -->", "<!-- a: end -->", "table")


def test_the_table_of_adapters_shows_what_was_seen_and_why_something_was_not_asked() -> None:
    rows = {"one": {"kept": True}, "two": {"kept": False}, "three": {"excuse": "it cannot"}}
    seen = {"behaviours": {"one": "It does.", "two": "It fails.", "three": "It is."}, "adapters": {"a": rows}}
    assert render_docs.agents_table(seen).splitlines() == [
        "| behaviour | a |",
        "|---|---|",
        "| `one`: It does. | yes |",
        "| `two`: It fails. | **no** |",
        "| `three`: It is. | – |",
        "",
        "Not asked of a: `three` (it cannot).",
    ]


@each_case("name", sorted(BEHAVIOURS.keys() - NO_STAND_IN))
def test_what_a_stand_in_has_to_play_is_documented(name: str) -> None:
    table = (
        (ROOT / "docs/how-to/write-an-adapter.md").read_text("utf-8").split("### What a stand-in plays")[1]
    )
    assert f"`{BEHAVIOURS[name].plays or name}`" in table


def test_every_test_that_is_named_as_a_proof_is_there() -> None:
    text = (ROOT / "docs/how-to/write-an-adapter.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_\w+)`", text))
    assert len(named) > 10
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name in sorted(named) if f"def {name}(" not in sources] == []


@each_case("step", agent_program.STEPS)
def test_every_step_of_a_script_is_documented(step: str) -> None:
    assert f"`{step}`" in (ROOT / "docs/reference/scripted-agent.md").read_text("utf-8")


def test_the_page_of_the_simulation_lists_what_is_looked_at_in_every_run() -> None:
    folder = ROOT / "tests/simulation"
    promises = dict(render_docs.promises_kept())
    assert all(MORE_PROMISES), "they register theirs when they are imported"
    on_commit = [look for _, look in invariants.ON_COMMIT]
    registered = [*on_commit, *chain(*invariants.ON_EFFECT.values()), *invariants.AT_END]
    assert set(promises) == {getattr(look, "__name__", "") for look in registered}
    assert all(promises.values())
    assert dict(render_docs.faults_in((folder / "scenario.py").read_text("utf-8"))) == dict(scenario.FAULTS)


@each_case("name", sorted(registry.AGENTS))
def test_every_agent_is_on_the_page_of_agents(name: str) -> None:
    assert f"| `{name}` | " in (ROOT / "docs/reference/agents.md").read_text("utf-8")


@each_case("kind", sorted(registry.SOURCES))
def test_every_kind_of_source_is_on_the_page_of_formats(kind: str) -> None:
    text = (ROOT / "docs/reference/sources/index.md").read_text("utf-8")
    assert any(f"`{kind}`" in row.rpartition(" | ")[2] for row in text.splitlines() if row.startswith("| "))


@each_case("name", sorted(PROFILES.keys() - {"acp"}))
def test_what_an_agent_of_the_agent_client_protocol_can_do_is_documented(name: str) -> None:
    text = (ROOT / "docs/reference/agents.md").read_text("utf-8").split("## The Agent Client Protocol\n")[1]
    (row,) = [
        line for line in text.splitlines() if line.startswith(f"| `{name}` | ") and line.count(" | ") == 8
    ]
    profile = PROFILES[name]
    _, install, tried, *can, settings = row.removeprefix("| ").removesuffix(" |").split(" | ")
    assert profile.tested is not None
    assert tried == " to ".join(dict.fromkeys(profile.tested))
    assert install == f"`{profile.install}`" or profile.install.removeprefix("see ") in install
    wanted = ("resume", "fork", "usage", "cost", "reset_time")
    assert [one.startswith("yes") for one in can] == [one in profile.capabilities for one in wanted]
    told = profile.model.argument or profile.model.variable if profile.model else "in the conversation"
    assert told in settings
    assert ("turns" in profile.capabilities) is (", " in settings)


def test_every_error_code_is_documented() -> None:
    page = (ROOT / "docs/reference/errors.md").read_text(encoding="utf-8")
    alone = [cls.code for cls in render_docs.error_classes() if cls not in CODES]
    codes = [*alone, *HTTP_CODES, *(code for known in CODES.values() for code in known)]
    assert len(codes) == len(set(codes))
    assert all(page.count(f"| `{code}` |") == 1 for code in codes)


def test_the_tree_drawn_in_the_errors_module_names_every_class() -> None:
    from loopwright.core.values import errors

    drawn = re.findall(r"^[│├└─ ]*([A-Z]\w+)", errors.__doc__ or "", re.MULTILINE)
    names = {cls.__name__ for cls in render_docs.error_classes()}
    assert names <= set(drawn)


@each_case("failure", Failure)
def test_every_failure_is_documented(failure: Failure) -> None:
    assert f"| `{failure}` |" in (ROOT / "docs/reference/failures.md").read_text(encoding="utf-8")


def test_every_state_of_every_machine_is_drawn() -> None:
    text = (ROOT / "docs/reference/states.md").read_text(encoding="utf-8")
    for machine, table in MACHINES.items():
        section = text.split(f"## {machine.capitalize()}\n")[1].split("\n## ")[0]
        for source, targets in table.items():
            for target in targets:
                assert f"    {drawn(source)} --> {drawn(target)}\n" in section


def test_the_page_of_exit_codes_lists_exactly_those_that_exist() -> None:
    text = (ROOT / "docs/reference/exit-codes.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (\d+) \| (.+) \|$", text, re.MULTILINE))
    assert rows == {str(code.value): code.meaning for code in ExitCode}


@each_case("name", sorted(COMMANDS))
def test_every_command_is_on_the_page_of_commands(name: str) -> None:
    text = (ROOT / "docs/reference/commands.md").read_text(encoding="utf-8")
    assert f"\n## loopwright {name}\n" in text


@each_case("path", [p for p in PAGES if YAML_BLOCK.search(p.read_text("utf-8"))], ids=page_name)
def test_a_plan_shown_in_the_documentation_is_a_good_plan(path: Path, tmp_path: Path) -> None:
    for example in YAML_BLOCK.findall(path.read_text(encoding="utf-8")):
        for file in re.findall(r"^ +files: (\S+)$", example, re.MULTILINE):
            (tmp_path / file).parent.mkdir(exist_ok=True)
            (tmp_path / file).touch()
        (tmp_path / "plan.yaml").write_text(example, encoding="utf-8")
        assert read(YamlSource(), tmp_path / "plan.yaml").tasks


@each_case("path", PAGES, ids=page_name)
def test_links_between_pages_resolve(path: Path) -> None:
    broken = []
    for target in LINK.findall(FENCED.sub("", path.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        place = (path.parent / file).resolve() if file else path
        if not place.exists() or (anchor and place.suffix == ".md" and anchor not in anchors_of(place)):
            broken.append(target)
    assert broken == []


def test_every_page_of_the_documentation_can_be_reached_from_its_front_page() -> None:
    seen: set[Path] = set()
    todo = [ROOT / "README.md"]
    while todo:
        page = todo.pop()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        for target in LINK.findall(page.read_text(encoding="utf-8")):
            file = target.partition("#")[0]
            if file and not re.match(r"[a-z]+:", file):
                todo.append((page.parent / file).resolve())
    assert [page_name(path) for path in (ROOT / "docs").rglob("*.md") if path not in seen] == []


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    listed = set(re.findall(r"(\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE))
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert listed == pages


def test_decision_records_are_numbered_without_gaps_and_have_the_same_parts() -> None:
    records = sorted((ROOT / "docs/adr").glob("[0-9]*.md"))
    assert [int(path.name[:4]) for path in records] == list(range(1, len(records) + 1))
    for path in records:
        text = path.read_text(encoding="utf-8")
        assert text.startswith(f"# {int(path.name[:4])}. "), path.name
        parts = re.findall(r"^## (.+)$", text, re.MULTILINE)
        assert parts == ["Status", "Context", "Decision", "Consequences"], path.name
        assert len(text.split()) <= 450, f"{path.name} is longer than a page"


def test_the_versions_of_claude_code_are_those_that_its_adapter_was_tried_with() -> None:
    oldest, newest = ClaudeAgent().tested
    page = (ROOT / "docs/reference/agents.md").read_text(encoding="utf-8")
    assert f"tried with the versions {oldest} to {newest}" in page
