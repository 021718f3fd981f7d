"""Text of agents on pages: escaped, readable and bounded."""

from datetime import UTC, datetime, timedelta

from tests.cases import each_case

from loopwright.core.rows.model import Outcome
from loopwright.core.values.states import AttemptState, LoopState, PlanState, RunState, TaskState
from loopwright.server.pages.diffs import changed_files
from loopwright.server.pages.render import ago, coded, environment, look, money, plain

NOW = datetime(2026, 1, 2, tzinfo=UTC)


@each_case(
    "text, shown",
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("a\x00b\x08c", "a\\u0000b\\u0008c"),
        ("user\u202etxt.exe", "user\\u202etxt.exe"),
        ("pass\u200bword", "pass\\u200bword"),
        ("a\r\nb\rc", "a\nb\nc"),
    ],
)
def test_invisible_characters_are_shown_and_colours_are_removed(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_everything_is_escaped() -> None:
    made = environment().from_string("{{ text | plain }}").render(text="<script>alert(1)</script>")
    assert made == "&lt;script&gt;alert(1)&lt;/script&gt;"


def test_every_state_has_a_word_an_icon_and_a_tone() -> None:
    states = [*PlanState, *TaskState, *AttemptState, *RunState, *LoopState, *Outcome]
    assert [one for one in states if not (look(one).word and look(one).icon and look(one).tone)] == []
    tones = {
        one: look(one).tone for one in (PlanState.VERIFIED, PlanState.FAILED, TaskState.AWAITING_RESPONSE)
    }
    assert list(tones.values()) == ["good", "bad", "ask"]


@each_case(
    "micros, shown",
    [
        (None, "unknown"),
        (0, "$0.00"),
        (900, "<$0.01"),
        (1_234_560_000, "$1,234.56"),
    ],
)
def test_amounts(micros: int | None, shown: str) -> None:
    assert money(micros) == shown


@each_case(
    "seconds, shown",
    [
        (2, "just now"),
        (59, "59 s ago"),
        (65, "1 m ago"),
        (2250, "37 m ago"),
        (9000, "2 h ago"),
        (-65, "in 1 m"),
    ],
)
def test_relative_times(seconds: int, shown: str) -> None:
    assert ago(NOW - timedelta(seconds=seconds), NOW) == shown


DIFF = """diff --git a/shop.py b/shop.py
new file mode 100644
--- /dev/null
+++ b/shop.py
@@ -0,0 +1,2 @@
+def f(x):
+    return "<b>"
diff --git a/old.txt b/old.txt
deleted file mode 100644
--- a/old.txt
+++ /dev/null
@@ -1 +0,0 @@
-gone
diff --git a/logo.png b/logo.png
Binary files a/logo.png and b/logo.png differ
"""


def test_a_diff_becomes_files_with_numbered_and_coloured_lines() -> None:
    changed = changed_files(DIFF, cut=False)
    assert [(one.path, one.added, one.removed, one.note) for one in changed.files] == [
        ("shop.py", 2, 0, "new file"),
        ("old.txt", 0, 1, "deleted file"),
        ("logo.png", 0, 0, "binary file"),
    ]
    lines = changed.files[0].lines
    assert [(one.kind, one.old, one.new) for one in lines] == [
        ("hunk", None, None),
        ("add", None, 1),
        ("add", None, 2),
    ]
    assert '<span class="t-k">def</span>' in lines[1].html
    assert "&lt;b&gt;" in lines[2].html
    assert "<b>" not in lines[2].html


def test_an_attempt_that_changed_nothing_has_no_files() -> None:
    assert changed_files("", cut=False).files == ()


def test_what_stands_between_backticks_is_code_and_nothing_else_is() -> None:
    assert coded("run `a & b` or <b>`") == "run <code>a &amp; b</code> or &lt;b&gt;`"


def test_a_long_diff_is_cut() -> None:
    text = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -0,0 +1,9000 @@\n" + "+x\n" * 9000
    changed = changed_files(text, cut=False)
    assert changed.cut
    assert changed.added < 5000


@each_case(
    "head, shown",
    [
        (["--- a/caf\\303\\251.py", "+++ b/x"], "x"),
        (["--- /dev/null", '+++ "b/caf\\303\\251 \\"q\\" \\t.py"'], 'café "q" \t.py'),
        (["--- a/with space.py\t", "+++ /dev/null"], "with space.py"),
        (["similarity index 100%", "rename from old", 'rename to "n\\303\\251w"'], "néw"),
        (["Binary files differ"], "x/y z.png"),
    ],
)
def test_paths_are_read_as_git_writes_them(head: list[str], shown: str) -> None:
    text = "\n".join(["diff --git a/x/y z.png b/x/y z.png", *head, "@@ -1 +1 @@", "+x"])
    assert [one.path for one in changed_files(text, cut=False).files] == [shown]
