"""Errors carry what a handler needs as data, and say it in one line."""

import ast
import errno
import re
from collections.abc import Iterator
from pathlib import Path

from scripts.render_docs import error_classes
from tests.cases import each_case
from tests.wording_plugin import Wording

import loopwright
from loopwright.core.values import errors
from loopwright.core.values.error_codes import CODES, kind_of
from loopwright.core.values.errors import (
    Ambiguous,
    BadConfig,
    BadPlan,
    BranchRewritten,
    Busy,
    Choice,
    DamagedDatabase,
    DatabaseGone,
    DatabaseReplaced,
    Held,
    IllegalTransition,
    LoopwrightError,
    MachineTrouble,
    MergeConflict,
    NotFound,
    NotTold,
    Refused,
    UnjudgedTree,
    UserError,
    disk_is_full,
)
from loopwright.server.problems import HTTP_CODES

SOURCES = Path(loopwright.__file__).parent


def test_a_users_error_carries_a_hint() -> None:
    error = NotFound("there is no plan plan_1", code="plan_not_found", hint="loopwright status lists them")
    assert str(error) == "there is no plan plan_1"
    assert error.hint == "loopwright status lists them"
    assert NotFound("gone", code="branch_gone").hint is None


def test_a_bad_plan_names_its_source_once_with_every_problem() -> None:
    bad = BadPlan("plan.yaml", ("plan.yaml:3: id twice", "no tasks"))
    assert str(bad) == "plan.yaml:3: id twice; plan.yaml: no tasks"
    assert bad.problems == ("plan.yaml:3: id twice", "no tasks")


def test_a_merge_conflict_names_the_paths() -> None:
    error = MergeConflict(("a.py", "b.py"), "both changed line 1")
    assert str(error) == "conflict in a.py, b.py"
    assert error.detail == "both changed line 1"


def test_a_bad_setting_names_the_options_of_the_agent_that_are_at_fault() -> None:
    bad = BadConfig("it is no list", code="agent_option_wrong", hint="write [...]", options=("args",))
    assert (str(bad), bad.hint, bad.options) == ("it is no list", "write [...]", ("args",))
    assert BadConfig("unknown", code="setting_unknown").options == ()


def test_a_name_that_means_several_things_shows_some_of_them_and_how_to_say_which(wording: Wording) -> None:
    choices = tuple(
        Choice(handle=f"plan_{n}", state="RUNNING", title=f"Plan {n}", changed_s=n) for n in range(7)
    )
    error = Ambiguous("plan", choices)
    wording(str(error))
    assert "plan_4" in str(error)
    assert "plan_5" not in str(error)
    wording(error.hint)
    assert (error.text, error.choices) == ("plan", choices)
    assert isinstance(error, NotFound), "whoever handles an unknown name handles this one"


def test_a_busy_service_may_say_how_long_to_wait() -> None:
    assert Busy("later", after_s=30).after_s == 30
    assert Busy("later").after_s is None


def test_a_defect_is_not_shown_as_the_users_mistake() -> None:
    assert not isinstance(IllegalTransition("plan", "plan_1", "DRAFT", "VERIFIED"), UserError)


@each_case("cls", error_classes(), ids=lambda cls: cls.__name__)
def test_every_error_has_codes_and_a_meaning(cls: type[LoopwrightError]) -> None:
    assert ("code" in vars(cls)) is (cls not in CODES), "it has one code, or one for each cause"
    assert (cls.__doc__ or "").strip()


def _made(tree: ast.Module, ours: dict[str, type[UserError]]) -> Iterator[tuple[type[UserError], ast.Call]]:
    """Yield the calls that make an error of these kinds, and those by which a subclass makes itself one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ours:
            yield ours[node.func.id], node
        if isinstance(node, ast.ClassDef):
            kinds = [ours[one.id] for one in node.bases if isinstance(one, ast.Name) and one.id in ours]
            for kind in kinds:
                calls = [one for one in ast.walk(node) if isinstance(one, ast.Call)]
                yield from ((kind, one) for one in calls if ast.unparse(one.func) == "super().__init__")


def test_every_raised_code_is_listed_under_its_kind_and_every_listed_code_is_raised() -> None:
    raised = {kind: set[str]() for kind in CODES}
    kinds = {kind.__name__: kind for kind in CODES}
    for path in sorted(SOURCES.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        ours = {
            one.asname or one.name: kinds[one.name]
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module == errors.__name__
            for one in node.names
            if one.name in kinds
        }
        for kind, node in _made(tree, ours):
            where = f"{path.relative_to(SOURCES)}:{node.lineno}"
            code = next((one.value for one in node.keywords if one.arg == "code"), None)
            assert isinstance(code, ast.Constant), f"{where}: the code is a literal"
            raised[kind].add(str(code.value))
    assert raised == {kind: set(codes) for kind, codes in CODES.items()}


def test_every_code_that_only_http_has_is_listed_and_raised() -> None:
    of_starlette = {"bad_request", "method_not_allowed", "not_found"}
    raised = {
        str(one.value)
        for path in sorted((SOURCES / "server").rglob("*.py"))
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("HttpProblem")
        for one in ast.walk(call.args[0])
        if isinstance(one, ast.Constant)
    }
    assert raised | of_starlette == set(HTTP_CODES)
    assert list(HTTP_CODES) == sorted(HTTP_CODES)


def test_a_code_has_one_kind_and_one_sentence() -> None:
    codes = [code for known in CODES.values() for code in known]
    assert len(codes) == len(set(codes))
    assert not set(codes) & {cls.code for cls in error_classes() if cls not in CODES}
    for known in CODES.values():
        assert list(known) == sorted(known)
        assert all(re.fullmatch(r"[a-z][a-z_]*[a-z]", code) for code in known)
        assert all(meaning.endswith(".") and len(meaning) < 100 for meaning in known.values())


def test_the_kind_of_an_error_follows_from_its_code() -> None:
    assert kind_of("worker_not_responding") is Held
    assert kind_of("plan_not_found") is NotFound
    assert kind_of("illegal_transition") is Refused, "a command was refused for it"


def test_errors_carry_what_a_handler_needs() -> None:
    assert NotTold("refused", items=("a",)).items == ("a",)
    rewritten = BranchRewritten("moved", found="1", left="2")
    assert (rewritten.found, rewritten.left) == ("1", "2")
    assert UnjudgedTree("it passes", hint="run it").hint == "run it"
    assert DamagedDatabase("it is damaged", hint="restore it").hint == "restore it"
    assert "home/loopwright.db" in str(DatabaseGone("home/loopwright.db"))
    assert "home/loopwright.db" in str(DatabaseReplaced("home/loopwright.db"))
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
