"""Looking at a project for an inspection packet: its files, its checks, what it says of itself, its newest commits."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from loopwright.adapters.detect import detect
from loopwright.adapters.git import GitRepository
from loopwright.core.plans.inspection_packets import PacketProject, layout
from loopwright.core.values.policy import GateCommand

TEXTS: Final = (
    *("README.md", "README.rst", "README", "CONTRIBUTING.md"),
    *("AGENTS.md", "CLAUDE.md", "GEMINI.md", "QWEN.md", ".goosehints", ".cursorrules"),
    ".github/copilot-instructions.md",
)
"""What a project says of itself, to people and to agents."""
_COMMITS: Final = 20


async def look_at(
    repository: GitRepository, root: Path, subfolder: str, *, setup: str, gates: Sequence[GateCommand]
) -> tuple[PacketProject, tuple[str, ...], tuple[str, ...]]:
    """Return what can be seen of a project without running anything, what has to be asked about it, and what was cut.

    A project in a folder of a repository is that folder; what the whole repository says of itself holds for it, too.
    `setup` and `gates` are what its settings say: where they do, nothing else is proposed.
    """
    base = await repository.base()
    every = await repository.tracked(base.sha)
    above = f"{subfolder}/" if subfolder else ""
    tracked = [path.removeprefix(above) for path in every if path.startswith(above)]
    found = detect(root / subfolder, tracked=tracked)
    told = set(every)
    names = [f"{folder}{one}" for folder in dict.fromkeys((above, "")) for one in TEXTS]
    texts = {one: _text(root / one) for one in names if one in told}
    rows, cut = layout(tracked)
    project = PacketProject(
        name=f"{root.name}/{subfolder}" if subfolder else root.name,
        languages=found.languages,
        setup=setup or found.preparation,
        gates=tuple(
            {"name": one.name, "command": one.command, "why": "the project's own", "missing": ""}
            for one in gates
        )
        or tuple(
            {"name": one.name, "command": one.command, "why": one.why, "missing": ", ".join(one.missing)}
            for one in found.gates
        ),
        layout=rows,
        texts={one: text for one, text in texts.items() if text},
        history=tuple(await repository.newest(base.sha, _COMMITS)),
        base=base.sha,
    )
    asks = [] if gates else list(found.notes)
    if base.dirty:
        asks.append(
            f"{len(base.dirty)} changed files of the checkout are not part of what a plan starts from."
        )
    if not project.gates:
        asks.append("Which command shows that the project works?")
    return project, tuple(asks), (cut,) if cut else ()


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    except OSError:
        return ""
