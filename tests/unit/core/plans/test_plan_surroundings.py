"""A plan is judged by where it would run."""

from tests.cases import each_case
from tests.wording_plugin import Wording

from loopwright.core.plans.evaluating import Finding, Weight
from loopwright.core.plans.plan_context import Surroundings, likeness, look_around
from loopwright.core.values.policy import GateCommand
from loopwright.ports import PlannedTask

MAKEFILE = "all: test\n\n.PHONY: test\ntest lint: src\n\tpytest\nX := y\n"


def gate(command: str) -> GateCommand:
    return GateCommand(name=command, command=command)


def task(key: str, title: str = "x", *checks: str, scope: tuple[str, ...] = ("src",)) -> PlannedTask:
    return PlannedTask(key=key, title=title, acceptance=tuple(map(gate, checks)), scope=scope)


def around(*files: str, **more: object) -> Surroundings:
    found = {"pytest", "make", "sh", "python3"}
    values: dict[str, object] = {"files": frozenset(files), "has_program": found.__contains__, **more}
    return Surroundings(**values)  # type: ignore[arg-type]


def cannot(command: str, where: Surroundings, *tasks: PlannedTask) -> list[Finding]:
    return look_around(tasks or (task("a"),), (gate(command),), where)


@each_case(
    ("command", "what"),
    [
        ("nosuch --all", "nosuch is not on PATH"),
        ("CI=1 pytest && nosuch", "nosuch is not on PATH"),
        ("make tset", "the Makefile has no target tset"),
        ("sh check.sh", "check.sh is not in the commit that the plan starts from"),
        ("./check", "check is not in the commit that the plan starts from"),
    ],
)
def test_a_gate_that_cannot_run_is_refused_with_what_to_do(command: str, what: str) -> None:
    (found,) = cannot(command, around(makefile=MAKEFILE))
    assert found.weight is Weight.POINTLESS
    assert what in found.text
    assert "`setup`" in found.text
    assert cannot(command, around(makefile=MAKEFILE, brings=True)) == [], "a setup command may bring it"
    (elsewhere,) = cannot(command, around(makefile=MAKEFILE, elsewhere=True))
    assert elsewhere.weight is Weight.TOLD, "who runs it may have it"


@each_case(
    "command",
    [
        "pytest -q",
        "make lint",
        "make -C sub tset",
        "make src/x.o",
        "sh check.sh",
        "cd sub && nosuch",
        "if nosuch; then x; fi > $(y)",
        "test -d . && ! [ -e x ]",
        "python3 -m tool",
    ],
)
def test_a_gate_that_may_well_run_is_left_alone(command: str) -> None:
    assert cannot(command, around("check.sh", "src/x.o", makefile=MAKEFILE)) == []


@each_case(("command", "file"), [("make test", "Makefile"), ("sh check.sh", "check.sh")])
def test_what_lies_in_the_checkout_uncommitted_is_to_be_committed(
    command: str, file: str, wording: Wording
) -> None:
    (found,) = cannot(command, around(lies_about={file}.__contains__))
    wording(found.text)


def test_what_a_task_brings_is_only_told() -> None:
    (made,) = cannot("sh check.sh", around(), task("a", scope=("check.sh",)))
    assert made.weight is Weight.TOLD
    (perhaps,) = cannot("sh check.sh", around(), task("a", scope=()))
    assert perhaps.weight is Weight.TOLD, "who says nothing of where it writes may make anything"
    assert cannot("make x", around(makefile="include more.mk\n")) == []
    assert "no Makefile" in cannot("make x", around())[0].text


def test_acceptance_needs_its_program_but_not_its_files(wording: Wording) -> None:
    tasks = [task("a", "x", "nosuch a"), task("b", "x", "nosuch b"), task("c", "x", "pytest new_test.py")]
    (found,) = look_around(tasks, (), around())
    assert found.weight is Weight.POINTLESS
    wording(found.text)


@each_case(
    ("title", "scope"),
    [
        ("Create src/limits.py", ()),
        ("Add a new module `src/limits.py` with a token bucket", ()),
        ("Write the script limits.py", ("src/limits.py",)),
    ],
)
def test_a_file_that_is_to_be_made_and_is_there_is_named(title: str, scope: tuple[str, ...]) -> None:
    (found,) = look_around([task("a", title, scope=scope)], (), around("src/limits.py"))
    assert (found.weight, found.text.partition(": ")[2]) == (Weight.TOLD, "a: src/limits.py")
    assert look_around([task("a", title, scope=scope)], (), around("src/other.py")) == []


@each_case("title", ["Add a limit to src/limits.py", "Mend src/limits.py", "Add limits"])
def test_a_file_that_is_to_be_changed_may_be_there(title: str) -> None:
    assert look_around([task("a", title)], (), around("src/limits.py", "limits")) == []


def test_a_check_for_a_file_that_is_there_proves_nothing(wording: Wording) -> None:
    (found,) = look_around([task("a", "x", "test -f made.txt", "[ -s other ]")], (), around("made.txt"))
    wording(found.text)


def test_what_was_done_before_and_what_failed_before_is_told() -> None:
    old = task("z", "Say  Hello", "pytest a")
    where = around(done={likeness(old): "plan p1, abc"}, failed_before={"pytest": "yesterday"})
    told = look_around(
        [task("a", "say hello", "pytest a"), task("b", "say hello", "pytest b")], (gate("pytest"),), where
    )
    assert [(one.check, one.weight) for one in told] == [
        ("failed_before", Weight.TOLD),
        ("done", Weight.TOLD),
    ]
    assert "pytest (yesterday)" in told[0].text
    assert told[1].text.endswith(": a (plan p1, abc)")
    assert look_around([old], (), where, settled={"z"}) == [], "it is ticked, and nobody does it again"


def test_documents_that_have_to_follow_and_are_not_there_are_told() -> None:
    where = around("docs/pricing.md", "docs/tiers/a.md")
    assert look_around([], (), where, documents=("docs/pricing.md", "docs/tiers")) == []
    (found,) = look_around([], (), where, documents=("docs/pricing.md", "docs/prices.md"))
    assert (found.weight, found.text.partition(": ")[2]) == (Weight.TOLD, "docs/prices.md")


def test_a_permission_for_what_is_not_there_is_named() -> None:
    where = around("tests/test_a.py")
    given = {"task a": ("tests/test_a.py::test_x", "tests/", "tests/tset_a.py"), "the setting": ("snaps/**",)}
    (found,) = look_around((), (), where, may_change=given)
    assert found.weight is Weight.TOLD
    assert "tests/tset_a.py (task a)" in found.text
    assert "snaps/** (the setting)" in found.text
    assert "test_a.py" not in found.text
    assert look_around((), (), where, may_change={"task a": ("tests/**",)}) == []


@each_case(
    ("command", "shared"),
    [
        ("python -m pip install -q .", True),
        ("pip install -e .", True),
        ("npm ci && pip3 install '.[dev]'", True),
        ("python -m venv .venv && .venv/bin/python -m pip install .", False),
        (".venv/bin/pip install .", False),
        ("pip install -r requirements.txt", False),
        ("pip install --target lib .", False),
        ("uv sync", False),
    ],
)
def test_an_installation_of_each_workspace_into_one_environment_is_told(
    command: str, *, shared: bool
) -> None:
    found = look_around((), (), around(), installs=(command,))
    assert bool(found) is shared
