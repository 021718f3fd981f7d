"""Who may do what with a token."""

from tests.cases import each_case

from loopwright.core.values.access import Caller, Scope


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
