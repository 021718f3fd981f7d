"""Where imports of a source file may lead."""

from tests.cases import each_case

from loopwright.core.integrity.imports import files_at, imported


@each_case(
    ("path", "text", "places"),
    [
        ("a/b.py", "import c.d", {"c/d", "a/c/d"}),
        ("b.py", "import c", {"c"}),
        ("b.py", "import c,", {"c"}),
        ("a/b.py", "from . import c", {"a", "a/c"}),
        ("a/b/c.py", "from ..d import e", {"a/d", "a/d/e"}),
        ("a/b.ts", "import x from './c'", {"a/c"}),
        ("a/b.ts", "import x from '@/lib/c'", {"lib/c"}),
        ("a/b.ts", "import x from 'react'", set()),
        ("a/b.txt", "import c", set()),
    ],
)
def test_an_import_leads_to_files_of_the_project(path: str, text: str, places: set[str]) -> None:
    assert set(imported(path, text)) == places


def test_an_import_with_an_ending_means_that_file() -> None:
    assert files_at("a/b.ts") == ("a/b.ts",)
    assert "a/b.py" in files_at("a/b")
