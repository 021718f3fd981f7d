"""Build prompts from rows, templates and excerpts of documents: the same attempt always gets the same prompt."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from textwrap import indent
from types import MappingProxyType
from typing import Final

from loopwright.core.gates import contradictions
from loopwright.core.healing import earlier_tries
from loopwright.core.healing.diagnosis import Diagnosis
from loopwright.core.healing.earlier_tries import Try
from loopwright.core.healing.lessons import in_words as lessons_in_words
from loopwright.core.healing.steps import facts
from loopwright.core.policy.red_first import is_asked, why_skipped
from loopwright.core.policy.rounds import is_carried_on, loops
from loopwright.core.replies import doc_sync
from loopwright.core.replies.investigations import SCHEMA as INVESTIGATION
from loopwright.core.replies.qa import AREAS, PRIORITIES, RESULTS, scope_of
from loopwright.core.replies.reviews import Finding, in_words
from loopwright.core.rows.model import Attempt, Plan, Review, Task
from loopwright.core.values.healing import HealStep
from loopwright.core.values.patches import Patch
from loopwright.core.values.policy import Answering, GateCommand
from loopwright.core.values.templates import Template
from loopwright.core.values.wording import on_one_line, shortened, visible

# Short excerpts of a plan's documents that concern one task: its requirements, its files, its words.

MOST_DOCUMENTS: Final = 12
_MOST_EXCERPTS: Final = 2
"""The most excerpts of each document."""
_LONGEST: Final = 500
_ALL: Final = 4_000
_READ: Final = 200_000
"""How many characters of a document are read."""
_WORD: Final = re.compile(r"[^\W\d_][\w-]{3,}")
_REFERENCE: Final = re.compile(r"\b(?:[A-Z]{1,6}-?\d+(?:\.\d+)*|\d+\.\d+|[\w./-]+\.[a-z]{1,5})\b")
_COMMON: Final = frozenset(
    {
        "about", "after", "also", "because", "before", "each", "every", "from", "have", "into", "make", "more", "must",
        "only", "other", "same", "should", "such", "than", "that", "their", "them", "then", "there", "these", "they",
        "this", "through", "user", "users", "using", "when", "where", "which", "will", "with", "without", "your",
        "task", "tasks", "file", "files", "test", "tests", "code", "implement", "create", "update", "write",
    }
)  # fmt: skip
"""Words that say nothing about the subject of a paragraph."""
_REFERENCE_COUNTS: Final = 3
_LEAST: Final = 2


def listed_documents(documents: Mapping[str, str], task: str) -> str:
    """Return the documents, each with its path and the paragraphs about the task, indented."""
    parts, left = [], _ALL
    for path, text in list(documents.items())[:MOST_DOCUMENTS]:
        found = [one for one in excerpts(text, task) if len(one) <= left]
        left -= sum(map(len, found))
        quoted = "\n\n    [...]\n\n".join(_indented(one) for one in found)
        parts.append(f"- {on_one_line(path)}" + (f"\n\n{quoted}\n" if quoted else ""))
    return "\n".join(parts).rstrip()


def excerpts(text: str, task: str) -> tuple[str, ...]:
    """Return the paragraphs of a document that share most words with a task, in the order of the document."""
    words = _words(task)
    references = set(_REFERENCE.findall(task))
    ranked = []
    for n, paragraph in enumerate(_paragraphs(text[:_READ])):
        score = len(words & _words(paragraph))
        score += _REFERENCE_COUNTS * len(references.intersection(_REFERENCE.findall(paragraph)))
        if score >= _LEAST:
            ranked.append((-score, n, paragraph))
    best = sorted(ranked)[:_MOST_EXCERPTS]
    return tuple(shortened(visible(one), _LONGEST) for _, _, one in sorted(best, key=lambda each: each[1]))


def _words(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)} - _COMMON


def _paragraphs(text: str) -> list[str]:
    """Return the paragraphs; a heading belongs to the one below it."""
    found, heading = [], ""
    for block in re.split(r"\n(?:[ \t]*\n)+", text.replace("\r\n", "\n").strip()):
        lines = block.rstrip()
        if lines.startswith("#") and "\n" not in lines:
            heading = lines
            continue
        found.append(f"{heading}\n{lines}" if heading else lines)
        heading = ""
    return found


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


SECTION_LIMIT: Final = 4_000
EVIDENCE_LIMIT = 20_000
"""Enough for both sides of a conflict, which the next attempt has to combine."""


def implementer(
    template: Template,
    plan: Plan,
    task: Task,
    attempt: Attempt,
    *,
    gates: tuple[GateCommand, ...],
    resumed: bool = False,
    answers: Sequence[tuple[str, str]] = (),
    asks_by_tool: bool = False,
    findings: Sequence[Finding] = (),
    contradicted: Sequence[str] = (),
    documents: Mapping[str, str] = MappingProxyType({}),
    tries: Sequence[Try] = (),
    lessons: Sequence[str] = (),
) -> str:
    """Return the prompt for one attempt at one task.

    `documents` has the text of the plan's documents by path; `tries` are the attempts before this one.
    """
    commands = [one.command if one.name == one.command else f"{one.name}: {one.command}" for one in gates]
    carried_on = is_carried_on(plan, task, attempt)
    pruned = attempt.healing is HealStep.PRUNE
    # A fresh start, and a task without its plan, leave out earlier failures.
    if pruned or attempt.healing is HealStep.FRESH:
        attempt, tries = replace(attempt, evidence=""), ()
    if pruned:
        plan, task, documents = replace(plan, context=""), replace(task, section=""), {}
    asks_docs = plan.policy.business_docs and task.origin != doc_sync.ORIGIN
    must_fail_before = is_asked(plan, task) and not why_skipped(task) and bool(gates)
    return template.fill(
        {
            "plan": plan.title,
            **told(task, attempt),
            "criteria": listed(task.criteria),
            "resumed": resumed,
            "findings": indented(in_words(findings)),
            "context": indented(plan.context),
            "section": indented(shortened(visible(task.section.strip()), SECTION_LIMIT)),
            "documents": listed_documents(documents, _about(task)),
            "lessons": lessons_in_words(lessons),
            "answers": answered(answers),
            "carried_on": bool(attempt.evidence) and carried_on,
            "started_over": bool(attempt.evidence) and not carried_on,
            "tries": indented(earlier_tries.words(tries, known=attempt.evidence)),
            "repeated": earlier_tries.repeated(tries) > 1,
            "advice": indented(attempt.advice),
            "scope": listed(task.scope),
            "approved": listed(task.approved),
            "rounds": loops(plan, task),
            "gates": listed(commands),
            "unchecked": not gates,
            "red_acceptance": must_fail_before and bool(task.acceptance),
            "red_tests": must_fail_before and not task.acceptance,
            "contradicted": contradictions.listed(contradictions.collapsed(contradicted)),
            "by_tool": asks_by_tool,
            "by_block": not asks_by_tool,
            "business_docs": asks_docs,
            "registry": listed(plan.policy.business_documents) if asks_docs else "",
        }
    )


def _about(task: Task) -> str:
    return "\n".join((task.key, task.title, task.description, *task.criteria))


def answering(
    template: Template,
    task: Task,
    attempt: Attempt,
    answer: Answering,
    *,
    by_schema: bool,
    last: str = "",
    resumed: bool = False,
    answers: Sequence[tuple[str, str]] = (),
    asks_by_tool: bool = False,
) -> str:
    """Return the prompt for an agent that answers and changes nothing; `last` is the rejected earlier answer."""
    return template.fill(
        {
            **told(task, attempt),
            "resumed": resumed,
            "answers": answered(answers),
            "last": indented(last[:EVIDENCE_LIMIT]),
            "asks_by_tool": answer.asks and asks_by_tool,
            "asks_by_block": answer.asks and not asks_by_tool,
            "by_schema": by_schema,
            "by_block": not by_schema,
            "form": "JSON" if answer.file.endswith(".json") else "YAML or JSON",
            "fence": answer.fence,
            "schema": "" if by_schema else indented(json.dumps(answer.schema, ensure_ascii=False)),
        }
    )


def investigator(
    template: Template,
    plan: Plan,
    task: Task,
    attempt: Attempt,
    *,
    gates: tuple[GateCommand, ...],
    diagnosis: Diagnosis | None,
    tries: Sequence[Try],
    resumed: bool,
    by_schema: bool,
) -> str:
    """Return the prompt for an agent that finds out why a task failed, and splits it if that is the step."""
    return template.fill(
        {
            "plan": plan.title,
            **{name: text for name, text in told(task, attempt).items() if name != "note"},
            "description": indented(task.description),
            "criteria": listed(task.criteria),
            "gates": listed([on_one_line(one.command) for one in gates]),
            "diagnosis": indented(visible(facts(diagnosis))) if diagnosis is not None else "",
            "tries": indented(visible(earlier_tries.words(tries, known=attempt.evidence))),
            "resumed": resumed,
            "split": attempt.healing is HealStep.SPLIT,
            "by_schema": by_schema,
            "by_block": not by_schema,
            "schema": "" if by_schema else indented(json.dumps(INVESTIGATION, ensure_ascii=False)),
        }
    )


def told(task: Task, attempt: Attempt) -> dict[str, str]:
    """Return the part of the prompt that every author gets: its task, and what happened to it before."""
    return {
        "key": task.key,
        "attempt": str(attempt.n),
        "title": task.title,
        "description": task.description.strip(),
        "evidence": indented(attempt.evidence[:EVIDENCE_LIMIT]),
        "note": indented(attempt.note),
    }


def answered(answers: Sequence[tuple[str, str]]) -> str:
    """Return questions, each with its answer."""
    return "\n\n".join(
        f"{indented(question)}\n\nThe answer:\n\n{indented(answer)}" for question, answer in answers
    )


def listed(items: Sequence[str]) -> str:
    """Return a list, an item on each line."""
    return "\n".join(f"- {item}" for item in items)


def indented(text: str) -> str:
    """Return an indented text."""
    return "\n".join(f"    {line}" for line in text.strip().splitlines())


# The prompt for a QA review, from rows and a template: the same attempt always gets the same prompt.


def areas_of(plan: Plan, task: Task) -> tuple[str, tuple[str, ...]]:
    """Return the mode and the areas of a review."""
    evaluation = plan.policy.evaluation
    return scope_of(plan.policy.qa_mode, task.origin, evaluation.evaluators if evaluation else ())


def look_prompt(
    template: Template,
    plan: Plan,
    task: Task,
    attempt: Attempt,
    *,
    gates: tuple[GateCommand, ...],
    resumed: bool,
    answers: tuple[tuple[str, str], ...],
    asks_by_tool: bool,
    by_schema: bool,
    evaluators: Sequence[str] = (),
) -> str:
    """Return the prompt for one QA review; `evaluators` are the texts of the roles that judge a track."""
    mode, areas = areas_of(plan, task)
    return template.fill(
        {
            "plan": plan.title,
            **told(task, attempt),
            "mode": mode,
            "criteria": listed(task.criteria),
            "areas": listed([f"{name}: {AREAS[mode][name]}" for name in areas]),
            "evaluators": "\n\n".join(one.strip() for one in evaluators),
            "resumed": resumed,
            "context": indented(plan.context),
            "answers": answered(answers),
            "gates": listed([one.command for one in gates]),
            # The findings of an earlier review are a separate list.
            "evidence": attempt.evidence,
            "results": ", ".join(RESULTS),
            "severities": ", ".join(PRIORITIES),
            "asks_by_tool": asks_by_tool,
            "asks_by_block": not asks_by_tool,
            "by_schema": by_schema,
            "by_block": not by_schema,
        }
    )


# The prompt of a reviewer, from rows, the change and a template: the same review always gets the same prompt.

_MOST_FILES: Final = 500


def reviewer(
    template: Template,
    plan: Plan,
    task: Task,
    attempt: Attempt,
    review: Review,
    patch: Patch,
    *,
    gates: tuple[GateCommand, ...],
    by_schema: bool,
    goes_on: bool,
) -> str:
    """Return the prompt of a reviewer; one that `goes_on` in its conversation has already seen the change."""
    whole = {
        "description": indent(task.description.strip(), "    "),
        "criteria": _listed(task.criteria),
        "scope": _listed(task.scope),
        "approved": _listed(task.approved),
        "gates": _listed([one.command for one in gates]),
        "reasons": _listed(review.reasons),
        "files": _files(patch),
        # With line breaks written out, no part of it can begin a line.
        "diff": "\n".join(f"    {line}" for line in visible(patch.text).split("\n")),
        "contradicted": _listed(review.contradicted),
    }
    return template.fill(
        {
            "plan": plan.title,
            "key": task.key,
            "attempt": str(attempt.n),
            "review": str(review.n),
            "title": task.title,
            "continued": goes_on and not review.problem,
            "whole": not goes_on,
            **(dict.fromkeys(whole, "") if goes_on else whole),
            "unchecked": not goes_on and not gates,
            "is_cut": not goes_on and not patch.is_whole,
            "problem": review.problem,
            "by_schema": by_schema,
            "by_block": not by_schema,
        }
    )


def _files(patch: Patch) -> str:
    lines = [f"{one.path} (+{one.added} -{one.removed})" for one in patch.files[:_MOST_FILES]]
    if len(patch.files) > _MOST_FILES:
        lines.append(f"and {len(patch.files) - _MOST_FILES} more files")
    return _listed(lines)


def _listed(items: Sequence[str]) -> str:
    return listed([on_one_line(item) for item in items])
