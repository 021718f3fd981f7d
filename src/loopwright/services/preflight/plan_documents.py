"""Find the documents beside a source, and tell agents where they are in the workspace."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from loopwright.adapters.git import GitRepository
from loopwright.adapters.sources.text.reading import folder_of
from loopwright.ports import PlannedWork
from loopwright.services.homes.context import Place


async def with_documents(
    repository: GitRepository, sha: str, place: Place, plan: Path, work: PlannedWork, copied: Sequence[str]
) -> tuple[PlannedWork, tuple[str, ...]]:
    """Return work whose documents are paths in a workspace, and a note about those that a workspace does not have."""
    if not work.documents:
        return work, ()
    project = (place.root / place.subfolder).resolve()
    found = {
        os.path.relpath(path, place.root.resolve()): path
        for one in work.documents
        if (path := (folder_of(plan.resolve()) / one).resolve()).is_relative_to(place.root.resolve())
    }
    committed = await repository.files_at(sha, list(found))
    there = [
        os.path.relpath(path, project)
        for name, path in found.items()
        if name in committed or any(path.is_relative_to(project / one) for one in copied)
    ]
    missing = [name for name in found if name not in committed]
    missing = [name for name in missing if os.path.relpath(found[name], project) not in there]
    if not missing:
        return replace(work, documents=tuple(there)), ()
    many = len(missing) > 1
    names = f"{missing[0]} and {len(missing) - 1} more are" if many else f"{missing[0]} is"
    note = f"{names} not in {sha[:7]}, so agents cannot read {'them' if many else 'it'}: commit, or use copy_files"
    return replace(work, documents=tuple(there)), (note,)
