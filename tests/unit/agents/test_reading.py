"""Which command lines only look."""

from tests.cases import each_case

from loopwright.adapters.agents.reading import only_reads


@each_case(
    "line",
    [
        "cat hello.txt",
        "ls -la src && cat src/a.py | head -20",
        "rg -n 'class Foo' src",
        "sed -n '1,40p' src/a.py",
        "git log --oneline -5",
        "git --no-pager diff HEAD~1",
        "find . -name '*.py'",
        "sort names | uniq -c",
        "grep -rn x . 2>/dev/null",
    ],
)
def test_looking_is_known_as_such(line: str) -> None:
    assert only_reads(line)


@each_case(
    "line",
    [
        "",
        "make dist",
        "cat a > b",
        "cat a | tee b",
        "cat $(make dist)",
        "cat x; make dist",
        "cat x & make dist",
        "FOO=1 cat x",
        "find . -name x -delete",
        "find . -type f -exec rm {} +",
        "rg --pre ./evil x",
        "fd -x rm",
        "sort -uo out in",
        "uniq in out",
        "sed -i s/a/b/ x",
        "sed -n '1w out' x",
        "git -c core.pager=./evil log",
        "git diff --output=x",
        "git grep -O./evil x",
        "git grep -nO./evil x",
        "git grep --op=./evil x",
        "git grep --open-files-in-pager=./evil x",
        "git commit -m x",
        "awk 'BEGIN{system(1)}'",
    ],
)
def test_what_may_do_more_than_look_is_not(line: str) -> None:
    assert not only_reads(line)
