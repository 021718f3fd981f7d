"""What a folder means, and what was meant by a path that leads nowhere."""

from pathlib import Path

import pytest
from tests.cases import each_case
from tests.refusals import raises_code

from loopwright.adapters import registry
from loopwright.adapters.sources.folders import meant
from loopwright.adapters.sources.text.reading import check_there
from loopwright.core.values.errors import BadPlan, UserError

FILES = {
    "plan.md": "- [ ] one\n",
    "plan.yaml": "tasks: []\n",
    "PROMPT.md": "go\n",
    "feature_list.json": "[]\n",
    "README.md": "- [ ] not work\n",
}


TRACK = "conductor/tracks/greet_20261116/plan.md"
PHASES = ("thoughts/shared/plans/a-00-overview.md", "thoughts/shared/plans/a-01-b.md")


def filled(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(FILES.get(name, "- [ ] one\n"))
    return folder


@each_case(
    ("names", "kind", "found"),
    [
        (("plan.md", "README.md"), None, "."),
        (("plan.yaml",), None, "plan.yaml"),
        (("PROMPT.md", "README.md"), None, "PROMPT.md"),
        (("plan.md", "PROMPT.md"), "prompt_md", "PROMPT.md"),
        (("plan.md", "plan.yaml", "feature_list.json"), "feature_list", "feature_list.json"),
        (("plan.md", "plan.yaml"), "plan_md", "."),
        (("README.md",), None, "."),
        (PHASES, None, "thoughts"),
        ((TRACK, "conductor/tracks.md"), None, "conductor/tracks/greet_20261116"),
        ((TRACK, *PHASES), "plan_md", "conductor/tracks/greet_20261116"),
        (("conductor/tracks/notes/README.md",), None, "."),
    ],
)
def test_a_folder_means_the_one_source_in_it_or_the_one_of_the_kind(
    names: tuple[str, ...], kind: str | None, found: str, tmp_path: Path
) -> None:
    assert meant(filled(tmp_path, *names), registry.sources(), kind) == tmp_path / found


def test_several_sources_in_a_folder_are_named_and_none_is_taken(tmp_path: Path) -> None:
    with pytest.raises(UserError) as several:
        meant(filled(tmp_path, "plan.md", "plan.yaml", "PROMPT.md"), registry.sources())
    assert "plan.md (plan_md), PROMPT.md (prompt_md), plan.yaml (yaml)" in str(several.value)
    assert "--source KIND" in (several.value.hint or "")


def test_a_misspelt_kind_gets_the_one_that_was_probably_meant() -> None:
    with raises_code("adapter_not_found"):
        registry.source("plan-md")


def test_tracks_and_phase_plans_are_among_several(tmp_path: Path) -> None:
    tracks = [f"conductor/tracks/t{n:02}/plan.md" for n in range(30)]
    with pytest.raises(UserError) as several:
        meant(filled(tmp_path, *PHASES, *tracks), registry.sources())
    assert "thoughts (thoughts), conductor/tracks/t00 (plan_md), " in str(several.value)
    assert "conductor/tracks/t18 (plan_md), and 11 more" in str(several.value)


@each_case("folder", ["conductor", "conductor/tracks"])
def test_the_folders_around_a_track_mean_the_tracks_as_well(folder: str, tmp_path: Path) -> None:
    track = (filled(tmp_path, TRACK) / TRACK).parent
    assert meant(tmp_path / folder, registry.sources()) == track
    filled(tmp_path, "conductor/tracks/other/plan.md")
    with raises_code("source_ambiguous"):
        meant(tmp_path / folder, registry.sources())


def test_a_misspelt_path_gets_the_name_that_was_probably_meant(tmp_path: Path) -> None:
    filled(tmp_path, "plan.yaml", "README.md")
    with pytest.raises(BadPlan, match=r'there is no such file \(did you mean "plan.yaml"\?\)'):
        check_there(tmp_path / "paln.yaml")
    with pytest.raises(BadPlan, match=r"there is no such file$"):
        check_there(tmp_path / "nowhere" / "paln.yaml")
    with pytest.raises(BadPlan, match=r"^/nowhere/plan.yaml: there is no such file$"):
        check_there(Path("/nowhere/plan.yaml"))
    check_there(tmp_path / "plan.yaml")
