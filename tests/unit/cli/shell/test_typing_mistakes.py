"""What somebody is told who typed a command wrong."""

from tests.cases import each_case

from loopwright.cli.main import call


@each_case(
    ("typed", "told"),
    [
        (["reject"], ["`reject` needs a TASK", "`loopwright status` names the tasks"]),
        (["plan", "check"], ["`plan check` needs a FILE", "a file with tasks"]),
        (["answer", "q", "--nope"], ["Unknown option: --nope", "`loopwright answer --help`"]),
        (["reject", "t", "--at", "x"], ["`reject --at` needs a FILE:LINE and a text"]),
        (["show", "a", "b"], ["`show` has no use for 'b'"]),
        (["run", "p", "--parallel", "x"], ["--parallel needs a whole number, not 'x'"]),
        (["plan", "chekc", "plan.md"], ["has no use for 'plan.md': did you mean `plan check`?"]),
        (["receipt", "vrify"], ["there is no command 'receipt vrify': did you mean `receipt verify`?"]),
        (["stats", "quota", "shwo", "claude"], ["did you mean `stats quota show`?"]),
        (["take-over", "t", "--done", "--drop"], ["--done and --drop exclude each other"]),
        (
            ["take-over", "t", "--include-uncommitted"],
            ["is only for --done", "`loopwright take-over t --done`"],
        ),
        (["take-over", "t", "folder", "--done"], ["a folder is only for taking a task over"]),
        (["run", "hello"], ["there is no such file; if it is a goal, `loopwright plan hello`"]),
        *((["run", ""], ["the name of the plan is empty"]), (["plan", "check", " "], ["is empty"])),
        *((["audit", ""], ["is empty"]), (["plan", "coverage", ""], ["is empty", "such as plan.yaml"])),
        (
            ["sattus"],
            [
                "there is no command 'sattus': did you mean `status`?",
                "`loopwright --help` lists the commands",
            ],
        ),
    ],
)
def test_what_is_missing_or_too_much_is_named_with_where_to_find_it(typed, told, capsys):
    assert call(typed) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert all(one in said for one in told), said
    assert "requires an argument" not in said
    assert "Tokens" not in said


def test_a_word_that_is_near_no_command_is_taken_for_none(capsys):
    assert call(["bogus"]) == 2
    assert "did you mean" not in capsys.readouterr().err
    assert call(["take"]) == 2
    assert "did you mean `take-over`?" in capsys.readouterr().err
