"""What `doctor` says of pull requests, where a plan of this repository would end in one: remote, host and token."""

import asyncio

from loopwright.adapters.git import GitRepository
from loopwright.config.resolve import Settings
from loopwright.core.policy.finishing import PULL_REQUEST
from loopwright.core.values.errors import LoopwrightError, Refused
from loopwright.services.doctor.checkup_machine import Finding, Status
from loopwright.services.homes.caller import environment
from loopwright.services.homes.context import here
from loopwright.services.homes.repository_glance import glance_at


async def _address(repository: GitRepository, remote: str) -> str | None:
    return await (await repository.ends()).remote(remote)


def forge(settings: Settings) -> list[Finding]:
    """Return where pull requests go, without a network request; nothing if plans end otherwise."""
    place, wanted = here(), settings.values.forge
    if settings.values.finish != PULL_REQUEST or place is None:
        return []
    # Its library takes long to load, and a project without a remote does without it.
    from loopwright.adapters.forge.choosing import choose

    try:
        with glance_at(place.root) as repository:
            address = asyncio.run(_address(repository, wanted.remote))
        if address is None:
            raise Refused(
                f"there is no git remote {wanted.remote!r}",
                code="no_remote",
                hint="add it, or set forge.remote",
            )
        chosen = choose(address, hosts=wanted.hosts, token_file=wanted.token_file, env=environment())
    except LoopwrightError as trouble:
        fix = getattr(trouble, "hint", None) or "see to it, or set finish to leave"
        return [Finding(name="forge", status=Status.FAIL, text=str(trouble), fix=fix)]
    text = (
        f"pull requests go to {chosen.remote.path} on {chosen.name} ({chosen.url}), with the token in "
        f"{chosen.token_from}; whether it is valid was not asked"
    )
    return [Finding(name="forge", status=Status.OK, text=text)]
