"""Which path a contained process finds how: told from the table alone."""

import sys
from pathlib import Path
from typing import Any

import pytest

from loopwright.adapters.sandbox.bubblewrap import Bubblewrap
from loopwright.adapters.sandbox.mounts import Mount, is_hidden, is_writable, mounts, ordered
from loopwright.core.values.containment import HomeView, PrivatePath
from loopwright.ports import Reach


def table(user: Path, **more: Any) -> Any:
    own = user.parent / "own"
    view = HomeView(
        place=f"{own}/users/a",
        real=str(user),
        hidden=(".cargo/credentials", ".ssh"),
        private=(PrivatePath(path=".agent/", source=f"{user}/.agent/", sessions=("talks",)),),
    )
    narrowed = Bubblewrap(program="bwrap").view(view)
    values: dict[str, Any] = {
        "directory": Path(own, "runs/r"),
        "cwd": Path(own, "workspaces/a"),
        "env": {"PATH": f"{user}/tools/bin:{user}/bin:{user}/.local/bin:/usr/bin"},
        "writable": (Path(own, "workspaces/a"),),
        "home": narrowed,
    }
    return mounts(
        Reach(**{**values, **more}), own=(str(own),), readable=("/run/postgresql",), writable=("/srv/out",)
    )


def test_a_file_with_secrets_is_hidden_wherever_it_would_be_seen(user: Path) -> None:
    def hidden(secret: Path, *, bare: bool = False, **more: Any) -> bool:
        reach = Reach(directory=user / "run", cwd=user, **more)
        found = mounts(reach, own=(str(secret),), readable=(), writable=(), bare=bare)
        return found.get(str(secret)) == Mount(kind="mask")

    on_machine = Path(sys.prefix, "pyvenv.cfg").resolve()
    assert hidden(on_machine)
    assert hidden(on_machine, bare=True), "the image shows this Python"
    assert not hidden(Path("/etc/passwd"), bare=True), "the image has its own"
    in_gap = user / ".cargo" / "credentials"
    assert not hidden(in_gap), "the temporary folder of the run does not have it"
    assert hidden(in_gap, readable=(in_gap.parent,))
    assert hidden(in_gap, writable=(user,))
    assert hidden(in_gap, readable=(in_gap,))


@pytest.fixture
def user(tmp_path: Path) -> Path:
    user = tmp_path / "user"
    (user / ".cargo").mkdir(parents=True)
    (user / ".cargo" / "credentials").write_text("token")
    (user / ".agent" / "talks").mkdir(parents=True)
    (tmp_path / "own").mkdir()
    return user


def test_only_the_workspace_the_temporary_folder_and_what_was_let_can_be_written(user: Path) -> None:
    own = user.parent / "own"
    found = table(user)
    writable = (
        f"{own}/workspaces/a/x",
        "/tmp/x",
        "/var/tmp/x",
        "/srv/out/x",
        f"{own}/runs/r/home/.agent/login",
    )
    assert [path for path in writable if not is_writable(found, path)] == []
    others = (
        *("/etc/passwd", "/srv/x", "/usr/bin/x", f"{user}/.cargo/x", f"{user}/bin/x", "/run/postgresql/x"),
        f"{user}/.agent/settings",
    )
    assert [path for path in others if is_writable(found, path)] == []


def test_home_and_our_own_files_are_hidden_but_for_tools(user: Path) -> None:
    own = user.parent / "own"
    found = table(user)
    hidden = (
        f"{user}/diary",
        f"{user}/.ssh/id",
        f"{user}/.cargo/credentials",
        f"{user}/.agent/talks/other",
        f"{own}/loopwright.db",
        "/run/bus",
    )
    assert [path for path in hidden if not is_hidden(found, path)] == []
    seen = (f"{user}/.cargo/bin", f"{user}/tools/lib", f"{user}/bin/x", f"{user}/.local/bin/x", "/etc/hosts")
    assert [path for path in seen if is_hidden(found, path)] == []
    assert is_hidden(found, f"{user}/.local/share/keyrings"), (
        "a folder of programs shows no more than itself there"
    )


def test_what_lies_deeper_is_mounted_later(user: Path) -> None:
    places = [place for place, _ in ordered(table(user))]
    for n, place in enumerate(places):
        assert not any(place.startswith(f"{later}/") for later in places[n:])


def test_a_run_that_may_only_read_has_its_workspace_in_sight(user: Path) -> None:
    own = user.parent / "own"
    workspace = Path(own, "workspaces/a")
    found = table(user, writable=(), readable=(workspace,))
    assert not is_writable(found, f"{workspace}/x")
    assert not is_hidden(found, f"{workspace}/x")


def test_nothing_is_mounted_on_a_link_that_is_seen_with_its_folder(user: Path) -> None:
    (user / "tools" / "bin").mkdir(parents=True)
    (user / "elsewhere").mkdir()
    real = user / "elsewhere" / "python"
    real.write_text("#!/bin/sh\n")
    link = user / "tools" / "bin" / "python"
    link.symlink_to(real)
    found = table(user, argv=(str(link),))
    assert str(link) not in found, "a virtual environment's program is such a link"
    assert found[str(user / "tools")].kind == "read"
    assert found[str(real)].kind == "read"


def test_nothing_is_mounted_on_a_link_whose_folder_comes_to_be_seen_later(user: Path) -> None:
    """As with a program in a virtual environment below /tmp: its interpreter is a link out of it."""
    real = user.parent / "pythons" / "python3"
    real.parent.mkdir()
    real.write_text("")
    environment = user.parent / "checkout" / ".venv"
    (environment / "bin").mkdir(parents=True)
    (environment / "bin" / "python").symlink_to(real)
    shown = (environment / "bin" / "python", environment)
    found = table(user, readable=shown)
    assert str(environment) in found
    assert str(environment / "bin" / "python") not in found
    assert not is_hidden(found, str(real))


def test_a_hidden_checkout_is_seen_by_what_is_lent_of_it_alone(user: Path) -> None:
    checkout = user.parent / "checkout"
    for name in ("src", ".git/objects", ".venv/bin"):
        (checkout / name).mkdir(parents=True)
    found = table(
        user,
        hidden=(checkout,),
        readable=(checkout / ".git" / "objects",),
        env={"PATH": f"{checkout}/.venv/bin:/usr/bin"},
    )
    hidden = [
        path
        for path in ("src", ".git/config", ".git/objects/x", ".venv/bin/x")
        if is_hidden(found, f"{checkout}/{path}")
    ]
    assert hidden == ["src", ".git/config"]
