"""Parse a shell line as far as needed to know which programs it calls, and in which folder.

This is not a shell: the results of variables and conditions are unknown here, and everything that may be
called counts.
"""

import posixpath
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_SIGNS: Final = frozenset("();|&")
_KEYWORDS: Final = frozenset(
    {"<(", ">(", "{", "}", "!", "then", "do", "else", "elif", "if", "while", "until"}
)
SHELL: Final = r"(?:ba|da|z|k)?sh"
_WITHIN: Final = re.compile(r"(?<=[^\s();|&<>])#")
_NO_COMMENT: Final = "\ufdd0"
_CODE: Final = re.compile(r"-[A-Za-z]*c[A-Za-z]*")
_WITH_NAME: Final = re.compile(r"[-+][A-Za-z]*[oO]")
_DEEPEST: Final = 4
_CHANGES: Final = frozenset({"cd", "pushd"})
_ALL: Final = 1_000
_MOVES: Final[Mapping[str, tuple[frozenset[str], int]]] = {
    **dict.fromkeys(("make", "gmake"), (frozenset({"-C", "--directory"}), _ALL)),
    "npm": (frozenset({"-C", "--prefix"}), _ALL),
    "pnpm": (frozenset({"-C", "--dir", "--prefix"}), _ALL),
    **dict.fromkeys(("yarn", "bun"), (frozenset({"--cwd"}), _ALL)),
    "uv": (frozenset({"--directory"}), 1),
    "poetry": (frozenset({"-C", "--directory"}), 1),
    "pdm": (frozenset({"-p", "--project"}), 1),
    "env": (frozenset({"-C", "--chdir"}), 0),
    "sudo": (frozenset({"-D", "--chdir"}), 0),
}
"""Programs that take their working folder as an option, and how many other words may come before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One program with its arguments, without the options that only set its folder."""

    words: tuple[str, ...]
    folder: str = ""
    """The folder, relative to where the line runs; empty for that folder."""

    @property
    def text(self) -> str:
        """The words in one line."""
        return " ".join(self.words)

    @property
    def program(self) -> str:
        """The name of the program."""
        return posixpath.basename(self.words[0])


def words_of(command: str) -> list[str]:
    """Return the words of a command, and the operators between its parts."""
    words: list[str] = []
    text = ""
    for line in command.replace("\\\n", " ").splitlines():
        text = f"{text}\n{line}" if text else line
        try:
            # A comment begins only where a word can begin, and `shlex` does not know that.
            lexer = shlex.shlex(_WITHIN.sub(_NO_COMMENT, text), posix=True, punctuation_chars=True)
            lexer.whitespace_split = True
            words += [*(word.replace(_NO_COMMENT, "#") for word in lexer), ";"]
        except ValueError:
            continue  # what is quoted continues in the next line
        text = ""
    return [*words, *text.split()]


def calls_in(command: str) -> list[Call]:
    """Return what a line calls, including text that it hands to a shell."""
    return read(command)[0]


def read(command: str, folder: str = "", *, depth: int = 0) -> tuple[list[Call], str]:
    """Return what a line calls when it runs in a folder, and the folder that it ends in."""
    found: list[Call] = []
    folders = [folder]
    words: list[str] = []
    for word in (*words_of(command), ";"):
        if not _is_between(word):
            words.append(word)
            continue
        if words:
            folders[-1] = _called(words, folders[-1], found, depth)
            words = []
        for sign in word:
            if sign == "(":
                folders.append(folders[-1])
            elif sign == ")" and len(folders) > 1:
                folders.pop()
    return found, folders[-1]


def joined(folder: str, path: str) -> str:
    """Return the path relative to a folder; empty for the top."""
    place = posixpath.normpath(posixpath.join(folder, path))
    return "" if place == "." else place


def is_outside(path: str) -> bool:
    """Return whether a path is unknown without running the line, or leads out of the tree."""
    return path.startswith(("/", "~", "$")) or path == ".." or posixpath.normpath(path).startswith("../")


def given(words: Iterable[str], options: frozenset[str]) -> list[str]:
    """Return the values of these options."""
    values: list[str] = []
    waits = False
    for word in words:
        value = None if waits else _given(word, options)
        if waits or value:
            values.append(value or word)
        waits = value == ""
    return values


def takes_code(option: str) -> bool:
    """Return whether this option gives a shell a text to run, as in `bash -lc`."""
    return _CODE.fullmatch(option) is not None


def takes_name(option: str) -> bool:
    """Return whether this option of a shell is followed by a name, as in `bash -eo pipefail`."""
    return _WITH_NAME.fullmatch(option) is not None


def _given(word: str, options: frozenset[str]) -> str | None:
    """Return the option's value in this word; empty if the value is the next word, None for other words."""
    if word in options:
        return ""
    if word.startswith("--"):
        name, sign, value = word.partition("=")
        return value if sign and name in options else None
    if word[:2] in options:
        return word[2:]
    return "" if re.fullmatch(r"-[A-Za-z]+", word) and f"-{word[-1]}" in options else None


def _is_between(word: str) -> bool:
    return word in _KEYWORDS or (bool(word) and set(word) <= _SIGNS)


def _is_unknown(path: str) -> bool:
    return path.startswith(("/", "~", "$"))


def _called(words: Sequence[str], folder: str, found: list[Call], depth: int) -> str:
    """Add what one command calls, and return the folder after it."""
    if words[0] in _CHANGES:
        targets = [word for word in words[1:] if not word.startswith("-")]
        return folder if not targets or _is_unknown(targets[-1]) else joined(folder, targets[-1])
    rest, moves = _moved(words)
    place = folder
    for move in moves:
        place = place if _is_unknown(move) else joined(place, move)
    found.append(Call(words=tuple(rest), folder=place))
    if depth < _DEEPEST:
        for text in _texts(rest):
            found += read(text, place, depth=depth + 1)[0]
    return folder


def _moved(words: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the words without those that set the working folder, and the folders that they set."""
    rest: list[str] = []
    moves: list[str] = []
    options: frozenset[str] = frozenset()
    left, waits = 0, False
    for word in words:
        value = None if waits else _given(word, options)
        if waits or value:
            moves.append(value or word)
        elif value is None:
            rest.append(word)
            options, left = _listens(word, options, left)
        waits = value == ""
    return rest, moves


def _listens(word: str, options: frozenset[str], left: int) -> tuple[frozenset[str], int]:
    """Return the options that set the folder after this word, and how many words may come before them."""
    name = posixpath.basename(word)
    if name in _MOVES:
        return _MOVES[name]
    if word == "--":
        return frozenset(), 0
    left -= 0 if word.startswith("-") or "=" in word else 1
    return (options, left) if left >= 0 else (frozenset(), 0)


def _texts(words: Sequence[str]) -> list[str]:
    """Return the texts that are handed to shells: `sh -c 'make test'`."""
    texts: list[str] = []
    for n, word in enumerate(words):
        if not re.fullmatch(SHELL, posixpath.basename(word)):
            continue
        is_code = is_name = False
        for each in words[n + 1 :]:
            if is_name:
                is_name = False
            elif each.startswith(("-", "+")):
                is_code, is_name = is_code or takes_code(each), takes_name(each)
            else:
                texts += [each] if is_code else []
                break
    return texts
