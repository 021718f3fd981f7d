"""Forms of the pages that are refused lead to where the reason can be dealt with."""

import json
from pathlib import Path

from tests.acceptance.sandbox import task
from tests.integration.server.api import Api

from loopwright.core.rows.model import Loop


def test_a_loop_that_was_created_but_cannot_start_is_shown_with_the_reason(api: Api, tmp_path: Path) -> None:
    place = tmp_path / "shop"
    place.mkdir()
    (place / "plan.yaml").write_text(json.dumps({"title": "Shop", "tasks": [task("a", "true")]}))
    project, *_ = api.family(path=str(place))
    form = {"project": project.id, "way": "source", "source": "plan.yaml", "start": "true"}
    with api.client() as client:
        shown = client.post("/loops/new", data=form, headers={"Accept": "text/html"})
    [made] = api.at.home.store.read_sync(lambda tx: tx.find(Loop, source_path="plan.yaml"))
    assert "has no recorded environment" in shown.text
    assert f'hx-get="/loops/{made.id}"' in shown.text
