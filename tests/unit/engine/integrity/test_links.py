"""Links that lead out of the project."""

from tests.cases import each_case

from loopwright.engine.integrity.suspicion import is_outside


@each_case(
    ("path", "target", "outside"),
    [
        ("link", "/etc/passwd", True),
        ("link", "../elsewhere", True),
        ("a/link", "../../elsewhere", True),
        ("a/link", "..", False),
        ("link", "..", True),
        ("a/link", "../b/file", False),
        ("a/link", "b/../../..", True),
        ("link", "..name/file", False),
        ("link", "file", False),
    ],
)
def test_a_link_leads_out_when_what_it_names_is_not_in_the_tree(
    path: str, target: str, outside: bool
) -> None:
    assert is_outside(path, target) is outside
