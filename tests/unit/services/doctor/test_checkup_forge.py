"""What `doctor` says of pull requests."""

import subprocess
from pathlib import Path

import pytest
from tests.wording_plugin import Wording

from loopwright.config.resolve import Settings, load
from loopwright.services.doctor.checkup_machine import Status
from loopwright.services.doctor.checkup_project import forge


def settings(finish: str) -> Settings:
    return load({"HOME": "/nowhere"}, platform="linux", flags={"finish": finish})


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_TOKEN", "GH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_it_says_nothing_where_no_plan_ends_in_a_pull_request(repository: Path) -> None:
    assert forge(settings("squash")) == []


def test_it_says_what_is_missing_and_then_where_they_go(
    repository: Path, monkeypatch: pytest.MonkeyPatch, wording: Wording
) -> None:
    (missing,) = forge(settings("pull-request"))
    assert (missing.status, "no git remote 'origin'" in missing.text) == (Status.FAIL, True)
    subprocess.run(["git", "remote", "add", "origin", "git@github.com:acme/app.git"], check=True)
    (missing,) = forge(settings("pull-request"))
    assert (missing.status, "GITHUB_TOKEN" in missing.fix) == (Status.FAIL, True)
    monkeypatch.setenv("GH_TOKEN", "tok_secret")
    (found,) = forge(settings("pull-request"))
    assert found.status is Status.OK
    wording(found.text)
    assert "tok_secret" not in found.text
