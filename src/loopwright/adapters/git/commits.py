"""Writing commits whose ids depend on nothing but what they say."""

import re
from collections.abc import Sequence
from datetime import datetime

from loopwright.adapters.git.depot import Depot
from loopwright.adapters.git.runner import Git
from loopwright.ports import Trailers

_SUBJECT_LIMIT = 200


def message_of(subject: str, trailers: Trailers | None) -> str:
    """Return a commit message: one line, then who the commit belongs to."""
    line = re.sub(r"[\x00-\x20\x7f]+", " ", subject).strip()[:_SUBJECT_LIMIT] or "Loopwright"
    line = line.encode("utf-8", "replace").decode("utf-8")
    if trailers is None:
        return line
    return (
        f"{line}\n\n"
        f"Loopwright-Plan: {trailers.plan}\n"
        f"Loopwright-Task: {trailers.task}\n"
        f"Loopwright-Attempt: {trailers.attempt}\n"
        f"Loopwright-Run: {trailers.run}"
    )


async def write_commit(
    git: Git, depot: Depot, tree: str, *, parents: Sequence[str], message: str, at: datetime
) -> str:
    """Write a commit into our own git dir; the same arguments give the same id."""
    name, email = depot.settings.name, depot.settings.email
    when = f"@{int(at.timestamp())} +0000"
    env = depot.env() | {
        "GIT_AUTHOR_NAME": name,
        "GIT_AUTHOR_EMAIL": email,
        "GIT_AUTHOR_DATE": when,
        "GIT_COMMITTER_NAME": name,
        "GIT_COMMITTER_EMAIL": email,
        "GIT_COMMITTER_DATE": when,
    }
    flags = [part for parent in parents for part in ("-p", parent)]
    done = await git.run("commit-tree", tree, *flags, env=env, stdin=message.encode() + b"\n")
    return done.text
