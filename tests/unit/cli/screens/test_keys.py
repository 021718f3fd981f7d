"""The keyboard beside a live picture, on a real terminal."""

import asyncio
import os
import pty
import sys
import termios

import pytest

from loopwright.cli.screens.follow import Keyboard


async def test_q_ends_the_watching_and_no_key_is_echoed(monkeypatch: pytest.MonkeyPatch) -> None:
    leader, follower = pty.openpty()
    with os.fdopen(follower) as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        before = termios.tcgetattr(follower)
        with Keyboard() as keyboard:
            assert not termios.tcgetattr(follower)[3] & termios.ECHO, "Enter would tear the picture"
            quit_ = keyboard.on_key("q")
            os.write(leader, b"\nx")
            await asyncio.sleep(0)
            assert not quit_.is_set()
            os.write(leader, b"q")
            await asyncio.wait_for(quit_.wait(), 60)
            asyncio.get_running_loop().remove_reader(follower)
        assert termios.tcgetattr(follower) == before, "the terminal is as it was"
    os.close(leader)
