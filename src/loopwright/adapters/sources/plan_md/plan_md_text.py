"""What the lines below a task say: labels such as `Type:` and `Acceptance:`, and everything else."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import lru_cache
from typing import Final

from loopwright.adapters.sources.plan_md.plan_md_outline import reference
from loopwright.adapters.sources.text.markdown import Kind, Line
from loopwright.adapters.sources.text.titles import OURS, without_comments
from loopwright.config.nearest import nearest

LABELS: Final = {
    "acceptance": "acceptance",
    "acceptance criteria": "acceptance",
    "blocked": "reason",
    "blocked by": "deps",
    "blocker": "reason",
    "complexity": "complexity",
    "dependencies": "deps",
    "depends on": "deps",
    "deps": "deps",
    "done when": "acceptance",
    "file": "files",
    "files": "files",
    "prove": "prove",
    "reason": "reason",
    "type": "type",
    "verify": "acceptance",
}
_OTHER_NAME: Final = re.compile(
    r"(?:automated |success )?(?:acceptance|criteria|criterion|verification|verify)"
    r"(?: (?:automated|by|checks?|commands?|criteria|criterion|gates?|steps?|tests?|with)){0,3}"
)
"""What else people call acceptance; words, as long as there is no command."""
_LIKE: Final = ("acceptance", "verif")
_NEAR: Final = {**LABELS, "dependency": "deps", "depends": "deps"}
Placed = tuple[int, str]
"""A line's number and its text."""


class Guess(Enum):
    """Why something that is not a label looks like one."""

    OTHER_NAME = auto()
    """It is one where it has a command, and text everywhere else."""
    MISSPELT = auto()
    LIKE = auto()
    """It begins like one, and may be anything: `Verified by`, `Verification mail`."""


@dataclass(slots=True, kw_only=True)
class Labelled:
    """The text beside a label and below it."""

    label: str
    line: int
    values: list[Placed] = field(default_factory=list)
    scripts: list[Placed] = field(default_factory=list)
    """Fenced shell code."""
    said: str = ""
    """How it is written where it is only nearly a label: everything about it is text, then."""
    guess: Guess | None = None
    text: list[int] = field(default_factory=list)
    """Which lines of the prose it has as long as it is text."""

    @property
    def runs(self) -> bool:
        """Whether there is a command in it."""
        return bool(self.scripts) or any(commands(words) for _, words in self.values)


@dataclass(slots=True, kw_only=True)
class Body:
    """The lines below a task, taken apart; those that Loopwright wrote tell only why it is blocked."""

    labels: list[Labelled] = field(default_factory=list)
    misspelt: list[Labelled] = field(default_factory=list)
    """What is nearly a label, with what it would be."""
    prose: list[str] = field(default_factory=list)
    """Every line that is under no label, unchanged."""
    blocked: str = ""

    def of(self, label: str) -> list[Labelled]:
        """Return everything under a label."""
        return [one for one in self.labels if one.label == label]

    def texts(self, label: str) -> list[Placed]:
        """Return each text under a label."""
        return [value for one in self.of(label) for value in one.values]

    def tell(self, nearly: Labelled, *texts: str) -> None:
        """Keep lines of what is only nearly a label as text."""
        nearly.text += range(len(self.prose), len(self.prose) + len(texts))
        self.prose += texts

    def take(self) -> None:
        """Make labels of what is called otherwise and has a command: a check that is not run in silence is worse."""
        taken = [one for one in self.misspelt if one.guess is Guess.OTHER_NAME and one.runs]
        gone = {at for one in taken for at in one.text}
        self.prose = [text for at, text in enumerate(self.prose) if at not in gone]
        self.misspelt = [one for one in self.misspelt if one.guess is not Guess.OTHER_NAME]
        self.labels = sorted((*self.labels, *taken), key=lambda one: one.line)


def body(lines: Sequence[Line], first: int) -> Body:
    """Take the lines below a task apart; `first` is the number of the first one."""
    found = Body()
    current: Labelled | None = None
    depth, at = 0, 0
    while at < len(lines):
        line, number = lines[at], first + at
        size = _fenced(lines, at)
        below = current is not None and line.indent > depth
        if size:
            block = lines[at : at + size]
            at += size
            if current is not None and below and current.label == "acceptance" and _is_shell(line.words):
                current.scripts += _script(block[1:-1], number + 1)
                if current.said:
                    found.tell(current, *(inner.text for inner in block))
            else:
                found.prose += [inner.text for inner in block]
            continue
        at += 1
        words, _ = without_comments(line.words)
        if OURS in line.text:
            label, rest = _label(words)
            found.blocked = rest if label == "reason" else found.blocked
        elif line.kind is Kind.BLANK:
            found.prose.append("")
        elif below and current is not None and not (current.said and _label(words)[0]):
            if line.kind is Kind.TEXT and current.values and lines[at - 2].kind is not Kind.BLANK:
                current.values[-1] = (current.values[-1][0], f"{current.values[-1][1]} {words}")
            elif words:
                current.values.append((number, words))
            if current.said:
                found.tell(current, line.text)
        else:
            is_plain = line.kind is not Kind.COMMENT and line.box is None
            label, rest = _label(words) if is_plain else ("", "")
            said = _before(words) if is_plain and not label else ""
            meant = _meant(said) if said else None
            if meant is not None:
                label, guess = meant
                current = Labelled(label=label, line=number, said=said, guess=guess)
                found.misspelt.append(current)
                found.tell(current, line.text)
            elif label:
                current = Labelled(label=label, line=number)
                found.labels.append(current)
            else:
                current = None
                found.prose.append(line.text)
            depth = line.indent if current is not None else 0
            if current is not None:
                current.values += [(number, rest)] if rest else []
    found.take()
    return found


def _fenced(lines: Sequence[Line], at: int) -> int:
    """Return how many lines a fenced block has that begins here, 0 if none does."""
    if lines[at].kind is not Kind.FENCE:
        return 0
    end = at + 1
    while end < len(lines) and lines[end].kind is Kind.CODE:
        end += 1
    return end - at + 1


_LETTERS: Final = re.compile("[a-z]+")


def _before(words: str) -> str:
    """Return the words before a colon, if they are few."""
    before, colon, _ = words[:60].partition(":")
    return before.strip("*_ \t") if colon else ""


@lru_cache(maxsize=10_000)
def _meant(said: str) -> tuple[str, Guess] | None:
    """Return the label that was probably meant, and why it seems so."""
    plain = " ".join(_LETTERS.findall(said.casefold()))
    if _OTHER_NAME.fullmatch(plain):
        return "acceptance", Guess.OTHER_NAME
    # People rarely mistype the first letter, and looking takes time in a large file.
    known = [one for one in _NEAR if one[0] == said[:1].casefold()] if 4 <= len(said) <= 24 else []
    # `Accept` is a header of HTTP, and `Very` a word: what is meant is nearly as long.
    if (near := nearest(said, known, cutoff=0.85)) is not None:
        return _NEAR[near], Guess.MISSPELT
    return ("acceptance", Guess.LIKE) if plain.startswith(_LIKE) else None


def _label(words: str) -> tuple[str, str]:
    _, _, after = words[:60].partition(":")
    label = LABELS.get(re.sub("[-_]", " ", _before(words)).casefold(), "")
    return label, (after + words[60:]).strip("*_ \t") if after.startswith("**") else (
        after + words[60:]
    ).strip()


def _is_shell(language: str) -> bool:
    return language.casefold() in ("", "bash", "console", "sh", "shell", "zsh")


def _script(code: Sequence[Line], first: int) -> list[Placed]:
    """Return fenced shell code as one command, which ends at the first line that fails."""
    lines = [line.text.strip().removeprefix("$ ") for line in code if line.text.strip()]
    if not lines:
        return []
    return [(first, lines[0] if len(lines) == 1 else "\n".join(("set -e", *lines)))]


_AROUND: Final = frozenset(
    {
        "a",
        "all",
        "and",
        "are",
        "build",
        "clean",
        "code",
        "command",
        "exit",
        "exits",
        "green",
        "is",
        "lint",
        "must",
        "no",
        "of",
        "pass",
        "passes",
        "passing",
        "run",
        "running",
        "runs",
        "should",
        "succeed",
        "succeeds",
        "successfully",
        "test",
        "tests",
        "that",
        "the",
        "then",
        "via",
        "with",
        "without",
        "zero",
        "errors",
        "0",
    }
)
_PUNCTUATION: Final = " \t.,;:()*_✅→-"


def commands(words: str) -> list[str]:
    """Return the commands in a line that is made of them: code, and words such as `and`, `run`, `passes` around it."""
    parts = words.split("`")
    if len(parts) < 3 or len(parts) % 2 == 0:
        return []
    around = " ".join(parts[::2]).split()
    if any(word.strip(_PUNCTUATION).casefold() not in _AROUND | {""} for word in around):
        return []
    return [code.strip() for code in parts[1::2] if code.strip()]


_BETWEEN: Final = re.compile(r"[,;]| and ")
_NOBODY: Final = re.compile(r"(?:n/a|nothing|none)?(?:[ \t]*[-–—(:.].*)?", re.IGNORECASE)
_LINES: Final = re.compile(r":[0-9]{1,7}(?:-[0-9]{1,7})?$")
_NO_FILE: Final = frozenset(("", "-", "n/a", "none", "tbd", "various"))


def paths(words: str) -> Iterator[str]:
    """Return the paths beside `Files:`; anything that has spaces in it is prose."""
    parts = words.split("`")
    found = parts[1::2] if len(parts) >= 3 else words.split(",")
    for part in found:
        path = part.partition(" (")[0].partition(" - ")[0].partition(" — ")[0].strip()
        before, colon, after = path.partition(": ")
        path = _LINES.sub("", after.strip() if colon and " " not in before else path)
        if path.casefold() not in _NO_FILE and not any(char.isspace() for char in path):
            yield path


def references(words: str) -> Iterator[str]:
    """Return the keys in a list of dependencies such as `Task 1.1, 1.2 and fix-1`."""
    for part in _BETWEEN.split(words):
        key = reference(part)
        if not _NOBODY.fullmatch(key):
            yield key
