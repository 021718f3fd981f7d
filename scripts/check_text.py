"""Check the English of the pages and of the package: unclear phrases, and the number of words of the pages."""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
MOST_WORDS: Final = 37_000
"""How many words all hand-written pages may have together, without the decision records."""
PHRASES: Final[dict[str, str]] = {
    r"(?:is|are|was) told how": "say what Loopwright writes",
    r"(?:go|goes|going|went|gone) on\b": "continue, resume, happen",
    r"mend(?:s|ed|ing)?": "fix, repair",
    r"(?:ask|asks|asked|asking|give|gives|given|need|needs|without|with|request for) leave": "permission",
    r"leave to\b": "permission to",
    r"(?:stands|stood) (?:for|in|as|there|beside|behind|below|above|alone|still)": "is, says",
    r"looks? at the whole": "QA review",
    r"(?:come|comes|came|coming) upon": "find",
    r"(?:is|are|was|were|be) over\b(?! \d)": "has ended, is finished",
    r"of (?:mine|ours|yours|theirs)|of (?:its|your|their|his|our) own(?=[.,;:)]| and | that )": "its own, your",
    r"(?<!here\s)is no (?!longer|more|less|better|worse|way|need|worker|such|other)\w+": "is not a",
    r"anew": "again",
    r"meanwhile": "in the meantime",
    r"(?:this|the|that) very": "this exact",
    r"say whether": "return whether",
    r"(?:somebody|someone|nobody|anybody|whoever)": "name the actor",
    r"now this and now that": "inconsistent results",
    r"in vain": "without success",
}
_PHRASE: Final = re.compile(
    "|".join(rf"(\b(?:{one})\b)".replace(" ", r"\s+") for one in PHRASES), re.IGNORECASE
)
_CODE: Final = re.compile(
    r"^(?P<fence>`{3,}).*?^(?P=fence)$|`[^`\n]*`|\]\([^)\s]*\)|<!--.*?-->", re.MULTILINE | re.DOTALL
)
_WORD: Final = re.compile(r"\w")
_MADE: Final = (
    re.compile(r"<!-- ([\w -]+): begin -->.*?<!-- \1: end -->", re.DOTALL),
    re.compile(r"<!-- ([\w -]+): generated, do not edit -->.*?<!-- /\1 -->", re.DOTALL),
)
_MADE_PAGE: Final = "<!-- Made by "


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page: its path, and the text that a person wrote, with empty lines for what was generated."""

    path: Path
    text: str

    @property
    def words(self) -> int:
        """Return the number of words, examples included; the bars of a table are not words."""
        return sum(1 for one in self.text.split() if _WORD.search(one))


def _blank(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")


def pages(root: Path = ROOT) -> list[Page]:
    """Return the README and its neighbours and all pages of docs/ that are not generated as a whole."""
    found = []
    for path in sorted([*root.glob("*.md"), *(root / "docs").rglob("*.md")]):
        text = path.read_text(encoding="utf-8")
        if not text.startswith(_MADE_PAGE):
            for made in _MADE:
                text = made.sub(_blank, text)
            found.append(Page(path=path, text=text))
    return found


def is_record(page: Page) -> bool:
    """Return whether a page is a decision record."""
    return page.path.parent.name == "adr"


def unclear(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line of each unclear phrase, with what to write instead."""
    prose = _CODE.sub(_blank, text)
    for match in _PHRASE.finditer(prose):
        better = list(PHRASES.values())[(match.lastindex or 1) - 1]
        yield prose.count("\n", 0, match.start()) + 1, f'"{match[0]}": write "{better}"'


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each message, docstring and comment of a module."""
    source = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def main(root: Path = ROOT) -> int:
    """Print every problem and return 1 if there is one."""
    problems = []
    written = pages(root)
    for page in written:
        name = page.path.relative_to(root).as_posix()
        problems += [f"{name}:{line}: {why}" for line, why in unclear(page.text)]
    for path in sorted((root / "src" / "loopwright").rglob("*.py")):
        name = path.relative_to(root).as_posix()
        found = {(line + n - 1, why) for line, text in texts(path) for n, why in unclear(text)}
        problems += [f"{name}:{line}: {why}" for line, why in sorted(found)]
    records = sum(page.words for page in written if is_record(page))
    words = sum(page.words for page in written if not is_record(page))
    if words > MOST_WORDS:
        problems.append(f"the hand-written pages have {words} words, {MOST_WORDS} are allowed: shorten them")
    sys.stderr.write("".join(f"{one}\n" for one in problems))
    sys.stdout.write(f"{len(written)} pages: {words} words, decision records: {records} words\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
