"""The list of all tracks follows a track, and the documents beside a plan are named."""

from pathlib import Path

from tests.cases import each_case
from tests.unit.sources.golden import progress

from loopwright.adapters.sources.plan_md.plan_md import PlanMdSource
from loopwright.adapters.sources.plan_md.tracks_list import TRACKS, with_track
from loopwright.adapters.sources.text.reading import read
from loopwright.ports import Mark

SOURCE = PlanMdSource()
HEADED = "# Tracks\n\n---\n\n## [ ] Track: Other\n*Link: [a](./conductor/tracks/cart_2/)*\n\n---\n\n"
LINKED = "## [{}] Track: The cart\n*Link: [./conductor/tracks/cart_20260101/](./conductor/tracks/cart_20260101/)*\n"


@each_case(
    ("text", "before", "marks", "after"),
    [
        (HEADED + LINKED, " ", [Mark.OPEN, Mark.OPEN], " "),
        (HEADED + LINKED, " ", [Mark.DONE, Mark.OPEN], "~"),
        (HEADED + LINKED, "~", [Mark.DONE, Mark.SKIPPED], "x"),
        (HEADED + LINKED, "x", [Mark.DONE, Mark.OPEN], "~"),
        ("- [{}] **Track: The cart**\r\n  *Link: [t](./tracks/cart_20260101/)*", "~", [Mark.DONE], "x"),
        ("| [{}] | [cart_20260101](./tracks/cart_20260101/index.md) | Cart |\n", " ", [Mark.DONE], "x"),
        ("- [{}] Another: cart_20260101b\n", " ", [Mark.DONE], " "),
        ("```\n- [{}] cart_20260101\n```\n", " ", [Mark.DONE], " "),
    ],
)
def test_the_box_of_a_track_follows_its_tasks(text: str, before: str, marks: list[Mark], after: str) -> None:
    content = text.replace("{}", before).encode()
    changed = with_track(content, "cart_20260101", marks)
    assert changed == text.replace("{}", after).encode()
    assert with_track(changed, "cart_20260101", marks) == changed


def test_a_track_writes_its_list_and_names_its_documents(tmp_path: Path) -> None:
    track = tmp_path / "conductor" / "tracks" / "cart_20260101"
    track.mkdir(parents=True)
    (track / "plan.md").write_text("- [ ] Task: Add\n")
    (track / "metadata.json").write_text('{"track_id": "cart_20260101"}')
    (track / "spec.md").write_text("The goal.\n")
    (track / "index.md").write_text("# Track\n")
    (tmp_path / "conductor" / "tracks.md").write_text(HEADED + LINKED.format(" "))
    for place in (track, track / "plan.md"):
        assert read(SOURCE, place).documents == ("index.md", "spec.md")
        files = SOURCE.files(place)
        assert set(files) == {"plan.md", "metadata.json", "spec.md", TRACKS}
        assert SOURCE.status_files(files) == ("plan.md", "metadata.json", TRACKS)
        written = SOURCE.written(files, progress({"items": {"add": {"mark": "done"}}}))
        assert written[TRACKS].decode() == HEADED + LINKED.format("x")
