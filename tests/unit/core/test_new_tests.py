"""New tests are welcome, unless they act on others; one that asks for nothing judges nothing."""

from tests.cases import each_case
from tests.unit.core.honest_files import TESTS

from loopwright.core.new_tests import acts_on_others, asks_for_nothing, how_it_acts, only_defines


@each_case(
    ("path", "text"),
    [
        ("tests/test_a.py", "import calc\n\ncalc.add = lambda a, b: a + b\n"),
        ("tests/test_a.py", "import calc as c\n\n\ndef test_it():\n    c.sums.add = int\n"),
        ("tests/test_a.py", "from pkg import calc\n\ncalc.TABLE[2] = 4\n"),
        ("tests/test_a.py", "import sys\n\nsys.modules['calc'] = object()\n"),
        ("tests/test_a.py", "import sys\n\nsys.path.insert(0, 'tests/fakes')\n"),
        ("tests/test_a.py", "import calc\n\nsetattr(calc, 'add', int)\n"),
        ("tests/test_a.py", "from unittest.mock import patch\n\npatch('calc.add', int).start()\n"),
        ("tests/__init__.py", "import calc\n\ndel calc.check\n"),
        (
            "tests/test_a.py",
            "from unittest import mock\nimport calc\n\np = mock.patch.object(calc, 'add', int)\np.start()\n",
        ),
        (
            "tests/test_a.py",
            "from unittest.mock import patch\n\n\ndef test_a():\n    p = patch('calc.add', int)\n    p.start()\n",
        ),
        ("tests/test_a.py", "import calc\n\nvars(calc).update(add=int)\n"),
        ("tests/test_a.py", "import calc\n\n\ndef test_a():\n    vars(calc)['add'] = int\n"),
        ("tests/test_a.py", "import calc\n\n\ndef test_a():\n    calc.__dict__.update({'add': int})\n"),
        ("tests/test_a.py", "import calc\n\ndict.update(calc.__dict__, add=int)\n"),
        ("tests/test_a.py", "import calc\n\n\ndef test_a():\n    c = calc\n    c.add = int\n"),
        ("tests/test_a.py", "import calc\n\n\ndef test_a():\n    for c in (calc,):\n        c.add = int\n"),
        ("tests/test_a.py", "import calc\n\n\ndef test_a():\n    calc.__setattr__('add', int)\n"),
        ("tests/test_a.py", "import calc\n\n\ndef test_a():\n    object.__setattr__(calc, 'add', int)\n"),
        ("tests/test_a.py", "from importlib import import_module\n\nimport_module('calc').add = int\n"),
        ("tests/test_a.py", "import sys\n\n\ndef test_a():\n    sys.modules.get('calc').add = int\n"),
        ("tests/test_a.py", "import sys\n\n(c := sys.modules['calc']).add = int\n"),
        ("tests/test_a.py", "import calc\n\n\ndef test_a(n):\n    setattr(n, 'add', int)\n"),
        ("tests/test_a.py", "import os\n\nos.environ['MODE'] = 'x'\n"),
        ("tests/test_a.py", "import os\n\nos.environ.setdefault('MODE', 'x')\n"),
        (
            "tests/test_a.py",
            "import os\n\n\ndef go():\n    os.environ['MODE'] = 'x'\n    return 1\n\n\nX = go()\n",
        ),
        ("tests/test_a.py", "import pathlib\n\npathlib.Path('calc.py').write_text('')\n"),
        ("tests/test_a.py", "import pathlib\n\nX = [one.unlink() for one in pathlib.Path().glob('*')]\n"),
        (
            "tests/test_a.py",
            "import pathlib\n\nfor one in pathlib.Path().glob('*'):\n    one.write_text('')\n",
        ),
        ("tests/test_a.py", "X = open('calc.py', mode='w')\n"),
        ("tests/test_a.py", "def test_a():\n    open('tests/test_calc.py', 'w').write('')\n"),
        (
            "tests/test_a.py",
            (
                "from pathlib import Path\n\n\ndef test_a():\n"
                "    (Path(__file__).parent / 'test_calc.py').write_text('')\n"
            ),
        ),
        ("tests/test_a.py", "def test_a():\n    exec('import calc')\n"),
        ("tests/test_a.py", "import calc\n\n\ndef test_a():\n    dict.update(calc.__dict__, add=int)\n"),
        ("tests/test_a.py", "import calc\n\n\ndef test_a():\n    *calc.rest, n = [1, 2]\n"),
        ("tests/test_a.py", "import sys\n\n\ndef test_a():\n    sys.modules[__name__].n = 1\n"),
        ("tests/test_a.py", "import calc\n\ncalc.mend()\n"),
        ("tests/test_a.py", "import calc\n\nX = calc.mend()\n"),
        ("tests/test_a.py", "from helper import make_right\nimport calc\n\nX = make_right(calc)\n"),
        ("tests/test_a.py", "(lambda: 1)()\n"),
        ("tests/test_a.py", "X = (lambda: 1)()\n"),
        ("tests/test_a.py", "def go():\n    print(1)\n    undo()\n\n\ngo()\n"),
        ("tests/test_a.py", "def go(test):\n    return mend(test)\n\n\n@go\ndef test_a():\n    pass\n"),
        ("tests/test_a.py", "import calc\n\n\ndef test_a(n=calc.mend()):\n    pass\n"),
        ("tests/test_a.py", "import calc\n\n\nclass TestA:\n    calc.mend()\n"),
        ("tests/test_a.py", "import calc\n\n\n@calc.register('x')\nclass TestA:\n    pass\n"),
        ("tests/test_a.py", "import calc\n\nif __name__ != '__main__':\n    calc.mend()\n"),
        ("tests/test_a.py", "try:\n    pass\nexcept ValueError:\n    mend()\n"),
        ("tests/test_a.py", "import calc\n\nwith calc.mended():\n    pass\n"),
        ("tests/test_a.py", "match 1:\n    case _:\n        mend()\n"),
        ("tests/test_a.py", "find().add = int\n"),
        ("tests/test_a.py", "del find().add\n"),
        ("tests/test_a.py", "find().add: int = int\n"),
        ("tests/test_a.py", "import subprocess\n\nX = subprocess.run(['sed'])\n"),
        ("tests/test_a.py", "import shutil\n\nX = shutil.unpack_archive('a')\n"),
        ("tests/test_a.py", "X = globals()\n"),
        ("tests/test_a.py", "pytest_plugins = ['mend']\n"),
        ("tests/test_a.py", "def pytest_runtest_makereport(item):\n    pass\n"),
        ("tests/test_a.py", "import atexit\n\n\n@atexit.register\ndef go():\n    pass\n"),
        ("tests/test_a.py", "import atexit\n\n\ndef test_a():\n    atexit.register(print)\n"),
        ("tests/test_a.py", "import gc\n\n\ndef test_a():\n    gc.get_referrers(1)[0]['add'] = int\n"),
        ("tests/test_a.py", "import pytest\n\nm = pytest.MonkeyPatch()\nm.setattr('calc.add', int)\n"),
        (
            "tests/test_a.py",
            "import pytest\n\n\ndef test_a():\n    pytest.MonkeyPatch().setattr('calc.add', int)\n",
        ),
        ("tests/test_a.py", "import os\n\n\ndef setup_module():\n    os.environ['MODE'] = 'x'\n"),
        ("tests/test_a.py", "import shutil\n\n\ndef setUpModule():\n    shutil.copy2('a', 'calc.py')\n"),
        (
            "tests/test_a.py",
            (
                "import os\nimport pytest\n\n\n@pytest.fixture(autouse=True, scope='session')\n"
                "def go():\n    os.environ['MODE'] = 'x'\n    yield\n"
            ),
        ),
        ("tests/__init__.py", "import calc\n\ncalc.__dict__.update(add=int)\n"),
        ("tests/__init__.py", "import calc\n\nMODE = 1\n"),
        ("tests/unit/__init__.py", "def load_tests(loader, tests, pattern):\n    return tests\n"),
        ("tests/test_a.py", "def test(:\n"),
        ("test/a.test.js", "const calc = require('../calc');\ncalc.add = (a, b) => a + b;\n"),
        (
            "test/a.test.mjs",
            "import * as calc from '../calc.mjs';\ntest('x', () => {\n  calc.table[2] = 4;\n});\n",
        ),
        ("test/a.test.js", "const calc = require('../calc');\nObject.assign(calc, { add });\n"),
        (
            "test/a.test.js",
            "const assert = require('node:assert');\nbefore(() => { assert.equal = () => {}; });\n",
        ),
        ("test/a.test.js", "delete require.cache[require.resolve('../calc')];\n"),
        ("test/a.test.js", "const x = fs.writeFileSync('calc.js', '');\n"),
        ("test/a.test.js", "require('../mend');\n"),
        ("test/a.test.js", "Object.is = () => true;\n"),
        ("test/a.test.js", "global.expect = () => always;\n"),
        ("test/a.test.ts", "(async () => {\n  await mend();\n})();\n"),
        ("test/a.test.ts", "if (true) {\n  mend();\n}\n"),
        ("calc_test.go", "package calc\n\nvar _ = mend()\n"),
        ("calc_test.go", "package calc\n\nvar x = func() int {\n\tadd = right\n\treturn 1\n}()\n"),
        ("calc_test.go", "package calc\n\nvar x = func() int { add = right; return 1 }()\n"),
        ("calc_test.go", "package calc\n\nfunc init() { add = right }\n"),
        ("calc_test.go", "package calc\n\nfunc TestMain(m *testing.M) { os.Exit(0) }\n"),
    ],
)
def test_a_test_that_changes_what_it_imported_acts_on_others(path, text):
    assert acts_on_others(path, text)


@each_case(
    ("path", "text"),
    [
        (
            "tests/test_a.py",
            "import calc\n\n\ndef test_it():\n    got = calc.add(1, 2)\n    assert got == 3\n",
        ),
        (
            "tests/test_a.py",
            "import calc\n\n\ndef test_it(monkeypatch):\n    monkeypatch.setattr(calc, 'add', int)\n",
        ),
        ("tests/test_a.py", "import os\n\n\ndef test_a():\n    os.environ['MODE'] = 'x'\n"),
        (
            "tests/test_a.py",
            "from unittest.mock import patch\n\n\n@patch('calc.add')\ndef test_it(add):\n    add.x = 1\n",
        ),
        ("tests/test_a.py", "class T:\n    def setUp(self):\n        self.n = 1\n"),
        ("tests/test_a.py", "import calc\n\n\ndef test_a(calc):\n    calc.add = 1\n"),
        (
            "tests/test_a.py",
            "import calc\n\n\ndef test_a():\n    assert sorted(vars(calc)) == dict(calc.__dict__)\n",
        ),
        ("tests/test_a.py", "class A:\n    def __init__(self, **k):\n        setattr(self, 'a', k)\n"),
        ("calc_test.go", 'package calc\n\nvar _ = Describe("x", func() {\n})\n'),
        ("tests/test_a.py", "import unittest\n\nassert len('a') == 1\nraise unittest.SkipTest('not here')\n"),
        ("tests/test_a.py", "A, B = 1, 2\nTEXT = open('data.txt').read()\nKEY = lambda n: go(n)\n"),
        ("tests/test_a.py", "import operator\n\n\ndef test_a(d):\n    operator.setitem(d, 1, 2)\n"),
        (
            "tests/test_a.py",
            "import a\n\n\ndef test_a():\n    f = e\n    e = d\n    d = c\n    c = b\n    b = a.x\n",
        ),
        ("calc_test.go", "package calc\n\nfunc TestAdd(t *testing.T) {}\n"),
        ("test/a.test.js", "global.add = () => 4;"),
    ],
)
def test_a_test_that_minds_its_own_business_is_just_welcome(path, text):
    assert not acts_on_others(path, text)


@each_case("path", TESTS)
def test_tests_as_people_write_them_are_just_welcome(path):
    assert not acts_on_others(path, TESTS[path])


@each_case(
    ("path", "text", "nothing"),
    [
        ("tests/test_a.py", "def test_it():\n    assert True\n", True),
        ("tests/test_a.py", "def test_it():\n    assert 1 == 1\n", True),
        ("tests/test_a.py", "import calc\n\n\ndef test_it():\n    calc.add(1, 2)\n", True),
        ("tests/test_a.py", "def test_it():\n    assert add(1, 2) == 3\n", False),
        ("tests/test_a.py", "def test_it(self):\n    self.assertEqual(add(1, 2), 3)\n", False),
        ("tests/test_a.py", "def test_it():\n    with pytest.raises(ValueError):\n        add()\n", False),
        ("tests/test_a.py", "def test_it():\n    if add(1, 2) != 3:\n        raise ValueError\n", False),
        ("tests/test_a.py", "def test(:\n", False),
        ("a.test.js", "test('x', () => {});", True),
        ("a.test.js", "test('x', () => { expect(add(1, 2)).toBe(3); });", False),
        ("a_test.go", "func TestAdd(t *testing.T) {}", True),
        ("a_test.go", 'func TestAdd(t *testing.T) { if Add(1, 2) != 3 { t.Fatal("no") } }', False),
    ],
)
def test_a_test_without_anything_that_could_fail_asks_for_nothing(path, text, nothing):
    assert asks_for_nothing(path, text) is nothing


@each_case(
    ("path", "text", "told"),
    [
        ("a.py", "import calc\n\ncalc.add = int\n", "a.py, line 3: calc.add = int"),
        ("a.py", "import calc\n\n\nclass A:\n    n = 1\n    calc.mend()\n", "a.py, line 6: calc.mend()"),
        ("a.py", "try:\n    pass\nexcept ValueError:\n    mend()\n", "a.py, line 4: mend()"),
        (
            "a.py",
            "import calc\n\n\ndef test_a(n=calc.mend()):\n    go()\n",
            "a.py, line 4: def test_a(n=calc.mend()):",
        ),
        ("a.py", "def test_a():\n    exec('1')\n", "a.py, line 2: exec('1')"),
        ("a.py", "def go():\n    undo()\n\n\nX = go()\n", "a.py, line 2: undo()"),
        ("a.py", f"X = {'a' * 200}()\n", f"a.py, line 1: X = {'a' * 96}…"),
        ("t/__init__.py", "import a\n\nMODE = 1\n", "t/__init__.py, line 3: MODE = 1"),
        ("a.py", "def test(:\n", "a.py cannot be read"),
        ("a.test.js", "const x = 1;\n\nrequire('../mend');\n", "a.test.js, line 3: require('../mend');"),
        ("a.test.js", "let x;\ndelete require.cache[x];\n", "a.test.js, line 2: delete require.cache[x];"),
        ("a.test.js", "const c = require('../c');\nc.add = 1;\n", "a.test.js, line 2: c.add = 1;"),
        ("a_test.go", "package a\n\nfunc init() { b = 1 }\n", "a_test.go, line 3: func init() { b = 1 }"),
        ("a.py", "X = 1\n", ""),
    ],
)
def test_where_a_test_acts_on_others_is_told(path, text, told):
    assert how_it_acts(path, text) == told


@each_case(
    ("text", "only"),
    [
        (
            "import pytest\nfrom calc import Calc\n\nN = 3\n\n\n@pytest.fixture\ndef calc():\n    return Calc(N)\n",
            True,
        ),
        ("import calc\n\ncalc.add = int\n", False),
        ("if True:\n    def pytest_runtest_makereport(item):\n        pass\n", False),
        ("def pytest_generate_tests(metafunc):\n    pass\n", False),
        ("from green import pytest_runtest_makereport\n", False),
        ("from green import go as pytest_runtest_makereport\n", False),
        ("from green import *\n", False),
        ("pytest_plugins: list = ['green']\n", False),
        ("def test(:\n", False),
    ],
)
def test_a_conftest_only_defines_where_nothing_of_it_concerns_the_runner(text, only):
    assert only_defines("tests/cb/conftest.py", text) is only
