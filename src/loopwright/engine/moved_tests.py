"""Which tests of a candidate its work only moved, or had follow a module that it moved."""

import asyncio
from typing import Final

from loopwright.core.gate_files import Kind, Rules, kind_of
from loopwright.core.moved_tests import READ, Changed, moved_tests
from loopwright.engine.gate_scripts import inside
from loopwright.ports import Candidate, FileChange, Repository

_MOST: Final = 4 << 20
"""So many bytes are read; whatever is behind that counts as no move."""
_MANY: Final = 200
"""More files that came or went than these are not held against each other."""
_REGULAR: Final = ("100644", "100755")


async def moved_in(
    repository: Repository, subfolder: str, rules: Rules, candidate: Candidate
) -> dict[str, str]:
    """Return where tests are now that were only moved, by where they were; nothing is read where none can have been."""
    sides: dict[tuple[str, bool], list[FileChange]] = {}
    for change in candidate.changes:
        path = inside(subfolder, change.path)
        kind = kind_of(path, rules, existed=change.before is not None)
        if path.endswith(READ) and kind in (None, Kind.TEST) and _is_text(change):
            side = "new" if change.before is None else "gone" if change.after is None else "changed"
            sides.setdefault((side, kind is Kind.TEST), []).append(change)
    gone, new = sides.get(("gone", False), []), sides.get(("new", False), [])
    gone_tests, new_tests = sides.get(("gone", True), []), sides.get(("new", True), [])
    # What only changed counts where something was moved that it may load.
    changed_tests = sides.get(("changed", True), []) if (gone and new) or (gone_tests and new_tests) else []
    can_be = (gone_tests and new_tests) or changed_tests
    if not can_be or max(map(len, (gone, new, gone_tests, new_tests))) > _MANY:
        return {}
    concerned = [*gone_tests, *new_tests, *changed_tests, *gone, *new]
    entries = [entry for one in concerned for entry in (one.before, one.after) if entry is not None]
    texts = await repository.texts(list(dict.fromkeys(entry.id for entry in entries)), limit=_MOST)

    def read(changes: list[FileChange]) -> dict[str, str]:
        pairs = ((inside(subfolder, one.path), one.before or one.after) for one in changes)
        return {path: texts[entry.id] for path, entry in pairs if entry is not None and entry.id in texts}

    top = f"{subfolder}/" if subfolder else ""
    before = {path.removeprefix(top) for path in await repository.listed(candidate.parent)}
    came = {inside(subfolder, one.path) for one in candidate.changes if one.before is None}
    went = {inside(subfolder, one.path) for one in candidate.changes if one.after is None}
    found = Changed(
        deleted=read(gone),
        added=read(new),
        deleted_tests=read(gone_tests),
        added_tests=read(new_tests),
        rewritten_tests={
            inside(subfolder, one.path): (texts[one.before.id], texts[one.after.id])
            for one in changed_tests
            if one.before and one.after and one.before.id in texts and one.after.id in texts
        },
        before=before,
        after=(before - went) | came,
    )
    # Beside the event loop, which others need meanwhile.
    return await asyncio.to_thread(moved_tests, found)


def _is_text(change: FileChange) -> bool:
    return all(entry is None or entry.mode in _REGULAR for entry in (change.before, change.after))
