"""A task without attempts left: why it failed, and what to type, in every place that shows it."""

import json

import httpx
import pytest
from tests.acceptance.server.conftest import Served

from loopwright.core.rows.model import Plan
from loopwright.core.values.ids import short_id

SAYS = "echo 'calc.py:7: AssertionError: the sum is wrong'; exit 1"


@pytest.mark.capability("C084")
@pytest.mark.capability("C090")
def test_a_diagnosis_is_on_the_screen_the_page_the_api_in_the_question_and_in_the_source(
    served: Served,
) -> None:
    source = served.repository / "test-state.json"
    source.write_text(
        json.dumps({"loopName": "sums", "tests": [{"id": "sum", "passCriteria": [f"`{SAYS}`"]}]})
    )
    served.play(
        {
            "sum": [
                [{"write": "calc.py", "text": f"{n}\n"}, {"claim": f"I tried {n}."}, {"print": "x"}]
                for n in (1, 2, 3)
            ]
        }
    )
    said = served.run(source)
    assert said.code == 1, said.out + said.err
    row, plan = served.task("sum"), served.row(Plan)
    cause = "the task is beyond this agent or model (the last 3 attempts failed in the same way)"
    assert f"Likely cause: {cause}" in row.reason

    shown = served("status", "sum").out
    assert f"likely cause: {cause}" in shown
    assert "calc.py: calc.py:<n>: assertionerror: the sum is wrong, 3 times in a row" in shown
    typed = shown.partition("likely cause")[2]
    assert typed.index("loopwright retry sum --model NAME") < typed.index("loopwright retry sum --note")

    (told,) = json.loads(source.read_text())["tests"]
    assert told["status"] == "blocked"
    assert f"Likely cause: {cause}" in told["notes"]
    assert f"Likely cause: {cause}" in served("answer").out.replace("\n", " ")

    served.serve()
    found = served.get(f"/api/plans/{plan.id}/tasks/sum")["diagnosis"]
    assert (found["cause"], found["repeated"]) == ("model_limit", 3)
    assert found["signature"]["file"] == "calc.py"
    assert [(one["n"], one["touched"], one["said"]) for one in found["tried"]] == [
        (n, ["calc.py"], f"I tried {n}.") for n in (1, 2, 3)
    ]
    name = short_id(row.id)
    assert found["fixes"][0]["command"] == ["loopwright", "retry", name, "--model", "NAME"]
    with httpx.Client(
        base_url=served.listening["url"], headers={"Accept": "text/html"}, timeout=60
    ) as browser:
        at = {"Origin": served.listening["url"]}
        browser.post("/login", data={"token": served.token, "next": "/"}, headers=at)
        page = browser.get(f"/plans/{plan.id}/tasks/sum").text
    assert f"Likely cause: <b>{cause}</b>" in page
    assert f"<code>loopwright retry {name} --model NAME</code>" in page
    assert served("status", name).code == 0, "the name in the commands is one that can be typed"
