"""Reads JUnit XML reports. They come from a process that ran an agent's code, so nothing in them is trusted."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from xml.parsers import expat  # document types, and with them entities, are refused below

from loopwright.adapters.gates.text import clean_name, seconds
from loopwright.core.gates.verdicts import MAX_MESSAGE, is_bad, keep_ends
from loopwright.core.values.findings import Check, CheckStatus
from loopwright.core.values.wording import clean

_MAX_DEPTH: Final = 64
_MAX_TESTS: Final = 200_000
_OUTCOMES: Final = {
    "failure": CheckStatus.FAILED,
    "error": CheckStatus.ERROR,
    "skipped": CheckStatus.SKIPPED,
}
_ATTRIBUTES: Final = {
    "fail": CheckStatus.FAILED,
    "failed": CheckStatus.FAILED,
    "error": CheckStatus.ERROR,
    "notrun": CheckStatus.SKIPPED,
    "skipped": CheckStatus.SKIPPED,
    "disabled": CheckStatus.SKIPPED,
}
_WEIGHT: Final = {
    CheckStatus.PASSED: 0,
    CheckStatus.SKIPPED: 1,
    CheckStatus.FAILED: 2,
    CheckStatus.ERROR: 3,
}


class Unreadable(ValueError):
    """The report cannot be used; the message says why."""


@dataclass(slots=True)
class _Case:
    """What is known so far of the test (or of the suite itself) that is being read."""

    name: str
    status: CheckStatus = CheckStatus.PASSED
    duration_s: float | None = None
    messages: list[str] = field(default_factory=list)


class _Reader:
    """Collects tests while expat walks through the file."""

    def __init__(self, prefix: str, max_tests: int) -> None:
        self.checks: list[Check] = []
        self.declared_bad = 0
        self._prefix = prefix
        self._max_tests = max_tests
        self._path: list[str] = []
        self._suites: list[_Case] = []
        self._case: _Case | None = None
        self._said: list[str] | None = None

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Open an element."""
        tag = tag.rpartition(":")[2]
        if not self._path and tag not in ("testsuites", "testsuite"):
            raise Unreadable(f"it is not a JUnit report: it begins with <{clean_name(tag)}>")
        self._path.append(tag)
        if len(self._path) > _MAX_DEPTH:
            raise Unreadable("its elements are nested too deeply")
        if tag == "testsuite":
            if not self._suites:
                self.declared_bad += _count(attributes, "failures") + _count(attributes, "errors")
            self._suites.append(_Case(name=clean_name(attributes.get("name", ""))))
        elif tag == "testcase":
            self._case = self._opened(attributes)
        elif tag in _OUTCOMES and len(self._path) > 1 and self._path[-2] in ("testcase", "testsuite"):
            target = self._case or self._suites[-1]
            target.status = max(target.status, _OUTCOMES[tag], key=_WEIGHT.__getitem__)
            self._said = [attributes.get("message", ""), "\n"]

    def end(self, tag: str) -> None:
        """Close an element."""
        tag = tag.rpartition(":")[2]
        self._path.pop()
        if tag in _OUTCOMES and self._said is not None:
            target = self._case or self._suites[-1]
            target.messages.append(_joined(self._said))
            self._said = None
        elif tag == "testcase" and self._case is not None:
            self._add(self._case)
            self._case = None
        elif tag == "testsuite":
            suite = self._suites.pop()
            if suite.status in (CheckStatus.FAILED, CheckStatus.ERROR):
                self._add(suite)

    def text(self, data: str) -> None:
        """Take in character data; only the words of a failure matter."""
        if self._said is not None:
            self._said.append(data)

    def _opened(self, attributes: Mapping[str, str]) -> _Case:
        if self._case is not None:
            raise Unreadable("a test is inside another test")
        if len(self.checks) >= self._max_tests:
            raise Unreadable(f"it lists more than {self._max_tests} tests")
        name = clean_name(attributes.get("name", "")) or "(no name)"
        place = clean_name(attributes.get("classname", "")) or (self._suites[-1].name if self._suites else "")
        stated = attributes.get("status", attributes.get("result", "")).lower()
        return _Case(
            name=f"{place}::{name}" if place else name,
            status=_ATTRIBUTES.get(stated, CheckStatus.PASSED),
            duration_s=seconds(attributes.get("time")),
        )

    def _add(self, case: _Case) -> None:
        name = case.name or "(no name)"
        self.checks.append(
            Check(
                id=f"{self._prefix}/{name}",
                name=name,
                status=case.status,
                message=keep_ends(clean("\n".join(case.messages)).strip(), MAX_MESSAGE),
                duration_s=case.duration_s,
            )
        )


def junit_checks(data: bytes, *, prefix: str, max_tests: int = _MAX_TESTS) -> tuple[Check, ...]:
    """Return a check for each test of a report, or raise `Unreadable`.

    A report in which no test ran proves nothing, and one that counts failures without listing them contradicts
    itself: both are unreadable.
    """
    reader = _Reader(prefix, max_tests)
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    parser.StartDoctypeDeclHandler = _refuse_doctype
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise Unreadable(f"it is not well-formed XML: {error}") from error
    except (LookupError, UnicodeError) as error:
        raise Unreadable(f"its encoding cannot be read: {error}") from error
    checks = tuple(reader.checks)
    if not checks:
        raise Unreadable("it lists no tests")
    if all(check.status is CheckStatus.SKIPPED for check in checks):
        raise Unreadable(f"all {len(checks)} tests were skipped, so nothing was tested")
    if reader.declared_bad and not any(map(is_bad, checks)):
        raise Unreadable(f"it counts {reader.declared_bad} failures but lists none")
    return checks


def _refuse_doctype(*_: object) -> None:
    raise Unreadable("it has a document type, which is refused")


def _count(attributes: Mapping[str, str], name: str) -> int:
    value = attributes.get(name, "")
    return int(value) if value.isascii() and value.isdigit() and len(value) < 10 else 0


def _joined(said: list[str]) -> str:
    """Put the message attribute and the text together, without saying the first line twice."""
    message, text = clean(said[0]).strip(), clean("".join(said[1:])).strip()
    if not message or text.startswith(message):
        return text or message
    return f"{message}\n{text}".rstrip()
