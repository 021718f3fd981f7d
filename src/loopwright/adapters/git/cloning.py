"""Clones of repositories that are named by an address: made once, brought up to date before each plan."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from loopwright.adapters.git.plumbing.network import LOGIN, network_env
from loopwright.adapters.git.plumbing.runner import Git, user_env
from loopwright.core.values.errors import GitFailed, Refused
from loopwright.core.values.git_urls import clone_name

_FOLDER: Final = "clones"
_REACHABLE: Final = ("-c", "protocol.https.allow=always", "-c", "protocol.ssh.allow=always")
"""No helper program, and nothing that is not encrypted."""
_PLAIN: Final = ("--no-recurse-submodules", "--quiet")


def is_clone(home: Path, root: Path) -> bool:
    """Return whether a repository is one of the home's clones."""
    return root.parent == (home / _FOLDER).resolve()


async def clone(home: Path, url: str) -> Path:
    """Clone a repository into the home, or bring its clone up to date, and return the folder."""
    folder = (home / _FOLDER).resolve() / clone_name(url)
    if folder.is_dir():
        await refresh(folder)
        return folder
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # A clone that was killed leaves nothing under the name that counts.
    with TemporaryDirectory(prefix=".new-", dir=folder.parent) as draft:
        made = Path(draft, "made")
        await _run("clone", *_PLAIN, "--template=", "--", url, str(made), where=folder.parent)
        made.rename(folder)
    return folder


async def refresh(folder: Path) -> None:
    """Fetch, and move the branch that is checked out to where the remote has it; raise `Refused` if it cannot be."""
    await _run("fetch", *_PLAIN, "--prune", "origin", where=folder)
    await _run("merge", "--ff-only", "--quiet", "@{upstream}", where=folder)


async def _run(*words: str, where: Path) -> None:
    env = {**user_env(), **network_env()}
    try:
        await Git().run(*_REACHABLE, *words, env=env, cwd=where)
    except GitFailed as failed:
        raise Refused(
            f"git could not {words[0]} in {where}: {LOGIN.sub('', str(failed)).partition(': ')[2]}",
            code="clone_failed",
            hint="see that git reaches the address in a terminal without asking anything",
        ) from failed
