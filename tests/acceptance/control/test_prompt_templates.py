"""A project's own prompt templates: read from the plan's base commit, recorded on each run, refused in time."""

import hashlib
import json

import pytest
from tests.acceptance.control.workshop import Workshop
from tests.acceptance.sandbox import task

from loopwright.core.rows.model import Plan, Role, Run
from loopwright.prompts import packaged

OWN = """\
---
version: 4
---
Speak like a {animal} of the house of $plan.

Task: $key
Attempt: $attempt
Title: $title

$description $criteria $findings $answers $evidence $note $scope $approved
"""
PATH = "loopwright.prompts/implementer.md"
FOX, WOLF, BEAR = (OWN.format(animal=animal) for animal in ("fox", "wolf", "bear"))


def commit(shop: Workshop, text: str, path: str = PATH) -> None:
    place = shop.repository / path
    place.parent.mkdir(exist_ok=True)
    place.write_text(text)
    shop.git("add", "-A")
    shop.git("commit", "-q", "-m", "prompts")


def prompt(shop: Workshop, run: Run) -> str:
    return (shop.home / "runs" / run.id / "prompt.md").read_text()


def test_agents_get_the_template_of_the_base_commit_and_not_of_a_workspace(shop: Workshop) -> None:
    """The first attempt rewrites the template and fails; what it wrote, and what is checked out, is told to nobody."""
    commit(shop, FOX)
    base = shop.git("rev-parse", "HEAD").strip()
    (shop.repository / PATH).write_text(BEAR)
    meddles = [{"write": PATH, "text": WOLF}, {"write": "one", "text": "one\n"}]
    shop.script.write_text(
        json.dumps(
            {
                "tasks": {"one": [meddles[:1], meddles], "two": [[{"write": "two", "text": "two\n"}]]},
                "reviews": {"one": [[{"review": []}]], "two": [[{"review": []}]]},
            }
        )
    )
    shop.program.env["LOOPWRIGHT_REVIEW__MODE"] = "always"
    tasks = [task("one", "test -f one"), task("two", "test -f two", depends_on=["one"])]
    said = shop.run(shop.plan("animals", tasks))
    assert said.code == 0, said.out + said.err
    plan = shop.row(Plan)
    assert plan.base_sha == base
    assert shop.git("show", f"{plan.branch}:{PATH}") == WOLF, "the work landed before the second task began"
    works = shop.rows(Run, role=Role.IMPLEMENTER)
    assert len(works) == 3
    for run in works:
        told = prompt(shop, run)
        assert told.startswith("Speak like a fox of the house of animals.\n")
        assert told.endswith(packaged("implementer").fixed.rpartition("[by_block] ")[2] + "\n"), "our rules"
        assert "These commands run on your result, and all of them must pass:\n- " in told
        assert run.template is not None
        assert (run.template.file, run.template.version) == (PATH, 4)
        assert run.template.sha256 == hashlib.sha256(FOX.encode()).hexdigest()
    reviewers = shop.rows(Run, role=Role.REVIEWER)
    assert {run.template for run in reviewers} == {packaged("reviewer").used}
    assert PATH in prompt(shop, reviewers[0]).partition("## The change")[0], (
        "it is told that this file judges"
    )
    assert {run.template for run in shop.rows(Run, role=Role.GATE)} == {None}
    path = shop.place / "receipt.json"
    shop("receipt", "show", "--output", str(path))
    assert shop("receipt", "verify", str(path)).code == 0
    kept = {run["id"]: run["template"] for run in json.loads(path.read_text())["runs"]}
    assert kept[works[0].id] == {
        "file": PATH,
        "version": 4,
        "sha256": hashlib.sha256(FOX.encode()).hexdigest(),
    }


@pytest.mark.parametrize("command", [("run",), ("plan", "check", "--no-run")], ids=["run", "plan check"])
def test_a_wrong_template_is_refused_before_anything_is_paid(
    shop: Workshop, command: tuple[str, ...]
) -> None:
    commit(shop, FOX.replace("$plan", "$house").replace("$note", ""))
    commit(shop, FOX, "loopwright.prompts/reviwer.md")
    shop.play({"one": [[{"write": "one", "text": "one\n"}]]})
    said = shop(*command, str(shop.plan("animals", [task("one", "test -f one")])))
    assert said.code == 2
    told = " ".join((said.out + said.err).split())
    assert f"{PATH}:4: there is no variable `house` in this template" in told
    assert f"{PATH}:10: the variable `$note` is missing" in told
    assert 'loopwright.prompts/reviwer.md: no agent reads this file (did you mean "reviewer"?)' in told
    assert "commit a corrected file, or delete it to use the packaged one" in told
    assert shop.rows(Plan) == []


def test_a_planner_gets_the_project_s_template_too(shop: Workshop) -> None:
    own = (
        "---\nversion: 2\n---\nPlan as a fox does.\n\nTask: $key\nAttempt: $attempt\nTitle: $title\n\n"
        "$description $answers $evidence $last $note\n"
    )
    commit(shop, own, "loopwright.prompts/planner.md")
    shop.play({"plan": [[{"exit": 3}]]})
    shop("plan", "Say bonjour to everybody", "--json", timeout=100)
    (run, *_) = shop.rows(Run, role=Role.PLANNER)
    assert prompt(shop, run).startswith("Plan as a fox does.\n")
    assert "It has to fit this JSON Schema:" in prompt(shop, run)
    assert run.template is not None
    assert (run.template.file, run.template.version) == ("loopwright.prompts/planner.md", 2)
