"""Projects that are clones in the home: named by an address, fetched before each plan, pushed by pull requests."""

import sys

from loopwright.adapters.git.cloning import is_clone, refresh
from loopwright.core.policy.finishing import LEAVE, PULL_REQUEST
from loopwright.core.values.errors import Refused
from loopwright.services.homes.caller import environment
from loopwright.services.homes.context import Place
from loopwright.services.homes.read_only_home import whereabouts


def _is_clone(place: Place) -> bool:
    home, _ = whereabouts(environment(), sys.platform)
    return is_clone(home, place.root)


async def fetched(place: Place | None) -> None:
    """Bring a clone up to date before a plan is made of it; leave any other repository alone."""
    if place is not None and _is_clone(place):
        await refresh(place.root)


def check_clone(place: Place, finish: str) -> None:
    """Refuse a finish whose result would stay in a clone that belongs to Loopwright."""
    if finish not in (LEAVE, PULL_REQUEST) and _is_clone(place):
        raise Refused(
            f"finish is {finish}, but {place.root} is a clone in the home: the remote would not get the result",
            code="clone_is_not_yours",
            hint="set finish to pull-request",
        )
