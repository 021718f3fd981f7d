"""Find the suspicious places of a candidate."""

from typing import Final

from loopwright.core.integrity.suspicion import Change, suspicious_places
from loopwright.ports import Candidate, Entry, Repository

_MOST_BYTES: Final = 4_000_000
_FILE: Final = "100"


async def places_in(repository: Repository, candidate: Candidate, subfolder: str) -> tuple[str, ...]:
    """Return the places of a candidate that a reviewer should look at, with paths relative to the project."""
    top = f"{subfolder}/" if subfolder else ""
    changed = [(one.path.removeprefix(top), _id(one.before), _id(one.after)) for one in candidate.changes]
    ids = dict.fromkeys(each for _, before, after in changed if after for each in (after, before) if each)
    texts = await repository.texts(list(ids), limit=_MOST_BYTES) if ids else {}
    places = suspicious_places(
        Change(path=path, before=texts.get(before or "", ""), after=texts[after])
        for path, before, after in changed
        if after is not None and after in texts
    )
    return tuple(str(place) for place in places)


def _id(entry: Entry | None) -> str | None:
    return entry.id if entry is not None and entry.mode.startswith(_FILE) else None
