"""A small repository, a plan for it and a script that plays its agents: the demonstration, and many tests.

Among the seven tasks one agent claims success without having done anything, one is caught by its check and
fixes its work only because it was told what was found, and several can run at the same time. Every
command needs nothing but Python itself.
"""

import os
import subprocess
from pathlib import Path
from textwrap import dedent
from typing import Any, Final

EVIDENCE: Final = "a basket of 3000 with 10 % off should cost 2700"
"""Printed by the check that the first attempt at `totals` fails; only who was told can repeat it."""

_CHECK: Final = '''\
"""Check the total of a basket, and say what was expected."""

import sys

from shop.totals import total

got = total([1000, 2000], percent_off=10)
if got != 2700:
    print(f"a basket of 3000 with 10 % off should cost 2700, but costs {got}")
    sys.exit(1)
'''

FILES: Final[dict[str, str]] = {
    "README.md": "# shop\n\nA very small shop. All amounts are whole cents.\n",
    ".gitignore": "__pycache__/\n",
    "shop/__init__.py": '"""A very small shop."""\n',
    "shop/items.py": '"""What can be bought."""\n\nPRICES = {"tea": 450, "cup": 1200}\n',
    "tests/__init__.py": "",
    "tests/test_items.py": dedent(
        """\
        import unittest

        from shop.items import PRICES


        class ItemsTest(unittest.TestCase):
            def test_every_price_is_positive(self):
                self.assertTrue(all(price > 0 for price in PRICES.values()))
        """
    ),
    "checks/check_totals.py": _CHECK,
}

PLAN: Final = """\
title: A very small shop
gates:
  - name: tests
    run: python3 -B -m unittest -q
tasks:
  - id: money
    title: Show amounts
    description: Add shop/money.py with show(cents), so that show(450) is "4.50".
    acceptance:
      - name: shows cents
        run: python3 -B -c 'from shop.money import show; assert show(450) == "4.50", show(450)'
    scope: [shop/money.py, tests/test_money.py]
  - id: discounts
    title: Take a percentage off
    description: Add shop/discounts.py with discounted(cents, percent).
    acceptance:
      - name: takes a percentage off
        run: python3 -B -c 'from shop.discounts import discounted; assert discounted(1000, 10) == 900'
    scope: [shop/discounts.py]
  - id: stock
    title: Keep stock
    description: Add shop/stock.py with a class Stock that has add, take and left.
    acceptance:
      - name: counts items
        run: >-
          python3 -B -c 'from shop.stock import Stock; s = Stock();
          s.add("tea", 3); s.take("tea"); assert s.left("tea") == 2'
    scope: [shop/stock.py]
  - id: totals
    title: Add up a basket
    description: Add shop/totals.py with total(prices, percent_off=0).
    depends_on: [discounts]
    acceptance:
      - name: adds up
        run: PYTHONPATH=. python3 -B checks/check_totals.py
    scope: [shop/totals.py]
  - id: orders
    title: Take orders
    description: Add shop/orders.py with order(stock, item), which takes one item and returns its price.
    depends_on: [stock]
    acceptance:
      - name: sells an item
        run: >-
          python3 -B -c 'from shop.orders import order; from shop.stock import Stock; s = Stock();
          s.add("tea", 1); assert order(s, "tea") == 450'
    scope: [shop/orders.py]
  - id: receipts
    title: Print a receipt
    description: Add shop/receipts.py with receipt(prices, percent_off=0), a line such as "total 27.00".
    depends_on: [money, totals]
    acceptance:
      - name: prints a total
        run: >-
          python3 -B -c 'from shop.receipts import receipt;
          assert receipt([1000, 2000], percent_off=10) == "total 27.00"'
    scope: [shop/receipts.py]
  - id: readme
    title: Describe the shop
    description: Say in README.md which modules there are.
    depends_on: [receipts, orders]
    acceptance:
      - name: names the modules
        run: grep -q receipts README.md && grep -q orders README.md
    scope: [README.md]
"""

_MONEY: Final = '''\
"""Amounts as people read them."""


def show(cents):
    """Return an amount with two digits behind the point."""
    return f"{cents // 100}.{cents % 100:02d}"
'''
_MONEY_TEST: Final = """\
import unittest

from shop.money import show


class MoneyTest(unittest.TestCase):
    def test_small_amounts_keep_their_zeros(self):
        self.assertEqual(show(5), "0.05")
"""
_DISCOUNTS: Final = '''\
"""Percentages off."""


def discounted(cents, percent):
    """Return what is left of an amount."""
    return cents - cents * percent // 100
'''
_STOCK: Final = '''\
"""What is in stock."""


class Stock:
    """Counts items."""

    def __init__(self):
        self._counts = {}

    def add(self, item, count):
        """Put items into stock."""
        self._counts[item] = self.left(item) + count

    def take(self, item):
        """Take one item out."""
        if self.left(item) < 1:
            raise LookupError(f"no {item} left")
        self._counts[item] -= 1

    def left(self, item):
        """Return how many there are."""
        return self._counts.get(item, 0)
'''
_WRONG_TOTALS: Final = '''\
"""Baskets."""


def total(prices, percent_off=0):
    """Return what a basket costs."""
    return sum(prices)
'''
_TOTALS: Final = '''\
"""Baskets."""

from shop.discounts import discounted


def total(prices, percent_off=0):
    """Return what a basket costs."""
    return discounted(sum(prices), percent_off)
'''
_ORDERS: Final = '''\
"""Orders."""

from shop.items import PRICES


def order(stock, item):
    """Take one item from stock and return its price."""
    stock.take(item)
    return PRICES[item]
'''
_RECEIPTS: Final = '''\
"""Receipts."""

from shop.money import show
from shop.totals import total


def receipt(prices, percent_off=0):
    """Return the last line of a receipt."""
    return f"total {show(total(prices, percent_off=percent_off))}"
'''
_README: Final = "\nModules: items, money, discounts, totals, stock, orders, receipts.\n"


def demo_plan() -> str:
    """Return the plan as YAML."""
    return PLAN


def demo_script(*, pause_s: float = 0.3, journal: str | None = None) -> dict[str, Any]:
    """Return the script that the scripted agent follows through the plan."""

    def work(*steps: dict[str, Any]) -> list[dict[str, Any]]:
        usage = {"usage": {"input_tokens": 1_200, "output_tokens": 300, "cost_micros": 9_000}}
        return [{"say": "I look at the task."}, {"sleep": pause_s}, *steps, usage]

    def write(path: str, text: str) -> dict[str, Any]:
        return {"write": path, "text": text}

    wrong = [write("shop/totals.py", _WRONG_TOTALS), {"claim": "the basket is added up"}]
    return {
        **({"journal": journal} if journal else {}),
        "tasks": {
            "money": [work(write("shop/money.py", _MONEY), write("tests/test_money.py", _MONEY_TEST))],
            "discounts": [
                [{"sleep": pause_s}, {"claim": "discounts work and all tests pass"}],
                work(write("shop/discounts.py", _DISCOUNTS)),
            ],
            "stock": [work(write("shop/stock.py", _STOCK))],
            "totals": [
                work({"expect_prompt": EVIDENCE, "otherwise": wrong}, write("shop/totals.py", _TOTALS)),
            ],
            "orders": [work(write("shop/orders.py", _ORDERS))],
            "receipts": [work(write("shop/receipts.py", _RECEIPTS), {"commit": "Add receipts"})],
            "readme": [work({"append": "README.md", "text": _README})],
        },
    }


def make_sample_repository(path: Path) -> str:
    """Create a git repository with the shop's first commit, and return that commit."""
    for name, text in FILES.items():
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    _git(path, "init", "-q", "-b", "main")
    _git(path, "config", "user.name", "Sample")
    _git(path, "config", "user.email", "sample@example.invalid")
    _git(path, "add", "-A")
    _git(path, "commit", "-q", "-m", "A very small shop")
    return _git(path, "rev-parse", "HEAD").strip()


def _git(path: Path, *arguments: str) -> str:
    # The caller may be a git hook, whose variables point at another repository.
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    done = subprocess.run(["git", *arguments], cwd=path, env=env, check=True, capture_output=True, text=True)
    return done.stdout
