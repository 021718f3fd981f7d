"""Forms of the pages that are refused lead to where the reason can be dealt with."""

import json
from pathlib import Path

from tests.acceptance.sandbox import task
from tests.integration.server.api import Api

from loopwright.core.rows.model import Loop, Project
from loopwright.core.values.access import Scope
from loopwright.testing.sample import make_sample_repository


def test_a_loop_that_was_created_but_cannot_start_is_shown_with_the_reason(api: Api, tmp_path: Path) -> None:
    place = tmp_path / "shop"
    place.mkdir()
    make_sample_repository(place)
    (place / "plan.yaml").write_text(json.dumps({"title": "Shop", "tasks": [task("a", "true")]}))
    project, *_ = api.family(path=str(place))
    form = {"project": project.id, "way": "source", "source": "plan.yaml", "start": "true"}
    with api.client() as client:
        shown = client.post("/loops/new", data=form, headers={"Accept": "text/html"})
    [made] = api.at.home.store.read_sync(lambda tx: tx.find(Loop, source_path="plan.yaml"))
    assert "has no recorded environment" in shown.text
    assert f'hx-get="/loops/{made.id}"' in shown.text
    # What it lacks is given there, and leads back to it.
    assert f'action="/projects/{project.id}/environment"' in shown.text
    with api.client() as client:
        given = client.post(f"/projects/{project.id}/environment", data={"back": f"/loops/{made.id}"})
        elsewhere = client.post(f"/projects/{project.id}/environment", data={"back": "//evil.example"})
    assert (given.headers["location"], elsewhere.headers["location"]) == (f"/loops/{made.id}", "/")
    assert 'id="environment"' not in api.page(f"/loops/{made.id}")


def test_a_project_takes_the_environment_of_the_daemon(api: Api, tmp_path: Path) -> None:
    make_sample_repository(tmp_path)
    project, *_ = api.family(path=str(tmp_path))
    path = f"/projects/{project.id}"
    assert f'action="{path}/environment"' in api.page(path)
    operator = api.make_token("operator", scope=Scope.OPERATE)
    assert f'action="{path}/environment"' not in api.page(path, token=operator)
    with api.client(operator) as client:
        assert client.post(f"{path}/environment").status_code == 403
    with api.client() as client:
        assert client.post(f"{path}/environment").headers["location"] == path
    now = api.at.home.store.read_sync(lambda tx: tx.get(Project, project.id))
    assert now is not None
    assert now.environment is not None
    assert 'id="environment"' not in api.page(path)
