"""Work that a person took over as a squash is there, though none of its commits is."""

import json

import pytest
from tests.acceptance.control.sources.test_sources import SETTINGS, feature, makes, written
from tests.acceptance.control.workshop import Workshop

from loopwright.core.rows.model import Plan


def proofs(shop: Workshop, path: str) -> dict[str, str]:
    return {one["key"]: one["proof"] for one in shop("audit", path, "--json").document["items"]}


@pytest.mark.capability("C037")
@pytest.mark.parametrize(
    "tracked", [pytest.param(False, id="in place", marks=pytest.mark.more), pytest.param(True, id="tracked")]
)
def test_a_squash_by_hand_is_recognised_by_all_that_ask_for_a_merge(shop: Workshop, *, tracked: bool) -> None:
    """`two` changes what `one` made, so `one` alone cannot be found in the squash; the two of them can."""
    (shop.repository / "loopwright.toml").write_text(SETTINGS)
    ignored = "" if tracked else "feature_list.json\n"
    with (shop.repository / ".gitignore").open("a") as file:
        file.write(ignored)
    path = shop.repository / "feature_list.json"
    written(path, feature("one", check="test -s file"), feature("two", "one", check="grep two file"))
    shop.git("add", "-A")
    shop.git("commit", "-qm", "the work")
    more = {"two": [[{"write": "file", "text": "two\n"}]], "one": [[{"write": "file", "text": "one\n"}]]}
    shop.play({**makes("three"), **more})
    assert shop.run(path).code == 0
    plan = shop.row(Plan)
    before = shop("audit", path.name)
    if tracked:
        assert "nothing in it is marked as finished" in before.out
        assert f"not merged yet:  git merge {plan.branch}" in before.out
    else:
        assert before.code == 1
        assert f"is on {plan.branch}, which is not merged" in " ".join(before.out.split())
        assert "2 finished items: 2 unmerged" in before.out
    shop.git("merge", "-q", "--squash", plan.branch)
    shop.git("commit", "-qm", "all of it as one")
    shop.git("branch", "-q", "-D", plan.branch) if not tracked else None
    assert proofs(shop, path.name) == {"one": "proven", "two": "proven"}, "by the record of the plan"
    assert "git merge" not in shop("audit", path.name).out
    assert "merge it:" not in shop.run(path).out
    after = json.loads(path.read_text())
    after["features"].append(feature("three"))
    path.write_text(json.dumps(after))
    (shop.repository / "file").write_text("one two three\n")
    shop.git("add", "file")
    shop.git("commit", "-qm", "went on")
    said = shop.run(path)
    assert said.code == 0, said.out + said.err
    assert shop.landed() == ["three"], "nothing is done twice, and nothing had to be forced"
    (shop.repository / "file").unlink()
    shop.git("commit", "-qam", "lost again")
    assert proofs(shop, path.name) | {"three": ""} == {"one": "failing", "two": "failing", "three": ""}
