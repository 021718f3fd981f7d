"""Honest new tests and sources as people write them: nothing of it may be taken for more than it is."""

TESTS = {
    "tests/test_plain.py": '''
"""The shop's prices."""

from __future__ import annotations

import json
import re
from collections import namedtuple
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

import shop
from shop.prices import Price, price_of

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("till")]
HERE = Path(__file__).resolve().parent
DATA = json.loads((HERE / "data" / "prices.json").read_text(encoding="utf-8"))
WORD = re.compile(r"\\w+", re.IGNORECASE)
NOW = datetime(2024, 1, 2, tzinfo=timezone.utc) + timedelta(days=1)
Point = namedtuple("Point", "x y")
CASES = [(Decimal("1.50"), Price(150)), (Decimal(2), Price(200))]
NAMES = sorted({name.lower() for name in DATA} | set("abc".split()))
EDGES = {n: str(n) * 2 for n in range(3)}
CASES.append((Decimal(3), Price(300)))
CASES += [(Decimal(4), Price(400))]


class Row(NamedTuple):
    name: str
    price: int = 0


@dataclass
class Basket:
    rows: list[Row] = field(default_factory=list)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Basket) and self.rows == other.rows


@pytest.fixture(scope="module")
def till(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("till")
    (folder / "till.json").write_text("{}")
    yield folder


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_MODE", "quiet")
    monkeypatch.setattr(shop, "open_at", lambda: 9)


@pytest.mark.parametrize(("text", "price"), CASES, ids=[str(one) for one, _ in CASES])
def test_prices(text: Decimal, price: Price) -> None:
    assert price_of(text) == price


@pytest.mark.skipif(date.today().year < 2000, reason="too early")
@pytest.mark.parametrize("n", [pytest.param(1, marks=pytest.mark.xfail), 2])
def test_more(n: int, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1")
    with open(tmp_path / "out.json", "w") as file:
        file.write("{}")
    with pytest.raises(ValueError, match="no"):
        price_of(-n)
''',
    "tests/test_optional.py": """
import os
import sys

import pytest

np = pytest.importorskip("numpy")
yaml = pytest.importorskip("yaml", reason="needs yaml")

try:
    import orjson
except ImportError:
    orjson = None

if sys.version_info < (3, 11):
    pytest.skip("needs 3.11", allow_module_level=True)

MATRIX = np.array([[1, 2], [3, 4]])
CI = os.environ.get("CI", "") == "true"
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
needs_orjson = pytest.mark.skipif(orjson is None, reason="no orjson")


@needs_orjson
def test_dump(monkeypatch):
    monkeypatch.setenv("A", "1")
    os.environ["B"] = "2"
    assert orjson.dumps({}) == b"{}"
""",
    "tests/test_patched.py": """
from unittest import TestCase, main, mock
from unittest.mock import MagicMock, call, patch

import pytest

import mail
from mail import Sender

SENDER = Sender("a@b")
EXPECTED = [call(1), call(2)]
FAKE = MagicMock(spec=Sender)
FAKE.send.return_value = True


class SendTest(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.sender = Sender("c@d")

    def setUp(self):
        self.patcher = patch("mail.connect")
        self.connect = self.patcher.start()
        self.addCleanup(self.patcher.stop)
        self.now = mock.patch.object(mail, "now", return_value=3).start()

    def tearDown(self):
        mock.patch.stopall()

    def test_it(self):
        with patch.object(mail, "add", return_value=1), mock.patch.dict("os.environ", {"A": "1"}):
            self.assertEqual(self.sender.send(), 1)

    @patch("mail.connect", autospec=True)
    def test_more(self, connect):
        connect.return_value.send.side_effect = [1, 2]
        connect.attribute = 3
        self.assertTrue(self.sender.send())


def test_mocker(mocker):
    send = mocker.patch("mail.Sender.send")
    send.return_value = 4
    assert mail.Sender("x").send() == 4


if __name__ == "__main__":
    main()
""",
    "tests/test_cli.py": """
import subprocess
import sys

import pytest
from click.testing import CliRunner
from tool.cli import build_parser, cli, main

runner = CliRunner()
PARSER = build_parser()


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    config = folder / "server.toml"
    config.write_text("port = 0")
    process = subprocess.Popen([sys.executable, "-m", "tool", "serve", str(config)])
    yield process
    process.terminate()


def test_version():
    result = runner.invoke(cli, ["--version"])
    assert result.exit_code == 0


def test_exit(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["tool", "--help"])
    with pytest.raises(SystemExit) as error:
        main()
    assert error.value.code == 0
    assert "usage" in capsys.readouterr().out
""",
    "tests/test_api.py": """
import logging
import warnings

from fastapi.testclient import TestClient
from shop.api import create_app
from shop.db import get_session

log = logging.getLogger(__name__)
warnings.simplefilter("ignore", DeprecationWarning)
app = create_app(testing=True)
app.config["DEBUG"] = True
app.config.update(TESTING=True)
client = TestClient(app)


def test_health():
    app.dependency_overrides[get_session] = lambda: None
    assert client.get("/health").json() == {"ok": True}
""",
    "tests/test_properties.py": """
import random
import string

from hypothesis import given, settings
from hypothesis import strategies as st
from text.wrap import wrap

random.seed(4)
words = st.text(alphabet=string.ascii_letters, min_size=1).map(str.lower)
lines = st.lists(words, max_size=5)


def expected(text, width):
    return [text[n : n + width] for n in range(0, len(text), width)]


ALL = {text: expected(text, 3) for text in ("abcdef", "abc")}


@settings(max_examples=50)
@given(lines)
def test_nothing_is_lost(given_lines):
    assert "".join(wrap(" ".join(given_lines))) == " ".join(given_lines)
    assert ALL
""",
    "tests/test_generated.py": """
import itertools

from grid import Grid, sides

SIZES = list(itertools.product(range(3), repeat=2))


def pytest_generate_tests(metafunc):
    if "size" in metafunc.fixturenames:
        metafunc.parametrize("size", SIZES)


class TestGrid:
    SIZE = 3

    def setup_method(self):
        self.grid = Grid(self.SIZE)

    def test_size(self, size):
        self.grid.cells = {size: 1}
        assert sides(self.grid) == 4


for name in ("a", "b"):
    SIZES.append((name, name))
""",
    "tests/test_env.py": """
import os

import pytest

import service


@pytest.fixture(scope="module", autouse=True)
def environment():
    before = dict(os.environ)
    os.environ["SERVICE"] = "on"
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.mark.asyncio
async def test_it():
    assert await service.ready()
""",
    "tests/__init__.py": '"""Tests of the shop."""\n\nfrom tests import data\n\n__all__ = ["data"]\n',
    "tests/unit/__init__.py": "",
    "src/price.test.ts": """
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Price } from './price';
import * as prices from './price';

vi.mock('./rates', () => ({ rate: () => 2 }));

const CASES: Array<[string, number]> = [
  ['1.50', 150],
  ['2', 200],
];
let price: Price;

interface Row {
  name: string;
}

beforeEach(() => {
  price = prices.make(3);
});
afterEach(() => vi.restoreAllMocks());

describe('a price', () => {
  it.each(CASES)('%s', (text, cents) => {
    vi.spyOn(prices, 'now').mockReturnValue(3);
    expect(prices.parse(text)).toEqual(cents);
  });
});

for (const [text, cents] of CASES) {
  it(`reads ${text}`, () => {
    expect(prices.parse(text)).toBe(cents);
  });
}
""",
    "src/cart.test.js": """
'use strict';
const axios = require('axios');
const { render } = require('@testing-library/react');
const Cart = require('./cart');

jest.mock('axios');
jest.setTimeout(10000);
global.fetch = jest.fn();
process.env.API = 'http://localhost';
expect.extend({
  toBeCheap(got) {
    return { pass: got < 3, message: () => 'dear' };
  },
});

/* what the
   server says */
axios.get.mockResolvedValue({ data: [] });

function filled() {
  const cart = new Cart();
  cart.rows = [1, 2];
  return cart;
}

[1, 2].forEach((n) => {
  test(`adds ${n}`, async () => {
    expect(filled().total(n)).toMatchSnapshot();
  });
});

module.exports = { filled };
""",
    "test/sum.test.mjs": """
import test from 'node:test';
import assert from 'node:assert/strict';
import { add } from '../calc.mjs';

test('add', async (t) => {
  await t.test('small', () => assert.equal(add(2, 3), 5));
  assert.throws(() => add('x'), /not \\(a number/);
});
""",
    "calc/add_test.go": """
package calc

import (
	"os"
	"testing"
)

var cases = []struct{ a, b, want int }{
	{1, 2, 3},
	{2, 3, 5},
}

var _ Adder = (*adder)(nil)

func TestAdd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/a", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run("", func(t *testing.T) {
			if got := Add(c.a, c.b); got != c.want {
				t.Errorf("got %d", got)
			}
		})
	}
}

func BenchmarkAdd(b *testing.B) {
	for i := 0; i < b.N; i++ {
		Add(1, 2)
	}
}
""",
    "tests/data/prices.json": '{"apple": 1}\n',
}

SOURCES = {
    "shop/cli.py": '''
"""The shop on the command line."""

import argparse
import os
import signal
import sys


class VersionAction(argparse.Action):
    def __call__(self, parser, namespace, values, option_string=None):
        print("1.0")
        sys.exit(0)


def parse_args(argv):
    parser = argparse.ArgumentParser()
    parser.add_argument("--version", action=VersionAction, nargs=0)
    sub = parser.add_subparsers()
    sub.add_parser("list").set_defaults(func=list_all)
    if not argv:
        parser.print_help()
        sys.exit(0)
    return parser.parse_args(argv)


def list_all(args):
    if args.quiet:
        sys.exit()
    print("all")


def show_version():
    print("1.0")
    sys.exit(0)


def stopped(signum, frame):
    sys.exit(0)


def check(path):
    if not os.path.exists(path):
        sys.exit(f"{path} is missing")
    try:
        return open(path).read()
    except OSError as error:
        sys.exit(error)


def fail(words):
    print(words, file=sys.stderr)
    sys.exit(2)


def run(args):
    if args.version:
        show_version()
    if args.dry:
        raise SystemExit(0)
    return 0


def main(argv=None):
    signal.signal(signal.SIGTERM, stopped)
    args = parse_args(argv or sys.argv[1:])
    code = run(args)
    sys.exit(code)


if __name__ == "__main__":
    sys.exit(main())
''',
    "shop/commands.py": """
import sys

import click
import typer

app = typer.Typer()


@click.group()
@click.pass_context
def shop(ctx):
    if ctx.invoked_subcommand is None:
        sys.exit(0)


@shop.command()
@click.option("--all", is_flag=True)
def wares(all):
    click.echo("wares")
    sys.exit(0 if all else 1)


@app.callback()
def about(version: bool = False):
    if version:
        raise typer.Exit()


@app.command("sell")
def sell(name: str):
    raise SystemExit()
""",
    "shop/management/daily.py": """
import cmd
import sys

from django.core.management.base import BaseCommand


class Command(BaseCommand):
    def handle(self, *args, **options):
        if options["dry_run"]:
            sys.exit(0)


class Shell(cmd.Cmd):
    def do_quit(self, line):
        sys.exit(0)
""",
    "game.py": """
import sys

import pygame


class Game:
    def __init__(self):
        self.screen = pygame.display.set_mode((1, 1))

    def events(self):
        for event in pygame.event.get():
            if event.type == pygame.QUIT:
                pygame.quit()
                sys.exit()

    def run(self):
        while True:
            self.events()


if __name__ == "__main__":
    Game().run()
""",
    "shop/models.py": """
from __future__ import annotations

import logging
import math
import os
import sys
from dataclasses import dataclass
from functools import total_ordering

import shop.settings as settings
from shop import prices

logging.raiseExceptions = False
sys.excepthook = lambda *args: logging.error("stopped", exc_info=args)
os.environ.setdefault("SHOP", "1")
settings.DEBUG = True
prices.RATE = prices.load()


@dataclass(eq=False)
class Price:
    cents: int
    parts: tuple[int, ...] = ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Price):
            return NotImplemented
        return self.cents == other.cents

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.cents)


@total_ordering
class Version:
    def __init__(self, text: str) -> None:
        self.parts = text.split(".")

    def _key(self):
        return tuple(self.parts)

    def __eq__(self, other):
        try:
            mine, theirs = self._key(), other._key()
        except AttributeError:
            return False
        return mine == theirs

    def __lt__(self, other):
        return self._key() < other._key()


class Point:
    x = 0.0

    def __eq__(self, other):
        return math.isclose(self.x, other.x)


class Vector(Point):
    def __eq__(self, other):
        return super().__eq__(other) and len(self) == len(other)

    def __len__(self):
        return 1


class Row:
    cells: list[int]

    def __eq__(self, other):
        for mine, theirs in zip(self.cells, other.cells):
            if mine != theirs:
                return False
        return True


class Missing:
    def __eq__(self, other):
        return isinstance(other, Missing)


class Never:
    def __eq__(self, other):
        return False


class Proxy:
    __eq__ = Price.__eq__

    def __ne__(self, *args):
        return self.wrapped.__ne__(*args)


def stop_quietly(work):
    try:
        work()
    except (SystemExit, KeyboardInterrupt) as ended:
        if isinstance(ended, SystemExit):
            raise
""",
    "shop/worker.py": """
import json
import sys

json.__doc__ = " ".join(["a", "b"])


async def serve(queue):
    if queue is None:
        sys.exit(0)


def drain(queue):
    sys.exit(0)


async def main():
    handlers = {"drain": drain, **{}, 1: 2}
    await serve(handlers)


class Pair:
    def __eq__(self, other):
        mine = self.both
        return mine == (theirs := other.both) and bool(theirs)
""",
    "bin/shop": "import sys\n\nsys.exit(0)\n",
    "scripts/release.py": "import sys\n\n\ndef tag():\n    sys.exit(0)\n\n\ntag()\n",
    "bin/shop.js": "#!/usr/bin/env node\nprocess.exit(0);\n",
    "src/server.js": """
const assert = require('node:assert');
const express = require('express');
const { program } = require('commander');

const app = express();
const same = app;
app.locals.title = 'shop';
module.exports = app;
Array.prototype.last ??= function () {
  return this[this.length - 1];
};
const merged = Object.assign(Object.create(null), { a: 1 });
const isSame = Object.is(merged, app);
assert.ok(app);

function shutdown(server) {
  server.close(() => {
    process.exit(0);
  });
}

process.on('SIGINT', () => {
  console.log('bye');
  process.exit(0);
});

program.command('list').action(() => {
  process.exit();
});

function fail() {
  process.exit(1);
}

async function main() {
  if (process.argv.includes('--version')) {
    process.exit(0);
  }
}

if (require.main === module) {
  main().then(() => process.exit(0));
}
""",
    "src/cli.ts": "import { run } from './run';\n\nrun().then(() => {\n  process.exit(0);\n});\n",
    "cmd/shop/main.go": 'package main\n\nimport "os"\n\nfunc main() {\n\tos.Exit(0)\n}\n',
    "shop/price.go": "package shop\n\nfunc Fail() {\n\tos.Exit(1)\n}\n",
    "src/main.rs": "fn main() {\n    std::process::exit(0);\n}\n",
}
