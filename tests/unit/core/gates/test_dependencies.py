"""Which installed dependencies two workspaces share, and how they are installed."""

from typing import Any

from tests.cases import each_case

from loopwright.core.gates.dependencies import READY, dependency_key, install_step, is_deciding
from loopwright.core.gates.gates import setup_command, setup_settings
from loopwright.core.values.policy import Policy

INSTALL = "./bin/install --lock deps.lock"


def key(files: dict[str, str], **changes: Any) -> str | None:
    given = {"policy": Policy(dependencies=INSTALL), "environment": {"PATH": "/bin"}, "machine": ("linux",)}
    return dependency_key(files=files, **{**given, **changes})


@each_case(
    ("path", "decides"),
    [
        ("package-lock.json", True),
        ("web/package.json", True),
        ("requirements/dev.txt", True),
        ("bin/install", True),
        ("deps.lock", True),
        ("vendor/list.txt", True),
        ("src/app.py", False),
    ],
)
def test_manifests_and_what_the_command_names_decide_what_is_installed(path: str, decides: bool) -> None:
    policy = Policy(dependencies=INSTALL, dependency_files=("vendor/**",))
    assert is_deciding(path, policy) is decides


def test_a_command_that_no_shell_reads_is_split_at_its_spaces() -> None:
    assert is_deciding("deps.lock", Policy(dependencies="install 'deps.lock deps.lock"))


def test_the_same_files_command_and_machine_share_what_was_installed() -> None:
    files = {"package.json": "1", "src/app.py": "1"}
    assert key(files) == key({**files, "src/app.py": "2"})
    others = [
        key({**files, "package.json": "2"}),
        key(files, policy=Policy(dependencies="npm ci")),
        key(files, environment={"PATH": "/other"}),
        key(files, machine=("darwin",)),
    ]
    assert len({key(files), *others}) == 5
    assert key({"src/app.py": "1"}) is None


def test_setup_installs_dependencies_first_unless_they_were_copied() -> None:
    install = f'[ -n "${READY}" ] || {{\nnpm ci\n}}'
    both = Policy(dependencies="npm ci", setup="make setup")
    assert install_step(both) == install
    command, alone = setup_command(both), setup_command(Policy(dependencies="npm ci"))
    assert command is not None
    assert alone is not None
    assert command.command == f"{install} && {{\nmake setup\n}}"
    assert alone.command == install
    assert setup_settings(both) == ("dependencies", "setup")
    assert setup_settings(Policy()) == ()
    assert setup_command(Policy()) is None
