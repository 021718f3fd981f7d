"""Which forge a remote means, and the token for it. Nothing is sent anywhere yet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from loopwright.adapters.forge import github, github_issues, gitlab, gitlab_issues
from loopwright.adapters.forge.api import Remote, parse_remote
from loopwright.core.values.errors import Refused
from loopwright.ports import Forge, Issues

_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
_LARGEST: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What speaks for a remote."""

    kind: str
    name: str
    remote: Remote
    url: str
    token: str
    token_from: str


def choose(address: str, *, hosts: Sequence[str], token_file: str | None, env: Mapping[str, str]) -> Chosen:
    """Find the forge of a remote's address, and its token; raise `Refused` with what to do.

    A token is only ever sent to the two well-known hosts, and to those that the user's own settings name.
    """
    remote = parse_remote(address)
    if remote is None:
        raise Refused(
            "the remote is not a repository on a forge, so there is nowhere to open a pull request",
            code="no_forge",
            hint="give the remote an address such as git@github.com:you/project.git",
        )
    known = {github.HOST: ("github", ""), gitlab.HOST: ("gitlab", ""), **_named(hosts)}
    if remote.host not in known:
        raise Refused(
            f"whether {remote.host} is a GitHub or a GitLab is not known",
            code="forge_unknown",
            hint=f'say so in your own config.toml: [forge] hosts = ["{remote.host} github"] (or gitlab)',
        )
    kind, given = known[remote.host]
    forge = github if kind == "github" else gitlab
    url = given or forge.api_url(remote.host)
    parts = urlsplit(url)
    if parts.scheme != "https" and parts.hostname not in _LOOPBACK:
        raise Refused(
            f"{url} is not encrypted, so no token is sent there",
            code="forge_not_encrypted",
            hint="give an address with https",
        )
    token, token_from = _token(forge.TOKENS, token_file, env)
    if not token:
        raise Refused(
            f"there is no token for {forge.NAME}",
            code="forge_token_missing",
            hint=f"set {' or '.join(forge.TOKENS)} where Loopwright runs, or name a file in the setting "
            "forge.token_file",
        )
    return Chosen(kind=kind, name=forge.NAME, remote=remote, url=url, token=token, token_from=token_from)


def open_forge(
    address: str, *, hosts: Sequence[str], token_file: str | None, env: Mapping[str, str]
) -> Forge:
    """Return the repository on a forge that a remote's address means."""
    chosen = choose(address, hosts=hosts, token_file=token_file, env=env)
    made = github.GitHub if chosen.kind == "github" else gitlab.GitLab
    return made(chosen.remote, chosen.url, chosen.token, chosen.token_from)


def open_issues(
    address: str, *, hosts: Sequence[str], token_file: str | None, env: Mapping[str, str]
) -> Issues:
    """Return the issues and pull requests of the repository that a remote's address means."""
    chosen = choose(address, hosts=hosts, token_file=token_file, env=env)
    made = github_issues.GitHubIssues if chosen.kind == "github" else gitlab_issues.GitLabIssues
    return made(chosen.remote, chosen.url, chosen.token, chosen.token_from)


def _named(hosts: Sequence[str]) -> dict[str, tuple[str, str]]:
    found = {}
    for entry in hosts:
        host, kind, *url = entry.split()
        found[host.lower()] = (kind, url[0] if url else "")
    return found


def _token(names: Sequence[str], token_file: str | None, env: Mapping[str, str]) -> tuple[str, str]:
    if not token_file:
        found = next((name for name in names if env.get(name)), names[0])
        return env.get(found, "").strip(), found
    path = Path(token_file).expanduser()
    try:
        if path.stat().st_mode & 0o077:
            raise Refused(
                f"others can read {path}, which has a token in it",
                code="forge_token_exposed",
                hint=f"chmod 600 {path}",
            )
        with path.open(encoding="utf-8") as file:
            return file.read(_LARGEST).strip(), str(path)
    except (OSError, ValueError) as error:
        raise Refused(
            f"the token in {path} cannot be read: {error}",
            code="forge_token_unreadable",
            hint="look at the setting forge.token_file",
        ) from error
