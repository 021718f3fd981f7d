"""Business documents that have to follow: a flag is understood, or it is an error."""

import json

import pytest
from tests.cases import each_case
from tests.wording_plugin import Wording

from loopwright.adapters.sources.plan_md.plan_md import PlanMdSource
from loopwright.core.replies.doc_sync import DocSync
from loopwright.core.values.errors import BadPlan
from loopwright.ports import PlannedWork

SOURCE = PlanMdSource()


def read(section: str, metadata: object = None) -> PlannedWork:
    files = {"plan.md": f"- [ ] a\n\n## Business Doc Sync\n\n{section}\n".encode()}
    return SOURCE.parse(
        files | ({"metadata.json": json.dumps(metadata).encode()} if metadata else {}), "plan.md"
    )


def problems(section: str, metadata: object = None) -> tuple[str, ...]:
    with pytest.raises(BadPlan) as caught:
        read(section, metadata)
    return caught.value.problems


@pytest.mark.capability("C042")
@each_case(
    ("docs", "documents"),
    [
        ("docs/pricing.md, docs/tiers", ("docs/pricing.md", "docs/tiers")),
        ("`docs/pricing.md`, `docs/Price list.md`", ("docs/pricing.md", "docs/Price list.md")),
        ("[prices](docs/pricing.md), ./docs/tiers/ (all of it)", ("docs/pricing.md", "docs/tiers")),
    ],
)
def test_documents_stand_between_commas(docs: str, documents: tuple[str, ...]) -> None:
    found = read(f"**Business Doc Sync Required**: Yes\n**Reason**: A tier\n**Affected Docs**: {docs}")
    assert (found.doc_sync, found.notes) == (DocSync(reason="A tier", documents=documents), ())
    assert read(f"- Required: yes, as they sell it\n- Affected Docs: {docs}").doc_sync is not None


@each_case(
    "below",
    [
        "\n- docs/prices.md\n- `docs/Price list.md`",
        "\n\n  - docs/prices.md (the table)\n  - [list](<docs/Price list.md>)\n",
        "\n1. docs/prices.md\n2. `docs/Price list.md` — all of it\n\nThat is all of it.\n\n- no document",
        "\n* [ ] docs/prices.md\n* [x] `docs/Price list.md`\n**Reason**: A tier",
        "\n- docs/prices.md: a tier, and a price\n- `docs/Price list.md` (the table, and below it)",
        "\n- docs/prices.md — a tier, and a price\n- [list](<docs/Price list.md>) - the table, all of it",
        "\n- docs/prices.md (the table), `docs/Price list.md`",
        "\n> - docs/prices.md\n> - `docs/Price list.md`",
        " docs/prices.md\n- `docs/Price list.md`\n- only if they sell it",
        "\n- docs/prices.md, `docs/Price list.md`\n<!--\nRequired: No\n-->",
    ],
)
def test_documents_stand_in_a_list_below_the_label(below: str) -> None:
    for label in ("**Affected Docs**:", "- Affected docs:", "**Affected Docs:**"):
        found = read(f"**Required**: Yes\n{label}{below}")
        assert found.doc_sync is not None
        assert found.doc_sync.documents == ("docs/prices.md", "docs/Price list.md")


def test_a_list_that_cannot_be_followed_is_an_error_with_the_line_of_its_item() -> None:
    below = "Required: Yes\nAffected Docs:\n- docs/a.md\n- /etc/b.md\n- see the registry"
    one, two = problems(below)
    assert one.startswith('plan.md:8: affected docs: "/etc/b.md" is not inside of the project')
    assert two.startswith('plan.md:9: affected docs: "see the registry" is not a path')
    (many,) = problems("Required: Yes\nAffected Docs:\n" + "\n".join(f"- d{n}" for n in range(21)))
    assert many.startswith("plan.md:6: affected docs: at most 20 are taken, 21 are named")
    (none,) = problems("Required: Yes\nAffected Docs:\n- none")
    assert none.startswith("plan.md:6: affected docs: documents have to follow, but none is named")


@each_case("value", ["Yes", "true", "True", "**TRUE** (prices)", "[Yes]"])
def test_yes_is_yes(value: str) -> None:
    assert read(f"Required: {value}\nAffected Docs: docs/a.md").doc_sync is not None


@each_case(
    "value",
    [
        "No",
        "**No**",
        "no (only tests)",
        "No - nothing is sold",
        "N/A",
        "n/a (internal)",
        "None",
        "False",
        "Not applicable",
        "not needed: only tests",
    ],
)
def test_no_is_no_and_its_documents_do_not_matter(value: str) -> None:
    found = read(f"Required: {value}\nAffected Docs: none of them")
    assert (found.doc_sync, found.notes) == (None, ())


@each_case(
    ("section", "problem"),
    [
        ("Required: yse\nAffected Docs: docs/a.md", '5: required: expected Yes or No, not "yse"'),
        ("Required: not sure", '5: required: expected Yes or No, not "not sure"'),
        ("Required: Yes/No", '5: required: "Yes/No" is the template, not filled in: write Yes or No'),
        (
            "Required: Yes / No\nAffected Docs: docs/a.md",
            '5: required: "Yes / No" is the template, not filled in: write Yes or No',
        ),
        ("Required: [Yes | No]", '5: required: "[Yes | No]" is the template, not filled in: write Yes or No'),
        ("Required: No or Yes", '5: required: "No or Yes" is the template, not filled in: write Yes or No'),
        ("Requried: Yes\nReason: x", '5: unknown label "requried": did you mean "required"?'),
        ("Affected Docs: docs/a.md", "5: write `Required: Yes` or `Required: No`"),
        ("Required: Yes", "5: affected docs: documents have to follow, but none is named: name files"),
        (
            "Required: Yes\nAffected Docs: none",
            "6: affected docs: documents have to follow, but none is named",
        ),
        (
            "Required: Yes\nAffected Docs: docs/a.md, /etc/pricing.md",
            '6: affected docs: "/etc/pricing.md" is not inside of the project: name files',
        ),
        (
            "Required: Yes\nAffected Docs: see the registry in docs/registry.md",
            '6: affected docs: "see the registry in docs/registry.md" is not a path: name files',
        ),
        (
            f"Required: Yes\nAffected Docs: {', '.join(f'd{n}' for n in range(21))}",
            "6: affected docs: at most 20 are taken, 21 are named: name their folder",
        ),
    ],
)
def test_a_flag_that_cannot_be_followed_is_an_error(section: str, problem: str) -> None:
    assert problems(section)[0].startswith(f"plan.md:{problem}")


def test_a_section_without_a_flag_is_noted(wording: Wording) -> None:
    wording(read("Nothing is sold here.").notes)


def test_a_flag_in_the_metadata_without_documents_is_an_error_unless_the_plan_names_them(
    wording: Wording,
) -> None:
    def track(**sync: object) -> dict[str, object]:
        steps = {"EVALUATE_EXECUTION": {"business_sync_required": True}, "BUSINESS_SYNC": sync}
        return {"version": 3, "loop_state": {"checkpoints": steps}}

    no = "Required: No"
    wording(problems(no, track())[0])
    (found,) = problems(no, track(affected_docs=["docs/a.md", "/etc/b.md"]))
    assert found.startswith('metadata.json:1: affected_docs: "/etc/b.md" is not inside of the project')
    named = read("Required: Yes\nAffected Docs: docs/a.md", track())
    assert named.doc_sync == DocSync(reason="", documents=("docs/a.md",))
    there = read(no, track(affected_docs=["docs/a.md"], reason="x"))
    assert there.doc_sync == DocSync(reason="x", documents=("docs/a.md",))
    assert read(no, track(status="PASSED")).doc_sync is None


def test_tracks_and_plans_that_name_documents_ask_their_agents_for_more() -> None:
    flagged = "Required: Yes\nAffected Docs: docs/a.md"
    asks = {"business_docs": True}
    for section, track, expected in (
        ("Required: No", {"version": 3, "track_id": "t"}, asks),
        (flagged, None, asks),
        ("Required: No", None, {}),
    ):
        assert (section, read(section, track).settings) == (section, expected)
