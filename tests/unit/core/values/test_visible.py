"""Letters that are not seen are replaced, one by one."""

from loopwright.core.values.wording import drawable


def test_a_drawable_text_is_as_long_as_before_and_its_lines_stay_lines() -> None:
    assert drawable("plain words") == "plain words"
    assert drawable("two\nlines\tété") == "two\nlines\tété"
    hostile = "a\x1b[2J\x07\u009b\u202e\u200bb"
    assert len(drawable(hostile)) == len(hostile)
    assert drawable(hostile) == "a\ufffd[2J\ufffd\ufffd\ufffd\ufffdb"
