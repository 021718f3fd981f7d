"""Laws of the DAG, each against the most naive way to say the same."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from loopwright.core.policy.graph import (
    critical_path,
    dependents,
    find_cycle,
    ordered,
    ready,
    scopes_overlap,
    topological,
    unknown_dependencies,
)

LAW = settings(max_examples=80, deadline=None)

Edges = dict[str, list[str]]
NAMES = [f"t{n}" for n in range(7)]


@st.composite
def graphs(draw: st.DrawFn) -> Edges:
    """Any graph, with cycles or without."""
    nodes = draw(st.lists(st.sampled_from(NAMES), unique=True))
    return {node: draw(st.lists(st.sampled_from(nodes), unique=True, max_size=3)) for node in nodes}


@st.composite
def dags(draw: st.DrawFn) -> Edges:
    """A graph in which every node depends on earlier ones only, given in any order."""
    order = draw(st.permutations(NAMES[: draw(st.integers(0, len(NAMES)))]))
    edges = {
        node: draw(st.lists(st.sampled_from(order[:n]), unique=True)) if n else []
        for n, node in enumerate(order)
    }
    return {node: edges[node] for node in draw(st.permutations(order))}


def closure(edges: Edges, node: str) -> set[str]:
    """Return everything that can be reached from a node in at least one step."""
    seen: set[str] = set()
    todo = list(edges[node])
    while todo:
        one = todo.pop()
        if one not in seen:
            seen.add(one)
            todo += edges[one]
    return seen


def longest(edges: Edges, node: str) -> int:
    return 1 + max((longest(edges, dep) for dep in edges[node]), default=0)


@LAW
@given(edges=graphs())
def test_a_cycle_is_found_exactly_when_some_node_reaches_itself(edges: Edges) -> None:
    cycle = find_cycle(edges)
    assert (cycle is not None) == any(node in closure(edges, node) for node in edges)
    if cycle is not None:
        assert cycle[0] == cycle[-1]
        assert len(set(cycle)) == len(cycle) - 1
        assert all(after in edges[before] for before, after in pairwise(cycle))


@LAW
@given(edges=dags())
def test_in_a_topological_order_everyone_comes_once_and_after_what_it_waits_for(edges: Edges) -> None:
    order = topological(edges)
    assert sorted(order) == sorted(edges)
    place = {node: n for n, node in enumerate(order)}
    assert all(place[dep] < place[node] for node, deps in edges.items() for dep in deps)


@LAW
@given(edges=dags())
def test_no_chain_is_longer_than_the_critical_path(edges: Edges) -> None:
    path = critical_path(edges)
    assert len(path) == max((longest(edges, node) for node in edges), default=0)
    assert all(before in edges[after] for before, after in pairwise(path))


@LAW
@given(edges=dags(), data=st.data())
def test_what_is_ready_is_open_and_waits_only_for_what_is_complete(edges: Edges, data: st.DataObject) -> None:
    complete = data.draw(st.sets(st.sampled_from(sorted(edges)))) if edges else set()
    found = ready(edges, complete)
    assert set(found) == {node for node in edges if node not in complete and set(edges[node]) <= complete}


@LAW
@given(edges=dags())
def test_completing_what_is_ready_completes_the_plan_in_as_many_rounds_as_the_critical_path(
    edges: Edges,
) -> None:
    complete: set[str] = set()
    rounds = 0
    while found := ready(edges, complete):
        complete |= set(found)
        rounds += 1
    assert complete == set(edges)
    assert rounds == len(critical_path(edges))


@LAW
@given(edges=dags())
def test_dependents_turn_every_edge_round(edges: Edges) -> None:
    turned = dependents(edges)
    assert {(node, dep) for node, deps in edges.items() for dep in deps} == {
        (node, dep) for dep, nodes in turned.items() for node in nodes
    }
    assert unknown_dependencies(edges) == unknown_dependencies(turned) == ()


PARTS = st.sampled_from(["src", "docs", "a", "b.py", "*", "**", "x?", "[ab]", "{a,b}", "."])
PATTERNS = st.lists(PARTS, min_size=1, max_size=4).map("/".join)
SCOPES = st.lists(PATTERNS, max_size=3)


@LAW
@given(one=SCOPES, other=SCOPES)
def test_overlapping_is_mutual_and_a_scope_meets_itself(one: list[str], other: list[str]) -> None:
    assert scopes_overlap(one, other) == scopes_overlap(other, one)
    assert scopes_overlap(one, one) == bool(one)


@LAW
@given(
    path=st.lists(st.sampled_from(["src", "docs", "a", "b.py"]), min_size=1, max_size=4),
    first=st.integers(0, 4),
    second=st.integers(0, 4),
    dotted=st.booleans(),
)
def test_two_scopes_that_both_hold_a_path_overlap(
    path: list[str], first: int, second: int, dotted: bool
) -> None:
    """Whatever part of the path is written out before the wildcard: a shared path is never missed."""

    def scope(fixed: int) -> str:
        written = "/".join(path[:fixed])
        return f"{written}/**".lstrip("/") if fixed < len(path) else written

    one = ("./" if dotted else "") + scope(first)
    assert scopes_overlap([one], [scope(second)])


@LAW
@given(edges=dags(), after=graphs())
def test_an_order_never_makes_a_cycle_and_loses_nothing_that_fits(edges: Edges, after: Edges) -> None:
    kept, dropped = ordered(edges, after)
    union = {node: [*deps, *kept[node]] for node, deps in edges.items()}
    assert find_cycle(union) is None
    named = {(node, one) for node in edges for one in after.get(node, ()) if one in edges and one != node}
    assert {(node, one) for node, before in kept.items() for one in before} | set(dropped) == named
    whole = {node: [*deps, *(one for at, one in named if at == node)] for node, deps in edges.items()}
    if find_cycle(whole) is None:
        assert dropped == ()
