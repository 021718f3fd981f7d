"""A roadmap.md as lines: its sections, its milestones with their fields, and the candidate directions in them.

Older folders write fields without a dash, and directions as items of a list instead of below headings.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

SECTIONS: Final = (
    "Goal", "Alignment Summary", "Outcome Boundaries", "Global Sequencing Rules", "Parallel Lanes", "Milestones",
)  # fmt: skip
MILESTONE_FIELDS: Final = (
    "Milestone id", "Depends on", "Intent", "Completion signal", "Parallel lane", "Coordination notes",
)  # fmt: skip
DIRECTION_FIELDS: Final = (
    "Direction id", "Summary", "Why it matters now", "Preconditions", "Parallel hints", "Boundary notes",
    "Extraction notes",
)  # fmt: skip
_NAMES: Final = {name.lower(): name for name in (*MILESTONE_FIELDS, *DIRECTION_FIELDS)}
_IDS: Final = ("Milestone id", "Direction id")
"""Fields of one line: the next line is another field or text."""


@dataclass(slots=True)
class Block:
    """A heading with the fields below it; a milestone has the blocks of its directions and pointers, too."""

    line: int
    title: str
    fields: dict[str, tuple[int, str]] = field(default_factory=dict)
    blocks: "list[Block]" = field(default_factory=list)
    end: int = 0
    """The line after its last."""
    is_item: bool = False
    """Whether it is an item of a list, so that its first field is on its own line."""

    def said(self, name: str) -> str:
        """Return a field's words; an id in backticks without them."""
        words = self.fields.get(name, (0, ""))[1]
        return words[1:-1] if words[:1] == words[-1:] == "`" and words.count("`") == 2 else words

    def listed(self, name: str) -> tuple[str, ...]:
        """Return the ids that a field lists; `none` is an empty list."""
        words = (part.strip().strip("`").strip() for part in self.fields.get(name, (0, ""))[1].split(","))
        return tuple(word for word in words if word and word.lower() != "none")


@dataclass(slots=True)
class Roadmap:
    """What stands where in a roadmap.md."""

    lines: list[str]
    """Without their ends."""
    sections: dict[str, tuple[int, int]] = field(default_factory=dict)
    """The line of each top-level section's heading, counted from 1, and the line after its last."""
    milestones: list[Block] = field(default_factory=list)
    places: dict[str, list[int]] = field(default_factory=dict)
    """On which lines each line's words stand."""

    def selected(self, selector: str) -> list[int]:
        """Return the lines that are exactly what a selector says."""
        return self.places.get(selector.strip(), [])

    def between(self, first: int, end: int) -> str:
        """Return the text from a line up to another one, which is not included."""
        return "\n".join(self.lines[first - 1 : end - 1]).strip()


def read_roadmap(text: str) -> Roadmap:
    """Return the parts of a roadmap; what is missing or odd is for others to say."""
    found = Roadmap(text.split("\n"))
    found.lines = [line.removesuffix("\r") for line in found.lines]
    for number, line in enumerate(found.lines, 1):
        found.places.setdefault(line.strip(), []).append(number)
    section, holder = "", None
    for number, level, words in _headings(found.lines):
        if level <= 2:
            _close(found, section, number)
            section, holder = words, None
            found.sections.setdefault(section, (number, number))
        elif section == "Milestones" and level == 3:
            _end(found, number)
            holder = Block(number, words)
            found.milestones.append(holder)
        elif holder is not None and level == 4:
            if holder.blocks:
                holder.blocks[-1].end = number
            holder.blocks.append(Block(number, words))
    _close(found, section, len(found.lines) + 1)
    for milestone in found.milestones:
        if not milestone.blocks:
            milestone.blocks = _listed_directions(found, milestone)
        _read_fields(found, milestone, milestone.blocks[0].line if milestone.blocks else milestone.end)
        for block in milestone.blocks:
            _read_fields(found, block, block.end)
    return found


def _listed_directions(found: Roadmap, milestone: Block) -> list[Block]:
    """Return the directions that are items of a list instead of headings."""
    starts = [
        number
        for number in range(milestone.line + 1, milestone.end)
        if _field(found.lines[number - 1], dashed=True) == "Direction id"
    ]
    return [
        Block(number, found.lines[number - 1].strip(), end=end, is_item=True)
        for number, end in zip(starts, [*starts[1:], milestone.end], strict=False)
    ]


def _field(line: str, *, dashed: bool) -> str:
    """Return the name of the field that begins on a line, with or without a dash; empty if none does."""
    if line.startswith("- ") is not dashed:
        return ""
    start, colon, _ = line.strip().removeprefix("- ").partition(":")
    return _NAMES.get(start.strip().lower(), "") if colon else ""


def _close(found: Roadmap, section: str, number: int) -> None:
    if section in found.sections:
        found.sections[section] = (found.sections[section][0], number)
    _end(found, number)


def _end(found: Roadmap, number: int) -> None:
    if found.milestones and not found.milestones[-1].end:
        last = found.milestones[-1]
        last.end = number
        if last.blocks:
            last.blocks[-1].end = number


def _headings(lines: list[str]) -> Iterator[tuple[int, int, str]]:
    fence = ""
    for number, line in enumerate(lines, 1):
        stripped = line.strip()
        if stripped.startswith(("```", "~~~")):
            fence = "" if fence and stripped.startswith(fence) else fence or stripped[:3]
        elif not fence and line.startswith("#"):
            level = len(line) - len(line.lstrip("#"))
            if line[level : level + 1] in (" ", "\t"):
                yield number, level, line[level:].strip()


def _read_fields(found: Roadmap, block: Block, end: int) -> None:
    gathered: dict[str, tuple[int, list[str]]] = {}
    parts: list[str] | None = None
    below = range(block.line + 1, end)
    dashed = not block.is_item and any(_field(found.lines[one - 1], dashed=True) in _IDS for one in below)
    if block.is_item:
        gathered["Direction id"] = (block.line, [block.title.partition(":")[2].strip()])
    for number in below:
        line = found.lines[number - 1]
        name = _field(line, dashed=dashed)
        if name and name not in gathered:
            parts = [line.partition(":")[2].strip()]
            gathered[name] = (number, parts)
            if name in _IDS:
                parts = None
        elif parts is not None and line.strip() and line.startswith((" ", "\t") if dashed else ""):
            parts.append(line.strip())
        else:
            parts = None
    block.fields |= {name: (number, " ".join(parts)) for name, (number, parts) in gathered.items()}
