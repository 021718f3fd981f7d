"""`audit`: marked complete, but was it ever done? In work of every form, as somebody may have written it by hand."""

import json
from pathlib import Path

import pytest
from tests.acceptance.control.sources.test_every_source import EVERY, Sample
from tests.acceptance.sandbox import Sandbox

SAMPLES = Path(__file__).parents[1] / "control" / "samples"
GONE = "0123456789ab"
"""A commit that nobody made."""


def audited(sandbox: Sandbox, *arguments: str, cwd: Path | None = None) -> dict[str, tuple[str, str]]:
    """Return what there is to each finished item."""
    said = sandbox("audit", *arguments, "--json", cwd=cwd)
    assert said.code == said.document["exit_code"], said.err
    assert said.code == int(any(one["proof"] in ("lost", "failing") for one in said.document["items"]))
    return {one["key"]: (one["proof"], one["reason"]) for one in said.document["items"]}


def lay(sandbox: Sandbox, kind: str, **commits: str) -> None:
    """Lay out a sample as it is told in the end, with these commits in it."""
    told = SAMPLES / kind / "told"
    for path in sorted(path for path in told.rglob("*") if path.is_file()):
        text = path.read_text().replace("TIME", "2026-03-01T10:00:00Z").replace("PLAN", "plan_1")
        for mark, sha in commits.items():
            text = text.replace(mark.replace("_", "-"), sha)
        place = sandbox.repository / path.relative_to(told)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)


@pytest.mark.capability("C037")
def test_every_form_of_work_is_held_against_commits_and_checks(sandbox: Sandbox) -> None:
    """The first item of each form was done; of the second, somebody only wrote so."""
    made = ("f1", "1.1", "CP-API-001", "milestone-1", "2026-01-05-sign-up-01-form", "bd-a1", "one")
    for name in (f"made-{key}" for key in made):
        (sandbox.repository / name).write_text("x\n")
    sandbox.git("add", "-A")
    sandbox.git("commit", "-qm", "work")
    good = {"COMMIT_0": sandbox.git("rev-parse", "HEAD").strip(), "COMMIT_1": GONE}
    for kind in (
        "feature_list",
        "plan_md",
        "test_state",
        "orchestrator",
        "thoughts",
        "beads",
        "spec",
        "issues_json",
    ):
        lay(sandbox, kind, **good)
    failing = ("failing", "test -s made-{}: exit code 1")
    passes = ("passes", "its commit is not known")
    claimed = ("claimed", "it has no check")

    def fails(key: str) -> tuple[str, str]:
        return failing[0], failing[1].format(key)

    found = audited(sandbox, "feature_list.json")
    assert found == {"f1": passes, "f10": claimed, "f2": fails("f2")}
    found = audited(sandbox, "conductor/tracks/greet_20261116")
    old = ("lost", "commit abc1234 does not exist")
    assert found == {"1.1": ("proven", ""), "1.2": old, "2.1": fails("2.1")}
    found = audited(sandbox, "coding-loops/path")
    assert found == {"CP-API-000": claimed, "CP-API-001": claimed, "CP-API-002": fails("CP-API-002")}
    found = audited(sandbox, "orchestrator")
    assert found == {"milestone-1": ("proven", ""), "milestone-2": fails("milestone-2")}
    plans = "thoughts/shared/plans"
    found = audited(sandbox, plans)
    assert found == {
        "2026-01-05-sign-up-01-form": ("proven", ""),
        "2026-01-05-sign-up-02-client": fails("2026-01-05-sign-up-02-client"),
    }
    found = audited(sandbox, ".beads")
    assert found == {"bd-a0": claimed, "bd-a1": ("proven", ""), "bd-a2": fails("bd-a2")}
    found = audited(sandbox, "work.yaml")
    assert found == {
        "old": ("lost", "commit 3f1c9a2 does not exist"),
        "one": ("proven", ""),
        "two": fails("two"),
    }
    found = audited(sandbox, "export.json")
    there = f"{claimed[1]}; its commit {good['COMMIT_0'][:12]} is there"
    assert found == {
        "#4": claimed,
        "#9": (claimed[0], there),
        "#12": ("lost", f"commit {GONE} does not exist"),
    }
    assert not sandbox.home.exists() or not list(sandbox.home.glob("trials/*")), "nothing is left behind"

    # Where the source's project is, is where the checks run, as in `run`: a folder alone makes none.
    below = sandbox.repository / "below"
    below.mkdir()
    (below / "made-f2").write_text("x\n")
    sandbox.git("add", "below")
    sandbox.git("commit", "-qm", "below")
    found = audited(sandbox, "../feature_list.json", cwd=below)
    assert (found["f1"], found["f2"]) == (passes, fails("f2"))

    # Looking alone runs nothing.
    (sandbox.repository / "loopwright.toml").write_text('setup = "touch never"\n')
    found = audited(sandbox, "work.yaml", "--no-run")
    assert [proof for proof, _ in found.values()] == ["lost", "unknown", "lost"]
    said = sandbox("audit", "work.yaml", "--no-run")
    assert "3 finished items: 2 lost, 1 unknown" in said.out
    # After a squash a clone has none of the plan's commits, but the one that stands for them.
    stands_for = [f"Loopwright-Picked: {sha.ljust(40, '7')}" for sha in ("3f1c9a2", GONE)]
    sandbox.git("commit", "--allow-empty", "-qm", "\n".join(["all of it", "", *stands_for]))
    found = audited(sandbox, "work.yaml", "--no-run")
    assert [proof for proof, _ in found.values()] == ["claimed", "unknown", "unknown"]
    (sandbox.repository / "loopwright.toml").write_text('setup = "echo no disk; exit 3"\n')
    found = audited(sandbox, "coding-loops/path")
    assert [proof for proof, _ in found.values()] == ["claimed", "claimed", "unknown"]
    assert "the setup failed" in found["CP-API-002"][1]
    fresh = SAMPLES / "feature_list" / "given" / "feature_list.json"
    open_ = [{**one, "passes": False} for one in json.loads(fresh.read_text())["features"]]
    (sandbox.repository / "feature_list.json").write_text(json.dumps({"features": open_}))
    assert sandbox("audit", "feature_list.json").out == "nothing in it is marked as finished\n"


NEWER = tuple(
    one
    for one in EVERY
    if one.kind
    in {
        "prd_json", "task_master", "bmad", "speckit", "openspec", "kiro", "execplan", "superpowers", "gsd",
        "backlog_md", "todo_md",
    }
)  # fmt: skip


@pytest.mark.more
@pytest.mark.parametrize("sample", NEWER, ids=lambda one: one.name or one.kind)
def test_finished_items_of_every_other_form_are_listed(sandbox: Sandbox, sample: Sample) -> None:
    lay(sandbox, sample.name or sample.kind)
    found = audited(sandbox, sample.place, "--no-run")
    assert {sample.first, *sample.then} <= set(found)
    assert {proof for proof, _ in found.values()} <= {"claimed", "unknown"}, (
        "nothing was run, and nothing is lost"
    )
