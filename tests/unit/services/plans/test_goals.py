"""Whether words are a goal, or a path that costs nothing."""

from pathlib import Path

import pytest
from tests.cases import each_case

from loopwright.core.values.errors import UserError
from loopwright.services.plans.planning import _for_existing, check_goal, is_goal


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the goal is empty"),
        ("  ", "the goal is empty"),
        ("plan.yml", "looks like a path"),
        ("my plan.yml", "looks like a path"),
        ("plans/next", "looks like a path"),
        ("chekc", "looks like the command `plan check`"),
        ("Coverage", "looks like the command `plan coverage`"),
        ("satus", "looks like the command `status`"),
        ("plan.yaml", "plan.yaml is there already"),
        ("all of it.md", "all of it.md is there already"),
    ],
)
def test_what_is_no_goal_is_refused_before_an_agent_is_asked(
    text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("plan.yaml", "all of it.md"):
        (tmp_path / name).touch()
    assert not is_goal(text)
    with pytest.raises(UserError, match=said) as refused:
        check_goal(text, ["plan check", "plan coverage", "status"])
    assert "loopwright plan" in refused.value.hint


@each_case("text", ["Greet in French", "Mend it", "Say how to install it in README.md"])
def test_a_sentence_is_a_goal(text: str) -> None:
    assert is_goal(text)
    check_goal(text)


@pytest.mark.parametrize("text", ["docs", "Accessibility", "i18n", " tests "])
def test_a_single_word_is_a_goal_for_plan_and_a_path_for_run(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    check_goal(text)
    assert not is_goal(text)


def test_run_advises_no_flag_that_it_does_not_have() -> None:
    hint = _for_existing("Greet all", Path("plans/greet-all.yaml"), own=False)
    assert "loopwright run plans/greet-all.yaml" in hint
    assert "loopwright plan 'Greet all' --force" in hint
    assert "--out" not in hint
