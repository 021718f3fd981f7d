"""The page of lessons, and lessons that a person brings to another project."""

from typing import Any

import pytest
from tests.contracts.store import rows
from tests.integration.server.api import Api

from loopwright.core.rows.healing_rows import AttemptFailure
from loopwright.core.rows.lesson_rows import Lesson, LessonUse
from loopwright.core.rows.model import Plan, Project
from loopwright.core.values.failures import Failure
from loopwright.core.values.ids import Kind
from loopwright.core.values.states import LessonState

HTML = {"Accept": "text/html"}


def write(api: Api, *made: Any) -> None:
    """Insert rows."""

    def insert(tx: Any) -> None:
        for row in made:
            tx.insert(row)

    api.write(insert)


def lesson(project: Project, **changes: Any) -> Lesson:
    values = {"state": LessonState.PROPOSED, "text": "Run make proto.", "proposed_by": "loopwright"} | changes
    return Lesson(id=rows.new_id(Kind.LESSON), project_id=project.id, created_at=rows.AT, **values)


def used(one: Lesson, plan: Plan, *, given: bool, passed: bool) -> LessonUse:
    return LessonUse(
        id=rows.new_id(Kind.LESSON_USE),
        lesson_id=one.id,
        version=1,
        project_id=one.project_id,
        plan_id=plan.id,
        task_id=rows.new_id(Kind.TASK),
        attempt_id=rows.new_id(Kind.ATTEMPT),
        given=given,
        passed=passed,
        created_at=rows.AT,
    )


def failed(project: Project, plan: Plan, task: Any, signature: str) -> AttemptFailure:
    return AttemptFailure(
        id=rows.new_id(Kind.FAILURE),
        project_id=project.id,
        plan_id=plan.id,
        task_id=task.id,
        attempt_id=rows.new_id(Kind.ATTEMPT),
        n=1,
        failure=Failure.GATE,
        signature=signature,
        step="make test",
        created_at=rows.AT,
    )


@pytest.mark.capability("C093", "C094")
def test_the_page_shows_a_proposal_as_a_diff_and_a_measured_lesson_with_its_numbers(api: Api) -> None:
    project, _, plan, _ = api.family()
    told = lesson(project, state=LessonState.TRIED, text="Read README.")
    proposed = lesson(project, text="Run <b>make</b> proto.", files=("proto/**",))
    uses = [used(told, plan, given=True, passed=True) for _ in range(40)]
    uses += [used(told, plan, given=False, passed=False) for _ in range(10)]
    write(api, told, proposed, *uses)
    with api.client() as client:
        client.headers.update(HTML)
        shown = client.get("/lessons").text
        assert "Run <b>make" not in shown
        assert '<td class="sign">+</td><td class="src">- Run &lt;b&gt;make&lt;/b&gt; proto.</td>' in shown
        assert '<td>with it</td><td class="num">40</td><td class="num">40</td>' in shown
        assert '<td>without it</td><td class="num">0</td><td class="num">10</td>' in shown
        assert 'href="/lessons" aria-current="page"' in client.get("/lessons").text
        known = {one["id"]: one for one in api.get("/api/lessons")["lessons"]}
        assert known[proposed.id]["diff"].endswith(" - Read README.\n+- Run <b>make</b> proto.\n")
        assert (known[told.id]["diff"], known[told.id]["confidence"] > 0.9) == ("", True)

        client.post(f"/lessons/{proposed.id}/approve", data={"text": "Run make proto first."})
        (now,) = [one for one in api.get("/api/lessons")["lessons"] if one["id"] == proposed.id]
        assert (now["state"], now["version"], now["text"]) == ("TRIED", 2, "Run make proto first.")
        again = client.post(f"/lessons/{proposed.id}/approve")
        assert (again.status_code, 'role="alert"' in again.text) == (200, True)
        client.post(f"/lessons/{proposed.id}/remove")
        assert proposed.id not in client.get("/lessons").text
        assert proposed.id in client.get("/lessons?state=removed").text
        form = {"text": "Use tabs.", "project": project.id, "files": "*.mk, Makefile"}
        assert client.post("/lessons", data=form).status_code == 303
        empty = client.post("/lessons", data={**form, "text": "  "})
        assert (empty.status_code, 'role="alert"' in empty.text) == (200, True)
        assert client.post("/lessons/propose", data={"project": project.id}).status_code == 303
        assert client.post(f"/lessons/{told.id}/sing").status_code == 404
    (added,) = [one for one in api.get("/api/lessons")["lessons"] if one["text"] == "Use tabs."]
    assert added["files"] == ["*.mk", "Makefile"]


def test_a_secret_in_a_lesson_is_not_stored(api: Api) -> None:
    project, *_ = api.family()
    secret = "ghp_" + "a1B2" * 9
    with api.client() as client:
        answer = client.post(f"/api/projects/{project.id}/lessons", json={"text": f"Log in with {secret}."})
    assert answer.status_code == 201
    assert secret not in answer.text


def test_only_the_number_of_projects_with_a_failure_leaves_a_project(api: Api) -> None:
    here, _, plan, task = api.family()
    there, _, other, its = api.family(path="/there", name="there")
    mine = lesson(here, signature="sig")
    write(api, mine, failed(here, plan, task, "sig"), failed(there, other, its, "sig"))
    write(api, failed(there, other, its, "sig"))
    token = api.make_token("one", projects=(here.id,))
    (seen,) = api.get("/api/lessons", token=token)["lessons"]
    assert seen["other_projects"] == 1
    assert there.id not in str(seen)


def test_a_person_brings_a_lesson_to_another_project_where_it_is_measured_anew(api: Api) -> None:
    here, _, plan, _ = api.family()
    there, *_ = api.family(path="/there", name="there")
    mine = lesson(here, state=LessonState.KEPT, files=("proto/**",), evidence=("att_x",))
    proposed = lesson(here, text="Another.")
    write(api, mine, proposed, used(mine, plan, given=True, passed=True))
    with api.client() as client:
        made = client.post(f"/api/lessons/{mine.id}/promote", json={"project_id": there.id})
        assert made.status_code == 201, made.text
        new = made.json()
        assert (new["state"], new["learned_from"], new["with_all"]) == ("TRIED", mine.id, 0)
        assert (new["project_id"], new["files"], new["evidence"]) == (there.id, ["proto/**"], [])
        again = client.post(f"/api/lessons/{mine.id}/promote", json={"project_id": there.id})
        assert again.json()["code"] == "lesson_known"
        unproven = client.post(f"/api/lessons/{proposed.id}/promote", json={"project_id": there.id})
        assert unproven.json()["code"] == "lesson_state_wrong"
    with api.client() as client:
        client.headers.update(HTML)
        back = client.post(f"/lessons/{new['id']}/promote", data={"project": here.id})
        assert "has this lesson already" in back.text
