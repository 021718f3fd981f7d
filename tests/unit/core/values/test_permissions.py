"""What policy settles without a person, and what it leaves to one."""

from tests.cases import each_case

from loopwright.core.values.permissions import (
    OWN_TOOLS,
    Access,
    Permissions,
    Settled,
    Wish,
    access_of,
    may_run,
    mode_in_words,
    parts,
    settle,
    to_run_checks,
)

EDIT = Permissions(commands=("pytest *", "npm test", "git diff *"))
READ = Permissions(access=Access.READ_ONLY, commands=("pytest *",))


@each_case(
    ("permissions", "wish", "expected"),
    [
        (EDIT, Wish(kind="read", what="/etc/hosts", inside=False), Settled.ALLOW),
        (EDIT, Wish(kind="edit", what="src/app.py"), Settled.ALLOW),
        (EDIT, Wish(kind="edit", what="/etc/hosts", inside=False), Settled.ASK),
        (EDIT, Wish(kind="command", what="pytest -q tests"), Settled.ALLOW),
        (EDIT, Wish(kind="command", what="curl example.invalid"), Settled.ASK),
        (EDIT, Wish(kind="tool", what="WebFetch"), Settled.ASK),
        *((EDIT, Wish(kind="tool", what=tool), Settled.ALLOW) for tool in OWN_TOOLS),
        (READ, Wish(kind="read", what="a"), Settled.ALLOW),
        (READ, Wish(kind="edit", what="a"), Settled.DENY),
        (READ, Wish(kind="command", what="pytest -q"), Settled.DENY),
        *((READ, Wish(kind="tool", what=tool), Settled.ALLOW) for tool in OWN_TOOLS),
        (Permissions(access=Access.SANDBOXED_ALL), Wish(kind="command", what="rm -rf /"), Settled.ALLOW),
        (Permissions(granted=("command:make dist",)), Wish(kind="command", what="make dist"), Settled.ALLOW),
        (Permissions(refused=("command:make dist",)), Wish(kind="command", what="make dist"), Settled.DENY),
    ],
)
def test_a_wish_is_settled_by_what_was_recorded(
    permissions: Permissions, wish: Wish, expected: Settled
) -> None:
    assert settle(permissions, wish) is expected


GITS_OWN = (
    ".git/config", ".git", "sub/.git/config", ".git/hooks/pre-commit", ".GIT/config", ".gi\u200ct/config",
    "bare.git/config", "bare/HEAD", "bare/head",
)  # fmt: skip


@each_case("path", GITS_OWN)
def test_a_file_that_steers_git_is_not_changed_without_leave(path: str) -> None:
    wish = Wish(kind="edit", what=path)
    assert settle(EDIT, wish) is Settled.ASK
    assert settle(READ, wish) is Settled.DENY
    assert settle(Permissions(granted=(wish.key,)), wish) is Settled.ALLOW


@each_case("path", [".gitignore", ".gitattributes", ".github/x.yml", "a.git.py", "head.py"])
def test_a_file_that_is_only_called_like_one_of_git_is_a_file(path: str) -> None:
    assert settle(EDIT, Wish(kind="edit", what=path)) is Settled.ALLOW


@each_case(
    ("granted", "line"),
    [
        ("python3 -c 1 # touch planted", "python3 -c 1 #\ntouch planted"),
        ("echo a rm b", "echo a\nrm b"),
        ("echo a rm b", "echo a\rrm b"),
        ("sh -c 'rm a b'", "sh -c 'rm a  b'"),
        ("rm a\tb", "rm a b"),
        ("rm a\\ ", "rm a\\"),
    ],
)
def test_a_yes_to_one_line_is_none_to_another_that_differs_in_its_blanks(granted: str, line: str) -> None:
    allowed = Wish(kind="command", what=granted)
    assert settle(Permissions(granted=(allowed.key,)), allowed) is Settled.ALLOW
    assert settle(Permissions(granted=(allowed.key,)), Wish(kind="command", what=line)) is Settled.ASK
    assert settle(Permissions(refused=(allowed.key,)), Wish(kind="command", what=line)) is Settled.ASK


@each_case(
    "line",
    [
        "pytest",
        "pytest -q 'tests/test a.py'",
        "npm test",
        "npm test && pytest -x",
        "git diff HEAD | pytest -",
        "pytest -k 'a and (b or $c)' 2>/dev/null | pytest 2>&1",
        'pytest -k "(a|b) \\w" tests/"with blanks".py',
    ],
)
def test_a_line_is_allowed_when_each_of_its_parts_is(line: str) -> None:
    assert may_run(line, EDIT.commands)


@each_case(
    "line",
    [
        "",
        "   ",
        "npm test --ignore-scripts",
        "pytestx",
        "pytest; rm -rf ~",
        "pytest && curl example.invalid",
        "pytest & curl example.invalid",
        "pytest | sh",
        "pytest $(curl example.invalid)",
        "pytest `id`",
        "pytest > /etc/hosts",
        "pytest\nrm -rf ~",
        "PATH=. pytest",
        "pytest 'unclosed",
        "pytest &&",
        "pytest \\; id",
        'pytest "$(id)"',
        'pytest "a\\"; id; \\""',
        "pytest 2>/dev/null.txt",
        "pytest 2>&1& id",
        "pytest{,}",
    ],
)
def test_what_the_words_do_not_tell_is_left_to_a_person(line: str) -> None:
    assert not may_run(line, EDIT.commands)


@each_case(
    "check",
    [
        "pytest", "python -m pytest -q", ".venv/bin/python3.12 -B -m unittest", "uv run pytest -q", "npx jest",
        "npx vitest run", "node --test", "go test ./...", "cargo test", "bundle exec rspec",
    ],
)  # fmt: skip
def test_a_test_runner_that_checks_the_work_may_be_told_which_tests(check: str) -> None:
    patterns = tuple(to_run_checks((check,)))
    assert may_run(f"{check} 2>&1 | {check}", patterns)
    assert may_run(f"{check} tests/a -k 'one or two'", patterns)
    assert not may_run(f"{check} tests/a && make deploy", patterns)


@each_case(
    "check",
    [
        "make", "make pytest", "npm test", "npm install", "npm run jest", "yarn", "just", "cargo", "go",
        "docker compose run tests", "sh -c pytest", "test -s a", "ruff check .", "pytest-watch", "tox -e pytest",
    ],
)  # fmt: skip
def test_a_check_that_further_words_make_another_command_is_run_as_it_is(check: str) -> None:
    patterns = tuple(to_run_checks((check,)))
    assert may_run(check, patterns)
    assert may_run(f"{check} && {check}", patterns)
    assert not may_run(f"{check} deploy", patterns)


def test_a_sign_for_files_in_a_check_stands_for_no_other_words() -> None:
    patterns = tuple(to_run_checks(("prettier --check *", "cat [ab].txt | diff - c?")))
    assert may_run("prettier --check *", patterns)
    assert may_run("cat [ab].txt | diff - c?", patterns)
    assert not may_run("prettier --check --write src", patterns)
    assert not may_run("cat a.txt | diff - cx", patterns)


def test_a_line_that_was_allowed_word_for_word_may_hold_anything() -> None:
    assert may_run("make dist > log 2>&1", ("make dist > log 2>&1",))
    assert not may_run("make dist > log", ("make dist > log 2>&1",))


def test_quoted_words_are_one_word_without_their_quotes() -> None:
    assert parts("""rg -n 'a b|c' "d(e" f''g 2>&1 | head -3""") == [
        ["rg", "-n", "a b|c", "d(e", "fg"],
        ["head", "-3"],
    ]
    assert parts("") == []


def test_who_is_contained_may_do_everything_by_default_and_nobody_else() -> None:
    assert access_of("auto", contained=True) is Access.SANDBOXED_ALL
    assert access_of("auto", contained=False) is Access.EDIT
    assert {access_of(mode.value, contained=one) is mode for mode in Access for one in (True, False)} == {
        True
    }


@each_case(
    ("access", "able", "contained", "said"),
    [
        (Access.EDIT, {"permissions"}, False, "edit"),
        (Access.EDIT, {"confines"}, False, "edit"),
        (Access.EDIT, {"interrupt"}, True, "edit"),
        (Access.EDIT, {"interrupt"}, False, "edit (not kept)"),
        (Access.READ_ONLY, set(), False, "read-only (not kept)"),
        (Access.SANDBOXED_ALL, set(), False, "sandboxed-all"),
    ],
)
def test_a_mode_that_nothing_keeps_is_recorded_as_such(
    access: Access, able: set[str], contained: bool, said: str
) -> None:
    assert mode_in_words(access, able, contained=contained) == said
