"""The commands that put a user's checkout back."""

from pathlib import Path

from tests.wording_plugin import Wording

from loopwright.engine.attempt.checkout_watch import undoing
from loopwright.ports import Tripwire

OLD, NEW = "1" * 40, "2" * 40


def test_each_ref_is_put_back_from_the_very_value_that_it_was_given() -> None:
    before = Tripwire(head="trunk", refs={"refs/heads/a": OLD, "refs/tags/v 1": OLD}, status={}, config={})
    refs = {"refs/heads/a": NEW, "refs/heads/new": NEW}
    after = Tripwire(head="trunk", refs=refs, status={"new.txt": "a"}, config={})
    assert undoing(before, after, checkout="/the checkout", patch=Path("/kept/run.patch")) == (
        f"git -C '/the checkout' update-ref refs/heads/a {OLD} {NEW}",
        f"git -C '/the checkout' update-ref -d refs/heads/new {NEW}",
        f"git -C '/the checkout' update-ref 'refs/tags/v 1' {OLD} {'0' * 40}",
        "git -C '/the checkout' apply --reverse /kept/run.patch",
    )


def test_no_command_takes_away_what_a_person_had_changed_before(wording: Wording) -> None:
    before = Tripwire(head="trunk", refs={}, status={"mine.py": "a", "same.py": "b"}, config={})
    after = Tripwire(
        head="trunk", refs={}, status={"mine.py": "c", "same.py": "b", "new.txt": "d"}, config={}
    )
    wording(undoing(before, after, checkout="/it", patch=Path("/kept/run.patch")))
    alone = Tripwire(head="trunk", refs={}, status={"mine.py": "c", "same.py": "b"}, config={})
    (only,) = undoing(before, alone, checkout="/it", patch=Path("/kept/run.patch"))
    assert only.startswith("# by hand")
