"""Titles of tasks: what people write around them, and whether one asks a person to do something."""

import re
from enum import Enum, auto
from typing import Final

OURS: Final = "<!-- loopwright -->"
"""Ends every line that Loopwright added, and so may change or remove again."""
MAX_WORDS: Final = 500
SHA_LENGTH: Final = 12
_HEX: Final = frozenset("0123456789abcdef")
_NAME: Final = "([0-9a-f]{7,40})"
_SHA: Final = re.compile(rf"(?:[ \t]+|(?<=[\]*)]))(?:`{_NAME}`|[\[(]`?{_NAME}`?[\])]|{_NAME})[ \t]*$")
_CHECKPOINT: Final = re.compile(r"[ \t]*\[checkpoint:?[ \t]*([0-9a-f]{7,40})?[ \t]*\][ \t]*$", re.IGNORECASE)
_TASK: Final = re.compile(r"(?:\*\*|__)?(?:Task|TODO)[ \t]*:(?:\*\*|__)?[ \t]+(?=\S)", re.IGNORECASE)
_EMPHASIS: Final = re.compile(r"(\*\*\*|\*\*|__|~~|(?<!\w)[*_](?=\S))(?=\S)(.{1,300}?)(?<=\S)\1(?!\w)")


def plain_title(words: str) -> str:
    """Return a title without comments, emphasis and the prefix `Task:`."""
    plain = without_prefix(without_comments(words)[0])
    return without_emphasis(plain) or plain


def without_prefix(words: str) -> str:
    """Return words without `Task:` before them."""
    match = _TASK.match(words)
    if match is None:
        return words
    # `**Task: Add the form**` is bold as a whole.
    return f"{'**' if match[0].startswith('**') and '**' not in match[0][2:] else ''}{words[match.end() :]}"


def without_emphasis(words: str) -> str:
    """Return words without `**`, `__`, `*`, `_` and `~~` around parts of them; code keeps its signs."""
    parts = words.split("`")
    for at in range(0, len(parts), 2):
        parts[at] = _EMPHASIS.sub(r"\2", parts[at])
    plain = "`".join(parts)
    # A pair around code is split by it.
    while len(plain) > 4 and plain[:2] == plain[-2:] and plain[:2] in ("**", "__"):
        plain = plain[2:-2].strip()
    return plain.strip()


def is_sha(words: str) -> bool:
    """Return whether words are the name of a commit."""
    return 7 <= len(words) <= 64 and _HEX.issuperset(words)


def without_sha(words: str, *, done: bool) -> tuple[str, str | None]:
    """Return words without a commit at their end, and the commit: `abc1234`, `[abc1234]` or `(abc1234)`.

    A word of digits or of letters alone counts only in brackets, or if the task is done.
    """
    match = _SHA.search(words)
    if match is None or not match.start():
        return words, None
    bare = match[3]
    if bare is not None and (bare.isalpha() or (bare.isdigit() and not done)):
        return words, None
    return words[: match.start()].rstrip(), match[1] or match[2] or bare


def without_checkpoint(words: str) -> tuple[str, str | None]:
    """Return a heading without the checkpoint at its end, and the commit of the checkpoint."""
    match = _CHECKPOINT.search(words)
    return (words[: match.start()].rstrip(), match[1]) if match is not None else (words, None)


def without_comments(words: str) -> tuple[str, list[str]]:
    """Return a line's words without its comments, and what is in those, except for ours."""
    plain: list[str] = []
    comments: list[str] = []
    at = 0
    while (start := words.find("<!--", at)) >= 0 and (end := words.find("-->", start + 4)) >= 0:
        plain.append(words[at:start])
        if words[start : end + 3] != OURS:
            comments.append(words[start + 4 : end].strip())
        at = end + 3
    plain.append(words[at:])
    return " ".join(part.strip() for part in plain if part.strip()), comments


def one_line(words: str, limit: int = MAX_WORDS) -> str:
    """Return words that can be written into a line: they cannot begin or end a comment."""
    words = " ".join("".join(char for char in words if char.isprintable() or char.isspace()).split())
    words = words.replace("<!--", "<! --").replace("-->", "-- >")
    return words if len(words) <= limit else f"{words[: limit - 1]}…"


_WORD: Final = re.compile(r"\w+")


def slug(words: str) -> str:
    """Return a short name made of letters, digits and dashes."""
    return "-".join(_WORD.findall(words.lower()))[:80].strip("-")


def is_prompt(name: str) -> bool:
    """Return whether a file is called like a prompt: `PROMPT.md`, `PROMPT_build.md`, `prompt-plan.md`."""
    return _PROMPT.fullmatch(name) is not None


_PROMPT: Final = re.compile(r"prompt(?:[_.-][\w.-]+)?\.md", re.IGNORECASE)


_WHAT: Final = (
    r"(?:acceptance|approv\w*|check\w*|confirm\w*|inspect\w*|qa|e2e|end-to-end|exploratory|regression|review\w*|"
    r"sign-?off|smoke\w*|step\w*|test\w*|uat|valid\w*|verif\w*|walk-?through\w*)"
)
_MANUAL: Final = (
    re.compile(rf"(?<!or )\bmanual(?:ly)?(?:[ -]+\w+)?[ -]+{_WHAT}\b", re.IGNORECASE),
    re.compile(
        r"^\W*manually\b|^\W*(?:check|confirm|exercise|inspect|review|test|try|validate|verify)\b.{1,80}\bmanually\b",
        re.IGNORECASE,
    ),
    re.compile(r"[\[(](?:manual(?:ly)?|human|by hand)\b[^\])]{0,40}[\])]", re.IGNORECASE),
    re.compile(r"^\W*(?:manual|human)(?:\W*$|:|[ \t]+(?:journey|run|tour|pass)s?\b)", re.IGNORECASE),
    re.compile(
        r"^\W*ask (?:the )?(?:user|human)\b|\bask (?:the )?(?:user|human) (?:to|for)\b", re.IGNORECASE
    ),
    re.compile(r"\b(?:user|human) (?:acceptance test\w*|approval|sign-?off)\b", re.IGNORECASE),
    re.compile(r"\bcheckpoint:human|\bhuman[- ](?:verif\w*|action|review|test\w*)\b", re.IGNORECASE),
    re.compile(r"手動\w{0,6}(?:確認|テスト|検証|実行)|(?:手动|人工)\w{0,4}(?:测试|验证|检查|确认)"),
)
_ABOUT: Final = re.compile(
    r"\W*(?:add|allow|automate|build|create|define|display|document|draft|eliminate|emit|enable|expose|flag|handle|"
    r"implement|list|log|prepare|print|provide|record|reduce|remove|replace|report|show|support|update|warn|write)\b",
    re.IGNORECASE,
)
"""How a title begins that is about such a step, and is work for an agent: "Document the manual tests"."""
_NUMBERED: Final = re.compile(r"^\W*[0-9]{1,4}[A-Za-z]?(?:\.[0-9]{1,4}[A-Za-z]?){0,4}[.:)]*[ \t]+")
"""The number in front of a title: `7B.4: Log a warning`."""
_MOST_LETTERS: Final = 300


def is_manual(title: str) -> bool:
    """Return whether a title asks a person to do something by hand: "Manual verification", "Ask the user to …"."""
    shown = _NUMBERED.sub("", title[:_MOST_LETTERS], count=1)
    return not _ABOUT.match(shown) and any(pattern.search(shown) for pattern in _MANUAL)


_TICK: Final = r"[✅☑✔]\ufe0f?"
_DROPPED_WORDS: Final = (
    "skipped|deferred|canceled|cancelled|dropped|obsolete|superseded|won't fix|wontfix|not needed"
)
_SETTLED_WORDS: Final = (
    f"complete|completed|done|finished|fixed|implemented|shipped|resolved|{_DROPPED_WORDS}"
)
_SETTLED: Final = (
    re.compile(rf"^\W{{0,3}}(?:{_TICK}|~~.+~~\W*$)"),
    re.compile(rf"^\W{{0,6}}(?:{_SETTLED_WORDS.upper()})\b[*_]{{0,3}}[ \t]*[:–—-]"),
    re.compile(rf"{_TICK}[ \t]*(?i:{_SETTLED_WORDS})?[ \t]*(?:\([^()]{{0,60}}\))?[\W_]*$"),
    re.compile(rf"[(\[][ \t]*(?:{_TICK}[ \t]*)?(?i:{_SETTLED_WORDS})\b[^()\[\]]{{0,120}}[)\]][\W_]*$"),
    re.compile(rf"[ \t][–—-]+[ \t]+(?:\*\*)?(?:{_SETTLED_WORDS.upper()})\b.{{0,120}}$"),
)

_DROPPED: Final = re.compile(rf"\b(?:{_DROPPED_WORDS})\b|~~", re.IGNORECASE)
_HEDGE: Final = re.compile(
    r"\b(?:not(?! needed)|partial\w*|pending|remain\w*|todo|until|when|if|by)\b", re.IGNORECASE
)


class Settled(Enum):
    """What the words of a task say about it."""

    DONE = auto()
    DROPPED = auto()
    """It is skipped, or deferred."""


def settled_by(words: str) -> Settled | None:
    """Return whether words say that a task is done or will not be done: `✅`, `(deferred)`, `— DONE`."""
    shown = words[:_MOST_LETTERS] if len(words) <= _MOST_LETTERS else words[:100] + words[-200:]
    for pattern in _SETTLED:
        match = pattern.search(shown)
        if match is not None and not _HEDGE.search(match[0]):
            return Settled.DROPPED if _DROPPED.search(match[0]) else Settled.DONE
    return None


_NOTHING: Final = re.compile(
    r"\W*(?:none|nothing|n/a)(?: yet| left| remaining| pending)?\W*(?:[ \t]+[–—-]+[ \t].*|[(:].*)?",
    re.IGNORECASE,
)


def says_nothing(words: str) -> bool:
    """Return whether the words of a box say that there is no task: `None`, `N/A`."""
    return _NOTHING.fullmatch(words[:_MOST_LETTERS]) is not None


_EDGE: Final = " \t:*_#0123456789.)✅🎯⚠️"
_ABOUT_TASKS: Final = frozenset(
    {
        "acceptance", "acceptance checklist", "completion checklist", "dependencies", "done when",
        "execution checklist", "format", "legend", "non-goals", "notes", "open questions",
        "out of scope",
        "pre-flight checklist", "quality checklist", "quality gates", "review checklist", "risks", "rollback plan",
        "self-review checklist", "status legend", "success metrics", "task status legend", "validation checklist",
        "validation plan",
        "verification checklist", "what we're not doing",
    }
)  # fmt: skip
_CRITERIA: Final = re.compile(
    r"(?:(?:milestone|phase|sprint|stage|step|week)[ \t]+[\w.]+[ \t]+)?(?:\w+[ \t]+)?"
    r"(?:acceptance|success|exit|completion|done|quality|verification)[ \t]+criteria\b"
    r"|(?:\w+[ \t]+)?(?:change|checkpoint|decision|snapshot)[ \t]+log$"
    r"|definition of done\b|(?:验收|驗收|完成|成功)(?:标准|標準|条件)|(?:受け?入れ?|完了|成功)(?:基準|条件)"
)


def plain(title: str) -> str:
    """Return the words of a heading in lower case, without its number and signs."""
    return title.casefold().strip(_EDGE)


def is_about_tasks(title: str) -> bool:
    """Return whether the boxes below a heading say what must be true of the work, not what is to be done."""
    words = plain(title)
    return words in _ABOUT_TASKS or _CRITERIA.match(words) is not None
