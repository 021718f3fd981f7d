"""Business documents that have to follow: who says so, and which are still as they were."""

import pytest

from loopwright.core.replies.doc_sync import (
    DocSync,
    by_registry,
    description,
    documents_of,
    flagged_in,
    unchanged,
    usable,
)
from loopwright.prompts import packaged

SAID = """Done.
```loopwright-docs
{"reason": "Prices", "documents": ["./docs/a.md", "docs/", "/etc/passwd", "../b", "...", 7, "docs/a.md"]}
```
```loopwright-docs
{"documents": "docs/a.md"}
```
```loopwright-docs
no json
```
```loopwright-docs
[1]
```
"""


@pytest.mark.capability("C042")
def test_an_agent_names_documents_in_its_last_words() -> None:
    assert flagged_in(SAID, "att_1") == (
        DocSync(reason="Prices", documents=("docs/a.md", "docs"), by="att_1"),
    )
    assert flagged_in("Done.", "att_1") == ()
    assert usable(["~/x", "-x", "a/../b", "ok"]) == ("ok",)


def test_a_document_has_followed_when_it_or_something_in_it_was_changed() -> None:
    flags = [
        DocSync(reason="", documents=("docs/a.md", "plans")),
        DocSync(reason="r", documents=("docs/a.md",)),
    ]
    assert documents_of(flags) == ("docs/a.md", "plans")
    assert unchanged(("docs/a.md", "plans", "c.md"), ["plans/x/y.md", "docs/a.md.orig"]) == (
        "docs/a.md",
        "c.md",
    )
    assert description(packaged("parts/documents"), flags, ["plans"]).endswith("- plans\n\nWhy:\n- r")
    assert description(packaged("parts/documents"), flags[:1], ["plans"]).endswith("- plans")


@pytest.mark.capability("C042")
def test_documents_are_updated_in_the_order_of_the_registry_and_others_come_last() -> None:
    registry = ("docs/product.md: tiers, personas", "docs/prices.md")
    named = ("docs/other.md", "docs/prices.md", "docs/product.md")
    assert by_registry(named, registry) == ("docs/product.md", "docs/prices.md", "docs/other.md")
    assert by_registry(named, ()) == named
