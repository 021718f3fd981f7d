"""Agents get the parts of a plan's documents that concern their task, and no more than fits."""

from loopwright.core.prompts.prompts import MOST_DOCUMENTS, excerpts, listed_documents

SPEC = """# Limits

## Requirements

- FR-004: refuse the 101st request.

Colours are chosen elsewhere.

## Clock

The limiter reads the partner clock.
"""


def test_a_paragraph_that_names_the_requirement_or_the_words_is_shown_with_its_heading() -> None:
    found = excerpts(SPEC, "T012 Limit partner requests by the clock (FR-004)")
    assert found == (
        "## Requirements\n- FR-004: refuse the 101st request.",
        "## Clock\nThe limiter reads the partner clock.",
    )
    assert excerpts(SPEC, "Paint the door") == ()


def test_excerpts_are_bounded_and_stay_indented() -> None:
    long = "\n\n".join(f"partner limits clock {n} " + "x" * 900 for n in range(50))
    documents = {f"d{n}.md\nrm": long for n in range(30)}
    told = listed_documents(documents, "partner limits clock")
    assert len(told) < 6_000
    lines = [line for line in told.splitlines() if line]
    assert all(line.startswith(("- d", "    ")) for line in lines)
    assert sum(line.startswith("- ") for line in lines) == MOST_DOCUMENTS
