"""Who may do what with a token."""

from tests.cases import each_case

from loopwright.core.values.access import Bounds, Caller, Scope


def test_what_is_created_is_one_level_deeper() -> None:
    assert [Bounds(token_id="t", depth=depth).inner_depth for depth in (None, 0, 1, 3)] == [None, 0, 0, 2]


def caller(scope: Scope = Scope.READ, projects: frozenset[str] | None = None) -> Caller:
    return Caller(token_id="tok_1", name="ci", scope=scope, projects=projects)


@each_case(
    ("scope", "allowed"),
    [
        (Scope.READ, {Scope.READ}),
        (Scope.OPERATE, {Scope.READ, Scope.OPERATE}),
        (Scope.ADMIN, set(Scope)),
    ],
)
def test_each_scope_includes_the_ones_before_it(scope: Scope, allowed: set[Scope]) -> None:
    assert {one for one in Scope if caller(scope).may(one)} == allowed


def test_a_token_for_some_projects_sees_nothing_else() -> None:
    some = caller(projects=frozenset({"proj_1"}))
    assert [some.sees(one) for one in ("proj_1", "proj_2", None)] == [True, False, False]
    assert [caller().sees(one) for one in ("proj_1", None)] == [True, True]
    assert some.actor == "token:ci"
