"""A test may have the project's own folders searched for modules; any other is somebody else's concern."""

from tests.cases import each_case

from loopwright.core.new_tests import acts_on_others
from loopwright.core.search_paths import own_folders

HEAD = "import os\nimport os.path as p\nimport sys\nfrom pathlib import Path\n\n"
FOLDERS = frozenset({"", "src", "lib", "app", "tests"})


@each_case(
    "text",
    [
        'sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "src"))',
        "sys.path.insert(0, os.path.abspath(os.path.join(os.path.dirname(__file__), os.pardir)))",
        "sys.path.insert(0, str(Path(__file__).resolve().parent.parent))",
        "sys.path.append(str(Path(__file__).resolve().parents[1] / 'app'))",
        "sys.path.insert(0, Path(__file__).parent.parent.joinpath('lib').as_posix())",
        "sys.path.insert(0, p.dirname(p.dirname(p.realpath(__file__))))",
        "sys.path.insert(0, os.path.dirname(__file__) + '/../src')",
        "sys.path.insert(0, os.path.dirname(__file__))",
        "A = Path(__file__).parents[1]\nB = A / 'src'\nif str(B) not in sys.path:\n    sys.path.insert(0, str(B))",
        "from sys import path\n\npath.insert(0, str(Path(__file__).parents[1]))",
    ],
)
def test_the_projects_own_folders_may_be_searched(text):
    assert not acts_on_others("tests/test_a.py", f"{HEAD}{text}\n", FOLDERS)


@each_case(
    "text",
    [
        "sys.path.insert(0, 'src')",
        "sys.path.insert(0, os.path.join(os.path.dirname(__file__), 'fakes'))",
        "sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', '..'))",
        "sys.path.insert(0, os.path.join(os.path.dirname(__file__), '/etc'))",
        "sys.path.insert(0, os.path.join(os.path.dirname(__file__), NAME))",
        "sys.path.insert(0, str(Path(__file__).parents[9]))",
        "sys.path.insert(0, str(Path(__file__).parents[-1]))",
        "sys.path.insert(0, str(Path(__file__).parent.parent.parent))",
        "sys.path.insert(0, str(Path(__file__).parent.parent.parent.resolve()))",
        "sys.path.insert(0, os.path.abspath(os.environ['X']))",
        "sys.path.insert(0, find(__file__))",
        "sys.path.insert(0, str(Path(__file__).parent.glob('*')))",
        "sys.path.remove(str(Path(__file__).parents[1]))",
        "sys.meta_path.insert(0, str(Path(__file__).parents[1]))",
        "sys.path[0:0] = [str(Path(__file__).parents[1])]",
        "A = Path(__file__).parents[1]\nA = A / 'fakes'\nsys.path.insert(0, str(A))",
        "A = B\nB = A\nsys.path.insert(0, str(A))",
        "def str(it):\n    return 'fakes'\n\n\nsys.path.insert(0, str(Path(__file__).parents[1]))",
        "__file__ = 'fakes/a/b.py'\nsys.path.insert(0, os.path.dirname(os.path.dirname(__file__)))",
        "from fakes import Path\n\nsys.path.insert(0, str(Path(__file__).parents[1]))",
        "class A:\n    import fakes as Path\n\n\nB = Path(__file__).parents[1]\nsys.path.insert(0, str(B))",
    ],
)
def test_other_folders_and_what_cannot_be_worked_out_act_on_others(text):
    assert acts_on_others("tests/test_a.py", f"{HEAD}{text}\n", FOLDERS)


def test_a_folder_is_not_the_projects_own_where_it_has_another_module_of_a_name_that_is_taken():
    before = ["calc.py", "app/main.py", "tools/calc.py", "docs/a.md", "tests/conftest.py", "conftest.py"]
    assert own_folders(before, []) == {"", "src", "lib", "app", "docs", "tests"}
    # What is new may not take a place either, nor is a new folder known to anybody.
    assert own_folders(before, ["app/calc/__init__.py", "more/b.py"]) == {"", "src", "lib", "docs", "tests"}
    assert own_folders(before, ["src/random.py", "lib/calc.py"]) == {"app", "docs", "tests"}
