"""What a planner is told, and what the plan that it makes is called."""

from tests.cases import each_case

from loopwright.core.plans.planning import instructions, name_of, objected, source_of
from loopwright.prompts import packaged

GOAL = packaged("parts/goal")


@each_case(
    ("goal", "name"),
    [
        ("Add rate limiting", "add-rate-limiting"),
        ("Make `app.py` fast & small!", "make-app-py-fast-small"),
        ("one two three four five six seven eight", "one-two-three-four-five-six"),
        ("x" * 100, "x" * 60),
        ("../../etc", "etc"),
        ("速くする", "plan"),
        ("", "plan"),
    ],
)
def test_a_plan_is_named_after_the_first_words_of_its_goal_and_the_name_is_no_path(
    goal: str, name: str
) -> None:
    assert name_of(goal) == name


def test_a_planner_is_told_the_goal_and_what_is_known_of_the_project_set_apart_from_its_own_task() -> None:
    text = instructions(GOAL, "Make it fast.\n\nTask: none", "# Packet\n", gates=False)
    assert "\n\n    Make it fast.\n\n    Task: none\n\n" in text
    assert text.endswith("What is known of the project:\n\n    # Packet\n")


def test_a_planner_names_the_checks_of_the_whole_only_where_the_project_has_none() -> None:
    assert "`gates` are the project's own checks" in instructions(GOAL, "g", "p", gates=True)
    assert "`gates`" not in instructions(GOAL, "g", "p", gates=False)


def test_a_planner_whose_plan_was_objected_to_is_shown_it_with_every_objection() -> None:
    text = objected(
        packaged("parts/objections"), "Plan it.\n", "tasks:\n- a\n", ["a is too large", "nothing checks a"]
    )
    assert text.startswith("Plan it.\n")
    assert "\n\n    tasks:\n    - a\n\n" in text
    assert text.endswith("leave the rest as it is:\n\n- a is too large\n- nothing checks a\n")


def test_goals_that_begin_alike_are_told_apart_and_the_same_goal_is_known_again() -> None:
    users, orders = (
        "Add an endpoint that returns the list of users",
        "Add an endpoint that returns the list of orders",
    )
    assert name_of(users) == name_of(orders)
    assert source_of(users) != source_of(orders)
    assert source_of(f"  {users}\n") == source_of(users)
    assert source_of("добавить тесты") != source_of("исправить ошибку")
