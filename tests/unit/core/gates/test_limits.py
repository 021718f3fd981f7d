"""What gates cannot exclude is named for the commands that ran."""

from loopwright.core.gates.gate_limits import LIMITS, limits_of
from loopwright.core.values.findings import CommandFacts


def command(
    name: str = "tests", text: str = "pytest", tests: int | None = 3, *, reported: bool = False
) -> CommandFacts:
    return CommandFacts(
        name=name,
        command=text,
        exit_code=0,
        duration_s=1.0,
        output_sha256="",
        output_bytes=0,
        tests=tests,
        reported=reported,
    )


def names(*commands: CommandFacts) -> list[str]:
    """Return which limits apply, by their names."""
    return [name for name, _ in limits_of(commands)]


def test_each_limit_is_one_sentence_of_its_own() -> None:
    assert len({limit.words[:30] for limit in LIMITS}) == len(LIMITS)
    assert all("\n" not in limit.words and not limit.words.endswith(".") for limit in LIMITS)


def test_a_watched_runner_and_a_plain_command_leave_different_things_open() -> None:
    assert names(command()) == ["deceived", "seen_by_author", "one_machine"]
    assert names(command(tests=None)) == ["unseen", "seen_by_author", "one_machine"]
    assert names(command(text="cargo test --all", tests=None))[1] == "inside"
    assert names(command(reported=True))[:2] == ["deceived", "reported"]


def test_setup_checks_nothing_and_nothing_is_said_of_it() -> None:
    assert limits_of([command("setup", "make deps", None)]) == []


def test_many_commands_are_named_in_part() -> None:
    many = [command(f"c{n}", "true", None) for n in range(12)]
    assert limits_of(many)[0][1].endswith("c8, c9 and 2 more")
