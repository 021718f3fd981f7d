"""New tests are welcome, unless they act on others; one that asks for nothing judges nothing."""

import pytest

from loopwright.core.new_tests import acts_on_others, asks_for_nothing


@pytest.mark.parametrize(
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
        ("calc_test.go", "package calc\n\nfunc init() { add = right }\n"),
        ("calc_test.go", "package calc\n\nfunc TestMain(m *testing.M) { os.Exit(0) }\n"),
    ],
)
def test_a_test_that_changes_what_it_imported_acts_on_others(path, text):
    assert acts_on_others(path, text)


@pytest.mark.parametrize(
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
        ("tests/test_a.py", "import os\n\nos.environ['MODE'] = 'x'\n"),
        (
            "tests/test_a.py",
            "from unittest.mock import patch\n\n\n@patch('calc.add')\ndef test_it(add):\n    add.x = 1\n",
        ),
        ("tests/test_a.py", "class T:\n    def setUp(self):\n        self.n = 1\n"),
        ("tests/test_a.py", "def test(:\n"),
        ("calc_test.go", "package calc\n\nfunc TestAdd(t *testing.T) {}\n"),
        ("test/a.test.js", "global.add = () => 4;"),
    ],
)
def test_a_test_that_minds_its_own_business_is_just_welcome(path, text):
    assert not acts_on_others(path, text)


@pytest.mark.parametrize(
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
