"""Where tasks write."""

from loopwright.core.policy.graph import kept, strayed


def test_few_paths_are_kept_by_name_many_by_their_folders_and_very_many_as_everything() -> None:
    assert kept(["b", "a/c", "b"]) == ("b", "a/c")
    assert kept([*(f"src/{n}.py" for n in range(300)), "readme.md"]) == ("src/**", "readme.md")
    assert kept(f"{n}.py" for n in range(300)) == ("**",)


def test_a_task_strays_only_from_a_scope_that_it_declared() -> None:
    assert strayed(("src/a.py", "lib/b.py"), ("src/**",)) == ("lib/b.py",)
    assert strayed(("src/a.py",), ()) == ()
    assert strayed(("src/**", "lib/**"), ("src",)) == ("lib/**",)
