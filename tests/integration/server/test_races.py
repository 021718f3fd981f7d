"""Of clients that race for the same thing, one wins, and the others learn that they lost."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import httpx
from tests.acceptance.cli.program import repository
from tests.contracts.store import rows
from tests.integration.server.api import Api

from loopwright.core.rows.access_rows import Token
from loopwright.core.rows.model import Loop

RACERS = 8


def _race(api: Api, ask: Callable[[httpx.Client], httpx.Response]) -> list[httpx.Response]:
    """Let clients ask for the same at the same moment."""
    start = Barrier(RACERS)

    def run(_: int) -> httpx.Response:
        with api.client() as client:
            client.get("/healthz")  # it is connected
            start.wait(30)
            return ask(client)

    with ThreadPoolExecutor(RACERS) as racers:
        return list(racers.map(run, range(RACERS)))


def _one_won(answers: list[httpx.Response], won: int, lost: tuple[int, str]) -> None:
    found = sorted(answers, key=lambda one: one.status_code != won)
    assert found[0].status_code == won, found[0].text
    assert {(one.status_code, one.json()["code"]) for one in found[1:]} == {lost}


def test_one_of_many_creates_a_loop(api: Api, tmp_path: Path) -> None:
    place = tmp_path / "repository"
    repository(place, {"plan.yaml": "title: T\ntasks:\n- {id: one, title: One}\n"})
    project, *_ = api.family(path=str(place))
    wanted = {"project_id": project.id, "source": "plan.yaml"}
    _one_won(_race(api, lambda client: client.post("/api/loops", json=wanted)), 201, (409, "loop_exists"))
    assert api.write(lambda tx: tx.count(Loop, source_path="plan.yaml")) == 1


def test_one_of_many_makes_a_token_of_a_name(api: Api) -> None:
    answers = _race(api, lambda client: client.post("/api/tokens", json={"name": "one"}))
    _one_won(answers, 201, (409, "token_name_taken"))
    assert api.write(lambda tx: tx.count(Token, name="one")) == 1


def test_a_loop_that_many_delete_is_deleted_once(api: Api) -> None:
    project, *_ = api.family()
    loop = rows.loop(project)
    api.write(lambda tx: tx.insert(loop))
    answers = _race(api, lambda client: client.delete(f"/api/loops/{loop.id}"))
    assert {one.status_code for one in answers} == {204}
    assert len(api.get("/api/events", type="loop_deleted")["events"]) == 1


def test_a_request_that_is_repeated_while_it_runs_is_carried_out_once(api: Api) -> None:
    project, *_ = api.family()
    loop = rows.loop(project)
    api.write(lambda tx: tx.insert(loop))
    key = {"Idempotency-Key": "once"}
    answers = _race(api, lambda client: client.delete(f"/api/loops/{loop.id}", headers=key))
    done = [one for one in answers if one.status_code == 204]
    assert sum("idempotency-replayed" not in one.headers for one in done) == 1
    lost = {one.json()["code"] for one in answers if one.status_code != 204}
    assert lost <= {"request_running"}


def test_a_request_that_failed_half_way_is_not_carried_out_again(api: Api) -> None:
    project, *_ = api.family()
    loop = rows.loop(project)
    api.write(lambda tx: tx.insert(loop))
    key = {"Idempotency-Key": "half"}
    api.store.fails = "loop.delete"
    with api.client() as client:
        failed = client.delete(f"/api/loops/{loop.id}", headers=key)
        api.store.fails = ""
        again = client.delete(f"/api/loops/{loop.id}", headers=key)
        anew = client.delete(f"/api/loops/{loop.id}", headers={"Idempotency-Key": "new"})
    assert (failed.status_code, failed.json()["code"]) == (503, "store_unavailable")
    assert (again.status_code, again.json()["code"]) == (409, "request_outcome_unknown")
    assert anew.status_code == 204
