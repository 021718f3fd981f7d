"""What a task has to meet is counted once."""

from loopwright.core.plans.coverage import Kind
from loopwright.core.values.policy import GateCommand
from loopwright.ports import PlannedTask
from loopwright.services.audit.coverage import wanted_of


def test_words_that_only_say_that_a_command_of_the_task_passes_are_not_counted_again() -> None:
    run = GateCommand(name="test", command="make test", timeout_s=1)
    words = ("`make test` passes", "`make test` and `make lint` pass", "it reads well", "see also: `README`")
    criteria = (*words, "All tests still pass: `make test`")
    wanted = wanted_of(PlannedTask(key="a", title="A", acceptance=(run,), criteria=criteria))
    assert [(one.kind, one.text) for one in wanted] == [
        (Kind.ACCEPTANCE, "make test"),
        (Kind.WORDS, words[1]),
        (Kind.WORDS, words[2]),
        (Kind.WORDS, words[3]),
    ]
