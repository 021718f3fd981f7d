"""Looking at a project for an inspection packet: its files, its checks, what it says of itself, its newest commits."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from loopwright.adapters.detect import detect
from loopwright.adapters.git import GitRepository
from loopwright.adapters.redaction import redacted
from loopwright.core.packets import PacketProject, bounded, layout

TEXTS: Final = ("README.md", "README.rst", "README", "AGENTS.md", "CLAUDE.md", "CONTRIBUTING.md", "GEMINI.md")
"""What a project says of itself, to people and to agents."""
_COMMITS: Final = 20


async def look_at(
    repository: GitRepository, root: Path, name: str, *, secrets: Sequence[str] = ()
) -> tuple[PacketProject, tuple[str, ...]]:
    """Return what can be seen of a project without running anything, and what has to be asked about it."""
    base = await repository.base()
    tracked = await repository.tracked(base.sha)
    found = detect(root, tracked=tracked)
    texts = {one: _text(root / one) for one in TEXTS if one in tracked}
    project = PacketProject(
        name=name,
        languages=found.languages,
        setup=found.setup or "",
        gates=tuple(
            {"name": one.name, "command": one.command, "why": one.why, "missing": ", ".join(one.missing)}
            for one in found.gates
        ),
        layout=layout(tracked),
        texts={one: redacted(bounded(text), secrets) for one, text in texts.items() if text},
        history=tuple(redacted(line, secrets) for line in await repository.newest(base.sha, _COMMITS)),
        base=base.sha,
    )
    asks = list(found.notes)
    if base.dirty:
        asks.append(
            f"{len(base.dirty)} changed files of the checkout are not part of what a plan starts from."
        )
    if not found.gates:
        asks.append("Which command shows that the project works?")
    return project, tuple(asks)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    except OSError:
        return ""
