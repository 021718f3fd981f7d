"""Edits of a draft."""

from tests.cases import each_case

from loopwright.core.plans.draft_edits import DraftEdit, DraftTask


@each_case(
    ("edit", "has_commands"),
    [
        (DraftEdit(title="Only a title"), False),
        (DraftEdit(tasks=()), False),
        (DraftEdit(tasks=(DraftTask(key="a", title="A"),)), False),
        (DraftEdit(tasks=(DraftTask(key="a"), DraftTask(key="b", acceptance=("make test",)))), True),
        (DraftEdit(tasks=(DraftTask(key="a", acceptance=()),)), True),
    ],
)
def test_an_edit_that_defines_commands_says_so(edit: DraftEdit, has_commands: bool) -> None:
    assert edit.has_commands is has_commands
