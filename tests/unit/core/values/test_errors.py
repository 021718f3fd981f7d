"""Errors carry what a handler needs as data, and say it in one line."""

import errno

from scripts.render_docs import error_classes
from tests.cases import each_case

from loopwright.core.values.errors import (
    Ambiguous,
    BadConfig,
    BadPlan,
    BranchRewritten,
    Busy,
    Choice,
    DamagedDatabase,
    IllegalTransition,
    LoopwrightError,
    MachineTrouble,
    MergeConflict,
    NotFound,
    NotTold,
    UnjudgedTree,
    UserError,
    disk_is_full,
)


def test_a_users_error_carries_a_hint() -> None:
    error = NotFound("there is no plan plan_1", hint="loopwright status lists them")
    assert str(error) == "there is no plan plan_1"
    assert error.hint == "loopwright status lists them"
    assert NotFound("gone").hint is None


def test_a_bad_plan_names_its_source_once_with_every_problem() -> None:
    bad = BadPlan("plan.yaml", ("plan.yaml:3: id twice", "no tasks"))
    assert str(bad) == "plan.yaml:3: id twice; plan.yaml: no tasks"
    assert bad.problems == ("plan.yaml:3: id twice", "no tasks")


def test_a_merge_conflict_names_the_paths() -> None:
    error = MergeConflict(("a.py", "b.py"), "both changed line 1")
    assert str(error) == "conflict in a.py, b.py"
    assert error.detail == "both changed line 1"


def test_a_bad_setting_names_the_options_of_the_agent_that_are_at_fault() -> None:
    bad = BadConfig("it is no list", hint="write [...]", options=("args",))
    assert (str(bad), bad.hint, bad.options) == ("it is no list", "write [...]", ("args",))
    assert BadConfig("unknown").options == ()


def test_a_name_that_means_several_things_shows_some_of_them_and_how_to_say_which() -> None:
    choices = tuple(
        Choice(handle=f"plan_{n}", state="RUNNING", title=f"Plan {n}", changed_s=n) for n in range(7)
    )
    error = Ambiguous("plan", choices)
    assert str(error).startswith("'plan' could be any of 7: plan_0 (Plan 0), plan_1 (Plan 1), ")
    assert "plan_4" in str(error)
    assert "plan_5" not in str(error)
    assert error.hint == "say which one, such as plan_0"
    assert (error.text, error.choices) == ("plan", choices)
    assert isinstance(error, NotFound), "whoever handles an unknown name handles this one"


def test_a_busy_service_may_say_how_long_to_wait() -> None:
    assert Busy("later", after_s=30).after_s == 30
    assert Busy("later").after_s is None


def test_a_defect_is_not_shown_as_the_users_mistake() -> None:
    assert not isinstance(IllegalTransition("plan", "plan_1", "DRAFT", "VERIFIED"), UserError)


@each_case("cls", error_classes(), ids=lambda cls: cls.code)
def test_every_error_has_a_code_of_its_own_and_a_meaning(cls: type[LoopwrightError]) -> None:
    assert "code" in vars(cls)
    assert (cls.__doc__ or "").strip()


def test_errors_carry_what_a_handler_needs() -> None:
    assert NotTold("refused", items=("a",)).items == ("a",)
    rewritten = BranchRewritten("moved", found="1", left="2")
    assert (rewritten.found, rewritten.left) == ("1", "2")
    assert UnjudgedTree("it passes", hint="run it").hint == "run it"
    assert DamagedDatabase("it is damaged", hint="restore it").hint == "restore it"
    assert str(MachineTrouble("no file")) == f"{MachineTrouble.what}: no file"
    assert str(MachineTrouble("")) == MachineTrouble.what


@each_case(
    ("error", "full"),
    [
        (OSError(errno.ENOSPC, "full"), True),
        (OSError(errno.EDQUOT, "full"), True),
        (OSError(errno.EIO, "broken"), False),
        (LoopwrightError("fatal: write error: No space left on device"), True),
        (LoopwrightError("fatal: no such ref"), False),
    ],
)
def test_a_full_disk_is_known_by_its_code_or_by_the_words_of_git(error: Exception, full: bool) -> None:
    assert disk_is_full(error) is full
