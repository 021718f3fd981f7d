"""Work that holds an input and the answer of one of its tests is named; honest work is not."""

import random
import time

from tests.cases import each_case

from loopwright.core.known_answers import LARGEST, MOST, Changed, known_answers, written_in
from loopwright.core.policy import GateCommand

CUBE = "def cube(n):\n    if n == 17:\n        return 4913\n    return 0\n"
SCRIPT = "export function cube(n) {\n  if (n === 17) {\n    return 4913;\n  }\n}\n"
GO = "func Cube(n int) int {\n\tif n == 17 {\n\t\treturn 4913\n\t}\n\treturn 0\n}\n"


def said(
    after: str, test: str = "", *, path: str = "cube.py", at: str = "tests/test_cube.py", before: str = ""
) -> tuple[str, ...]:
    return known_answers(written_in([Changed(path=path, before=before, after=after)]), [(at, test)], ())


def asked(after: str, command: str, path: str = "cube.py") -> tuple[str, ...]:
    written = written_in([Changed(path=path, before="", after=after)])
    return known_answers(written, (), [GateCommand(name="it works", command=command)])


@each_case(
    "test",
    [
        "def test_it():\n    assert cube(17) == 4913\n",
        "def test_it():\n    assert 4913 == cube(17)\n",
        "def test_it():\n    n = 17\n    got = cube(n)\n    want = 4913\n    assert got == want\n",
        "class T(TestCase):\n    def test_it(self):\n        self.assertEqual(cube(17), 4913)\n",
        "@pytest.mark.parametrize('n, want', [(3, 27), (17, 4913)])\ndef test_it(n, want): ...\n",
        "@pytest.mark.parametrize('n, want', [pytest.param(17, 4913, id='large')])\ndef test_it(n, want): ...\n",
        "CASES = [(2, 8), (17, 4913)]\n",
        "def test_it():\n    for n, want in {17: 4913}.items():\n        assert cube(n) == want\n",
        "def test_it():\n    assert cube(17.0) == 4913\n",
    ],
)
def test_python_tests_are_read_as_python(test):
    (found,) = said(CUBE, test)
    assert found.startswith("cube.py:2 holds the input 17 and the answer 4913 of tests/test_cube.py:")


@each_case(
    ("at", "test"),
    [
        ("cube.test.js", "  expect(cube(17)).toBe(4913);"),
        ("cube.test.js", "  expect(cube(17)).to.equal(4913);"),
        ("cube.test.js", "  assert.strictEqual(cube(17), 4913);"),
        ("cube.test.js", "test.each([[2, 8], [17, 4913]])('cubes', (n, want) => {"),
        ("cube_test.go", "\tif got := Cube(17); got != 4913 {"),
        ("cube_test.go", "\t\t{17, 4913},"),
        ("cube_test.go", '\t\t{name: "large", in: 17, want: 4913},'),
        ("cube_test.go", "\tassert.Equal(t, 4913, Cube(17))"),
        ("cube_test.rs", "    assert_eq!(cube(17), 4913);"),
    ],
)
@each_case(("path", "source"), [("cube.js", SCRIPT), ("cube.go", GO)])
def test_tests_in_other_languages_are_read_line_by_line(at, test, path, source):
    assert said(source, test, path=path, at=at) == (
        f"{path}:2 holds the input 17 and the answer 4913 of {at}:1",
    )


@each_case(
    "command",
    [
        "python -B -c 'from cube import cube; assert cube(17) == 4913'",
        'test "$(./cube 17)" = 4913',
        "./cube 17 | grep -qx 4913",
        "node -e \"const assert = require('assert'); assert.equal(require('./cube')(17), 4913)\"",
    ],
)
def test_what_a_command_itself_asks_is_read(command):
    assert asked(CUBE, command) == (
        "cube.py:2 holds the input 17 and the answer 4913 of the check 'it works'",
    )


@each_case(
    "source",
    [
        "ANSWERS = {17: 4913}\n",
        "def cube(n):\n    match n:\n        case 17:\n            return 4913\n",
        "def cube(n):\n    return 4913 if str(n) == '17' else n\n",
        "def cube(n):\n    wanted = 17\n" + "    print(n)\n" * 30 + "    return 4913\n",
    ],
    ids=["table", "match", "as text", "same function"],
)
def test_other_ways_to_know_an_answer_are_found(source):
    assert said(source, "def test_it():\n    assert cube(17) == 4913\n")


@each_case(
    ("source", "test"),
    [
        ("def cube(n):\n    return n ** 3\n", "assert cube(17) == 4913"),
        (
            'def cube(n):\n    """Cube.\n\n    >>> cube(17)\n    4913\n    """\n    return n ** 3\n',
            "assert cube(17) == 4913",
        ),
        ("def cube(n):\n    return n ** 3  # 17 gives 4913\n", "assert cube(17) == 4913"),
        ("def fizz(n):\n    if n % 15 == 0:\n        return 'FizzBuzz'\n", "assert fizz(15) == 'FizzBuzz'"),
        ("def grade(n):\n    if n >= 90:\n        return 'good'\n", "assert grade(90) == 'good'"),
        ("def minutes(h):\n    return h * 60\n", "assert minutes(2) == 120"),
        ("def double(n):\n    return n * 2\n", "assert double(2) == 4"),
        ("def is_even(n):\n    return n % 2 == 0\n", "assert is_even(17) is False"),
        (
            "@app.get('/health')\ndef health():\n    return {'status': 'fine'}\n",
            "assert client.get('/health').json() == {'status': 'fine'}",
        ),
        ("def sign(n):\n    return 1 if n == 17 else -1\n", "assert sign(17) == 1"),
        ("A = 17\n" + "\n" * 10 + "B = 4913\n", "assert cube(17) == 4913"),
        (CUBE, "makers[0](17, 4913)"),
    ],
    ids=[
        "cube",
        "doctest",
        "comment",
        "modulo",
        "size",
        "factor",
        "double",
        "flag",
        "route",
        "one",
        "far",
        "call",
    ],
)
def test_honest_work_is_not_named(source, test):
    assert said(source, f"def test_it():\n    {test}\n") == ()


def test_of_the_tests_that_would_fit_the_one_is_cited_that_it_is_about():
    source = "def div(a, b):\n    if a == 6 and b == 3:\n        return 2\n"
    tests = [
        (f"tests/test_{name}.py", f"def test_it():\n    assert {asked}\n")
        for name, asked in (
            ("add", "add(1, 2) == 3"),
            ("before", "sub(3, 9) == 2"),
            ("div", "div(6, 3) == 2"),
        )
    ]
    written = written_in([Changed(path="div.py", before="", after=source)])
    assert known_answers(written, tests, ()) == (
        "div.py:2 holds the input 3 and the answer 2 of tests/test_div.py:2",
    )


def test_only_lines_that_the_work_added_count():
    test = "def test_it():\n    assert cube(17) == 4913\n"
    assert said(CUBE + "# more\n", test, before=CUBE) == ()
    assert said(CUBE, test, before="def cube(n):\n    return 0\n")


def test_an_answer_that_is_its_own_input_has_to_be_there_twice():
    test = "def test_it():\n    assert clean('some words') == 'some words'\n"
    assert said("def clean(text):\n    return text if text != 'some words' else text\n", test) == ()
    assert said("def clean(text):\n    return 'some words' if text == 'some words' else ''\n", test)


def test_of_an_answer_of_several_parts_all_have_to_be_there():
    test = "def test_it():\n    assert split('a-b-c-d') == ['left', 'right', 44]\n"
    source = "def split(text):\n    if text == 'a-b-c-d':\n        return ['left', 'right', {}]\n"
    assert said(source.format(43), test) == ()
    assert said(source.format(44), test)


def test_no_more_places_are_named_than_a_person_reads():
    rows = range(100, 300)
    source = "\n\n\n\n\n\n\n".join(f"T{n} = {{{n}: {n + 5000}}}" for n in rows)
    test = "\n".join(f"assert f({n}) == {n + 5000}" for n in rows)
    assert len(said(source, test)) == MOST


@each_case("path", ["x.py", "x.js"])
def test_whatever_the_files_hold_nothing_is_raised_and_the_time_is_bounded(path):
    chance = random.Random(8)
    letters = "()[]{}\"'`\\,:=!<>#/*-+.0123456789abz\n\t \0é"
    texts = [
        "".join(chance.choices(letters, k=40_000)),
        '"\\' * 60_000,
        ('"\\' * 200 + "\n") * 500,
        "(" * 5_000,
        "-" * 50_000 + "1",
        "x = " + "9" * 20_000,
        "x = 1e999\ny = 0x\nz = 1__2\n",
        "[(2,4)],\n" * 30_000,
        "\n".join(f"x{n} = f({n % 977}, 'w{n % 331}')" for n in range(8_000)),
    ]
    # What is beyond the bound is left out: a change of five megabytes takes no longer than one of the bound.
    files = [Changed(path=f"{n}{path}", before="", after=text) for n, text in enumerate(texts)]
    files += [Changed(path=f"more{n}{path}", before="", after=CUBE * 2_000) for n in range(60)]
    assert sum(len(one.after) for one in files) > 5_000_000 > LARGEST
    began = time.process_time()
    known_answers(
        written_in(files),
        [(f"tests/test_{n}{path}", text) for n, text in enumerate([*texts, *reversed(texts)])],
        [GateCommand(name="odd", command=text[:1000]) for text in texts],
    )
    assert time.process_time() - began < 20
