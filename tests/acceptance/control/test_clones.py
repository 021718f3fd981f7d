"""A project that is named by an address: cloned, fetched before each plan, and pushed by a pull request only."""

from pathlib import Path

from tests.acceptance.cli.program import git
from tests.acceptance.control.workshop import Workshop, refused
from tests.acceptance.sandbox import task

from loopwright.core.rows.model import Plan, Project

URL = "https://forge.example/acme/app.git"


def remote(shop: Workshop) -> Path:
    """Make the repository that the address leads to, and return it: git's own rules stand in for the network."""
    bare = shop.place / "remote.git"
    shop.git("clone", "-q", "--bare", str(shop.repository), str(bare))
    (shop.program.user / ".gitconfig").write_text(f'[url "{bare}"]\n\tinsteadOf = {URL}\n')
    return bare


def test_an_address_is_cloned_once_and_fetched_before_each_plan(shop: Workshop) -> None:
    bare = remote(shop)
    said = shop("projects", "add", URL, "--json", cwd=shop.place)
    assert said.code == 0, said.out + said.err
    clone = Path(said.document["project"]["path"])
    assert clone.parent == shop.home / "clones"
    assert shop("projects", "add", URL, "--json", cwd=shop.place).document["project"]["path"] == str(clone)
    assert len(shop.rows(Project)) == 1

    # Somebody pushes: the next plan begins from there.
    (shop.repository / "later").write_text("later\n")
    shop.git("add", "later")
    shop.git("commit", "-qm", "later")
    shop.git("push", "-q", str(bare), "trunk")
    shop.play({"one": [[{"write": "one", "text": "1\n"}]]})
    plan = shop.plan("one", [task("one", "test -s later && test -s one")])
    refused(shop("run", str(plan), "--finish", "squash", cwd=clone), 2, "is a clone in the home")
    said = shop("run", str(plan), cwd=clone, timeout=100)
    assert said.code == 0, said.out + said.err
    assert shop.row(Plan).base_sha == shop.git("rev-parse", "trunk").strip()
    assert git(clone, "remote", "get-url", "origin").strip().endswith(("app.git", "remote.git"))

    # What is in the clone and not on the remote stops the next plan: nothing of it is lost.
    git(clone, "commit", "-q", "--allow-empty", "-m", "mine")
    (shop.repository / "more").write_text("more\n")
    shop.git("add", "more")
    shop.git("commit", "-qm", "more")
    shop.git("push", "-q", str(bare), "trunk")
    refused(shop("run", str(plan), "--new", cwd=clone), 2, "git could not merge")


def test_no_other_form_of_an_address_reaches_git(shop: Workshop) -> None:
    sign = shop.place / "ran"
    for url in (f"ext::sh -c touch% {sign}", f"file://{shop.repository}", str(shop.repository)):
        refused(shop("projects", "add", url), 2, "is not an address that is cloned")
    refused(shop("projects", "add", "--", f"--upload-pack=touch {sign}"), 2, "is not an address")
    assert not sign.exists()
    assert not (shop.home / "clones").exists()


def test_submodules_of_a_clone_are_not_fetched(shop: Workshop) -> None:
    inner = shop.place / "inner"
    git(shop.place, "init", "-q", str(inner))
    git(inner, "commit", "-q", "--allow-empty", "-m", "inner")
    shop.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "inner")
    shop.git("commit", "-qm", "a submodule")
    remote(shop)
    said = shop("projects", "add", URL, "--json", cwd=shop.place)
    assert said.code == 0, said.out + said.err
    assert list(Path(said.document["project"]["path"], "inner").iterdir()) == []
