"""Titles of steps that only a person can do."""

import re
from typing import Final

_WHAT: Final = (
    r"(?:acceptance|approv\w*|check\w*|confirm\w*|inspect\w*|qa|e2e|end-to-end|exploratory|regression|review\w*|"
    r"sign-?off|smoke\w*|step\w*|test\w*|uat|valid\w*|verif\w*|walk-?through\w*)"
)
_MANUAL: Final = (
    re.compile(rf"(?<!or )\bmanual(?:ly)?(?:[ -]+\w+)?[ -]+{_WHAT}\b", re.IGNORECASE),
    re.compile(r"^\W*manually\b|^\W*(?:check|confirm|test|try|verify)\b.{1,80}\bmanually\b", re.IGNORECASE),
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
    r"\W*(?:add|automate|create|define|document|draft|eliminate|implement|list|prepare|record|reduce|remove|replace|"
    r"update|write)\b",
    re.IGNORECASE,
)
"""How a title begins that is about such a step, and is work for an agent: "Document the manual tests"."""
_LONGEST: Final = 300


def is_manual(title: str) -> bool:
    """Return whether a title asks a person to do something by hand: "Manual verification", "Ask the user to …"."""
    shown = title[:_LONGEST]
    return not _ABOUT.match(shown) and any(pattern.search(shown) for pattern in _MANUAL)
