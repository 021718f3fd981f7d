"""Work that may only look right to its tests is named; honest work is not."""

from tests.cases import each_case
from tests.unit.core.honest_files import SOURCES

from loopwright.core.new_tests import how_it_acts
from loopwright.core.seeming import ASKS, CALLER, CHANGES, DEEP, ENDS, EQUAL, LOADS, READS, seeming
from loopwright.core.silencing import silenced, unseen_by


def said(source: str, path: str = "calc.py", before: str = "") -> list[str]:
    return [words for _, words in seeming(path, before, source)]


@each_case(
    ("source", "words"),
    [
        ("import sys\nX = 'pytest' in sys.modules\n", ASKS),
        ("import os\nX = os.environ.get('PYTEST_CURRENT_TEST')\n", ASKS),
        ("import sys\nX = any('unittest' in one for one in sys.argv)\n", ASKS),
        ("import sys\nX = sys.modules.get('_pytest.python')\n", LOADS),
        ("import sys\nX = sys.modules['pytest']\n", LOADS),
        ("from importlib import import_module\nX = import_module('pytest')\n", LOADS),
        ("import unittest\n", LOADS),
        ("from _pytest.python import Function\n", LOADS),
        ("import sys\ndef f():\n    return sys._getframe(1)\n", CALLER),
        ("import inspect\ndef f():\n    return inspect.stack()\n", CALLER),
        ("class A:\n    def __eq__(self, other):\n        return True\n", EQUAL),
        ("class A:\n    __eq__ = lambda self, other: True\n", EQUAL),
        ("class A:\n    def __eq__(self, *other):\n        return True\n", EQUAL),
        ("class A:\n    def __eq__(*both):\n        return True\n", EQUAL),
        ("class A:\n    def __eq__(self, o):\n        return o is o\n", EQUAL),
        ("class A:\n    def __eq__(self, o):\n        return o == 5 or not False\n", EQUAL),
        ("class A:\n    def __eq__(self, o):\n        return o != object()\n", EQUAL),
        ("class A:\n    def __eq__(self, o):\n        return isinstance(o, object)\n", EQUAL),
        ("class A:\n    def __eq__(self, o):\n        print(o)\n        return Yes()\n", EQUAL),
        ("class A:\n    def __ne__(self, o):\n        return False\n", EQUAL),
        ("class A:\n    def __contains__(self, o):\n        return True\n", EQUAL),
        ("class A(type):\n    def __instancecheck__(cls, o):\n        return True\n", EQUAL),
        ("def yes(*a):\n    return True\n\n\nclass A:\n    __eq__ = yes\n", EQUAL),
        ("A = type('A', (int,), {'__eq__': lambda s, o: True})\n", EQUAL),
        ("class A:\n    pass\n\n\nA.__eq__ = lambda s, o: True\n", EQUAL),
        ("class A:\n    pass\n\n\nsetattr(A, '__eq__', lambda s, o: True)\n", EQUAL),
        ("import math\n\nmath.isclose = lambda *a, **k: True\n", CHANGES),
        ("import math as m\n\nsetattr(m, 'isclose', max)\n", CHANGES),
        ("from os import path\n\npath.exists = bool\n", CHANGES),
        ("import math\n\nvars(math)['isclose'] = max\n", CHANGES),
        ("import math\n\nmath.__dict__.update(isclose=max)\n", CHANGES),
        ("import math\n\n\ndef add(a, b):\n    math.isclose = max\n", CHANGES),
        ("import sys\n\nsys.modules['math'].isclose = max\n", CHANGES),
        ("import sys\n\nsys.modules['math'] = find()\n", CHANGES),
        ("import builtins\n\nbuiltins.abs = lambda n: 0\n", CHANGES),
        ("__builtins__['abs'] = max\n", CHANGES),
        ("from importlib import import_module\n\nimport_module(name()).add = max\n", CHANGES),
        ("from fractions import Fraction\n\nFraction.__add__ = max\n", CHANGES),
        ("import numpy as np\n\nnp.allclose = max\n", CHANGES),
        ("import calc\n\ncalc.add = lambda a, b: a + b\n", CHANGES),
        ("from . import calc\n\n\ndef right(a, b):\n    return a + b\n\n\ncalc.add = right\n", CHANGES),
        ("import os\nos._exit(0)\n", ENDS),
        ("import atexit, os\natexit.register(os._exit, 0)\n", ENDS),
        ("from os import _exit\n", ENDS),
        ("import sys\nsys.exit(0)\n", ENDS),
        ("try:\n    raise SystemExit\nfinally:\n    pass\n", ENDS),
        ("import sys\n\n\ndef mul(a, b):\n    sys.exit(0)\n", ENDS),
        ("import sys\n\n\ndef mul(a, b):\n    sys.exit()\n", ENDS),
        ("import sys as s\n\n\ndef mul(a, b):\n    s.exit(False)\n", ENDS),
        ("from sys import exit as e\n\n\ndef mul(a, b):\n    e()\n", ENDS),
        ("import sys\n\n\ndef mul(a, b):\n    code = 0\n    sys.exit(code)\n", ENDS),
        ("import sys\n\n\ndef mul(a, b):\n    sys.exit(int())\n", ENDS),
        ("import sys\n\n\ndef mul(a, b):\n    sys.exit(1 - 1)\n", ENDS),
        ("import sys\n\nend = sys.exit\n", ENDS),
        ("import sys\n\n\ndef mul(a, b):\n    getattr(sys, 'exit')(0)\n", ENDS),
        ("def mul(a, b):\n    quit()\n", ENDS),
        ("class A:\n    def mul(self):\n        exit(0)\n", ENDS),
        ("def add(a, b):\n    raise SystemExit\n", ENDS),
        ("def add(a, b):\n    raise SystemExit(0) from None\n", ENDS),
        ("E = SystemExit\n", ENDS),
        ("class Done(SystemExit):\n    pass\n", ENDS),
        ("mul = lambda a, b: exit()\n", ENDS),
        ("import os\n\n\ndef mul(a, b):\n    os.kill(os.getpid(), 15)\n", ENDS),
        ("import os\n\n\ndef mul(a, b):\n    os.execvp('true', ['true'])\n", ENDS),
        ("import os\n\n\ndef main():\n    os._exit(0)\n", ENDS),
        ("if __name__ != '__main__':\n    exit()\n", ENDS),
        ("def mul(a, b):\n    exit()\n\n\nif __name__ == '__main__':\n    print(mul(2, 3))\n", ENDS),
        ("from pathlib import Path\nX = Path('tests/test_calc.py').read_text()\n", READS),
        ("from pathlib import Path\nX = Path('tests') / 'test_calc.py'\n", READS),
    ],
)
def test_what_work_does_about_its_tests_is_found_in_python(source, words):
    assert said(source) == [words]


@each_case(
    ("path", "source", "words"),
    [
        ("a.js", "const x = process.env.JEST_WORKER_ID;", ASKS),
        ("a.ts", "if (process.env.NODE_ENV === 'test') {", ASKS),
        ("a.js", "if (process.env['NODE_ENV'] == \"test\") {", ASKS),
        ("a.js", "const { expect } = require('vitest');", LOADS),
        ("a.mjs", "import { test } from 'node:test';", LOADS),
        ("a.js", "assert.strictEqual = () => {};", CHANGES),
        ("a.js", "Object.assign(assert, { equal() {} });", CHANGES),
        ("a.js", "globalThis.expect = () => always;", CHANGES),
        ("a.js", "const a = require('node:assert');\na.strictEqual = () => {};", CHANGES),
        ("a.js", "const { strict: s } = require('assert');\ns.equal = () => {};", CHANGES),
        ("a.mjs", "import * as a from 'node:assert/strict';\nObject.assign(a, { equal() {} });", CHANGES),
        ("a.mjs", "import a, { equal as e } from 'assert';\na['equal'] = () => {};", CHANGES),
        ("a.js", "const a = require('assert');\nconst b = a;\nb.equal = () => {};", CHANGES),
        ("a.js", "require('assert').equal = () => {};", CHANGES),
        ("a.js", "Object.is = () => true;", CHANGES),
        ("a.js", "Array.isArray = () => true;", CHANGES),
        ("a.js", "Object.defineProperty(Array.prototype, 'length', {});", CHANGES),
        ("a.js", "globalThis.Object.is = () => true;", CHANGES),
        ("a.js", "process.exit(0);", ENDS),
        ("a.js", "exports.mul = (a, b) => {\n  process.exit(0);\n};", ENDS),
        ("a.js", "exports.mul = () => process.exit( );", ENDS),
        ("a.js", "  globalThis.process.exit(0);", ENDS),
        ("a.js", "const { exit: e } = process;\nfunction mul() {\n  e(0);\n}", ENDS),
        ("a.mjs", "import { exit } from 'node:process';\nexport function mul() {\n  exit();\n}", ENDS),
        ("a.mjs", "import p from 'process';\nexport const mul = () => p.exit();", ENDS),
        ("a.js", "const p = require('node:process');\nfunction mul() {\n  p.exit(0);\n}", ENDS),
        ("a.js", "process.exitCode = 0;", ENDS),
        ("a.ts", "  Deno.exit(0);", ENDS),
        ("a.go", "package calc\n\nfunc Mul(a, b int) int { os.Exit(0); return 1 }", ENDS),
        ("src/lib.rs", "    std::process::exit(0);", ENDS),
        ("lib/a.rb", "  exit!", ENDS),
        ("a.js", "const text = fs.readFileSync('test/a.test.js', 'utf8');", READS),
        ("a.go", "\tif testing.Testing() {", ASKS),
        ("a.go", '\tif flag.Lookup("test.v") != nil {', ASKS),
        ("a.go", '\t"testing"', LOADS),
        ("a.go", "func init() { os.Exit(0) }", ENDS),
        ("a.rs", "    if cfg!(test) { 4 } else { 0 }", ASKS),
    ],
)
def test_what_work_does_about_its_tests_is_found_line_by_line_elsewhere(path, source, words):
    assert said(source, path) == [words]


@each_case(
    ("path", "source"),
    [
        ("a.py", "class A:\n    def __eq__(self, other):\n        return self.n == other.n\n"),
        ("a.py", "import sys\n\nif __name__ == '__main__':\n    sys.exit(0)\n"),
        ("a.py", "import sys\n\n\ndef main():\n    sys.exit(0)\n"),
        ("a/__main__.py", "import sys\n\nsys.exit()\n"),
        ("a.py", "import os\n\nif os.fork() == 0:\n    os._exit(1)\n"),
        ("a.py", "import sys\nsys.exit(main())\n"),
        ("a.py", "COMMAND = ['python', '-m', 'pytest']\n"),
        ("a.py", "URL = '/test/abc.json'\nTEXT = 'see tests/test_a.py for more'\n"),
        ("a.py", "# 'pytest' in sys.modules\n"),
        ("a.js", "assert.strictEqual(add(2, 2), 4);"),
        ("a.js", "const assert = require('node:assert');"),
        ("a.js", "// process.env.JEST_WORKER_ID"),
        ("a.go", "package main\n\nfunc main() { os.Exit(0) }"),
        ("a.rs", "#[cfg(test)]"),
        ("notes.md", "process.exit(0)"),
        ("a.json", '{"file": "tests/test_a.py"}'),
    ],
)
def test_honest_work_is_not_named(path, source):
    assert said(source, path) == []


@each_case("path", SOURCES)
def test_sources_as_people_write_them_are_not_named(path):
    assert list(seeming(path, "", SOURCES[path])) == []


@each_case(
    ("path", "line", "command", "words"),
    [
        ("a.py", "x: int = f()  # type: ignore[assignment]", "mypy .", ["silences mypy"]),
        ("a.py", "import os  # noqa: F401", "python -m ruff check .", ["silences ruff"]),
        ("a.py", "    pass  # pragma: no cover", "pytest --cov --cov-fail-under=90", ["silences cov"]),
        ("a.ts", "// eslint-disable-next-line no-undef", "npx eslint src", ["silences eslint"]),
        ("a.ts", "// @ts-nocheck", "npx tsc --noEmit", ["silences tsc"]),
        ("a.go", "x := f() //nolint", "golangci-lint run", ["silences golangci-lint"]),
        ("a.py", '# mypy: disable-error-code="return-value"', "mypy a.py", ["silences mypy"]),
        ("a.py", "# mypy: disallow-untyped-defs=False", "mypy a.py", ["silences mypy"]),
        ("a.py", "# mypy: disallow-untyped-defs", "mypy a.py", []),
        ("a.py", "# mypy: strict", "python -m mypy a.py", []),
        ("a.py", "@no_type_check", "mypy a.py", ["silences mypy"]),
        ("a.py", "if not TYPE_CHECKING:", "mypy a.py", ["silences mypy"]),
        ("a.py", "if TYPE_CHECKING:", "mypy a.py", []),
        ("a.py", "# pyright: basic", "npx pyright", ["silences pyright"]),
        ("a.py", "# pyright: strict", "npx pyright", []),
        ("a.py", "# fmt: off", "black --check .", ["silences black"]),
        ("a.py", "# fmt: off", "ruff format --check .", ["silences ruff"]),
        ("a.py", "# isort: skip_file", "isort --check .", ["silences isort"]),
        ("a.py", "x = f()  # ty: ignore", "uvx ty check", ["silences ty"]),
        ("a.ts", "/* eslint no-undef: 0 */", "npx eslint src", ["silences eslint"]),
        ("a.ts", '/* eslint no-undef: "off" */', "node_modules/.bin/eslint src", ["silences eslint"]),
        ("a.ts", '/* eslint no-undef: "error" */', "npx eslint src", []),
        ("a.rs", "#[allow(dead_code)]", "cargo clippy -- -D warnings", ["silences clippy", "silences cargo"]),
        ("a.py", "x = 1  # noqa", "pytest tests/ruff.py", []),
        ("a.py", "x: int = f()  # type: ignore", "ruff check .", []),
        ("a.py", "x = 1", "mypy .", []),
        ("a.md", "# type: ignore", "mypy .", []),
    ],
)
def test_a_checker_that_judges_and_is_silenced_is_named(path, line, command, words):
    assert [one for _, one in silenced(path, "", f"{line}\n", [command])] == words
    assert not list(silenced(path, f"{line}\n", f"{line}\n", [command])), "it was there before"


def test_only_lines_that_the_work_added_are_looked_at():
    before = "import unittest\n"
    assert said("import unittest\nX = 1\n", before=before) == []
    assert said(before, before=before) == []
    assert list(seeming("calc.py", before, "import unittest\nimport os\nos._exit(0)\n")) == [(3, ENDS)]


@each_case(
    ("path", "command", "words"),
    [
        ("calc.pyi", "python -m mypy .", "stands in the place of the source that it is beside, for mypy"),
        ("pkg/a.pyi", "pyright", "stands in the place of the source that it is beside, for pyright"),
        ("typings/calc.pyi", "pyright", "stands in the place of the source that it is beside, for pyright"),
        (
            "calc-stubs/__init__.pyi",
            "mypy .",
            "stands in the place of the source that it is beside, for mypy",
        ),
        ("typings/other.pyi", "pyright", None),
        ("calc.pyi", "ruff check .", None),
        ("calc.py", "mypy .", None),
    ],
)
def test_a_stub_beside_the_source_is_named_where_a_type_checker_judges(path, command, words):
    assert unseen_by(path, {"calc.py", "calc.pyi", "src/pkg/a.py"}, [command]) == words


def test_what_is_nested_too_deeply_to_be_read_is_named():
    assert DEEP in said(f"import math\nmath{'.a' * 1500} = 1\n")
    assert said(f"X = {' + '.join(['1'] * 900)}\nimport math\nmath.isclose = max\n") == [CHANGES]


def test_python_that_cannot_be_read_is_read_line_by_line():
    assert said("def f(:\n  os.environ['PYTEST_CURRENT_TEST']\n") == [ASKS]


@each_case(
    ("path", "text"),
    [
        ("src/wasm.js", f"export const WASM = '{'ab12' * 60_000}'\n"),
        ("src/open.js", "{\n" * 120_000),
        ("src/load.js", "import {" * 30_000),
        ("src/wide.js", "import" + " " * 250_000),
        ("src/long.py", "\n".join(f"def f{n}():\n    return f{n + 1}()" for n in range(4_000))),
    ],
)
def test_source_of_one_word_one_bracket_or_one_chain_is_read_in_a_moment(path: str, text: str) -> None:
    assert list(seeming(path, "", text)) == [], "it took hours, and the test would be ended"


def test_a_new_test_with_thousands_of_imports_is_read_in_a_moment() -> None:
    imports = "".join(f"import m{n} from './m{n}'\n" for n in range(9_000))
    assert how_it_acts("a.test.js", imports, ()) == ""
    assert how_it_acts("a.test.mts", f"{imports}m7.mend = () => 1\n", ()).startswith("a.test.mts, line 9001")
