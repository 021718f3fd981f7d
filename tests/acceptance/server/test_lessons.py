"""Lessons from failures: proposed, approved, told to agents, and measured."""

import json
from typing import Any

import pytest
from tests.acceptance.sandbox import task
from tests.acceptance.server.conftest import Served

from loopwright.core.rows.lesson_rows import LessonUse
from loopwright.core.rows.model import Attempt

WRONG: list[dict[str, Any]] = [{"write": "sum.txt", "text": "wrong\n"}, {"claim": "done"}]


def shown(served: Served, *words: str) -> list[dict[str, Any]]:
    said = served("lessons", *words, "--json")
    assert said.code == 0, said.err
    return [one["lesson"] for one in json.loads(said.out)["lessons"]]


@pytest.mark.capability("C092", "C093")
def test_a_failure_of_two_tasks_becomes_a_lesson_that_you_approve_and_agents_are_told(served: Served) -> None:
    gates = [{"name": "tests", "run": "! grep -q wrong *.txt"}]
    checks = [task(name) for name in ("one", "two")]
    served.play({"one": [WRONG], "two": [WRONG]})
    first = served.run(
        served.plan("sums", checks, gates=gates, settings={"max_attempts": 1, "auto_refine": True})
    )
    assert first.code == 1
    (lesson,) = shown(served)
    assert lesson["state"] == "PROPOSED"
    assert sorted(lesson["evidence"]) == sorted(one.id for one in served.rows(Attempt))
    assert shown(served, "suggest") == [], "it is about that failure already"
    assert f"loopwright lessons approve {lesson['id']}" in served("lessons").out
    assert served("lessons", "diff", lesson["id"], "--text", "Write right.txt.").out.endswith(
        "\n+- Write right.txt.\n"
    )
    assert shown(served, "approve", lesson["id"], "--text", "Write right.txt.")[0]["state"] == "TRIED"
    assert shown(served, "add", "Read the whole task first.")[0]["state"] == "TRIED"
    assert served("lessons", "approve", lesson["id"]).code == 2

    names = [f"new{n}" for n in range(4)]
    served.play({name: [[{"write": f"{name}.txt", "text": "x\n"}, {"claim": "done"}]] for name in names})
    served("cancel", served.newest_plan())
    second = served.run(served.plan("more", [task(name) for name in names], gates=gates))
    assert second.code == 0, second.out + second.err
    uses = served.rows(LessonUse)
    assert len(uses) == 4
    for use in uses:
        attempt = next(one for one in served.rows(Attempt) if one.id == use.attempt_id)
        prompt = (served.home / "runs" / str(attempt.run_id) / "prompt.md").read_text()
        assert ("Read the whole task first." in prompt) is use.given

    missing = served("lessons", "promote", lesson["id"], "nowhere")
    assert (missing.code, "there is no project nowhere" in missing.err) == (2, True)
    assert served("lessons", "promote", lesson["id"], str(served.repository)).code == 2, "it is there already"

    served.serve()
    listed = served.get("/api/lessons")["lessons"]
    assert [one["text"] for one in listed] == ["Read the whole task first.", "Write right.txt."]
    assert shown(served, "remove", lesson["id"])[0]["state"] == "REMOVED"
    assert len(served.get("/api/lessons")["lessons"]) == 1
