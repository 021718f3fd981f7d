"""The meter counts memory that several processes use once."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.meter import memory_below
from tests.waiting import eventually

BALLAST = 40_000_000
_HOLD = f"ballast = bytes(range(256)) * {BALLAST // 256}\n"


@contextmanager
def python(code: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", code, *arguments], stdin=subprocess.PIPE) as started:
        try:
            yield started
        finally:
            started.kill()


def large(top: int) -> list[str]:
    return [command for command, size in memory_below(top) if size > BALLAST * 0.9]


def test_a_child_between_vfork_and_exec_counts_with_its_parent(tmp_path: Path) -> None:
    # posix_spawn opens the pipe in the child before it calls exec, so the child waits for a writer there.
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    code = f"""import os, sys
{_HOLD}
actions = [(os.POSIX_SPAWN_OPEN, 0, sys.argv[1], os.O_RDONLY, 0)]
child = os.posix_spawn("/bin/cat", ["cat"], {{}}, file_actions=actions)
os.waitpid(child, 0)
"""
    with python(code, str(pipe)) as parent:
        children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
        eventually(lambda: children.read_text().split())
        (child,) = children.read_text().split()
        shared = Path(f"/proc/{child}/smaps_rollup").read_bytes()
        assert int(shared.partition(b"Pss:")[2].split()[0]) * 1024 > BALLAST
        assert memory_below(parent.pid) == []
        writer = os.open(pipe, os.O_WRONLY)
        assert eventually(lambda: [one for one, _ in memory_below(parent.pid)]) == ["cat"]
        os.close(writer)


def test_a_child_that_calls_exec_while_it_is_read_does_not_count_twice() -> None:
    code = (
        f"import subprocess\n{_HOLD}\nfor _ in range(150):\n    subprocess.run(['/bin/true'], check=True)\n"
    )
    with python(code) as parent:
        while parent.poll() is None:
            assert large(parent.pid) == []


def test_children_that_hold_memory_of_their_own_all_count() -> None:
    code = f"import os, sys\nif os.fork():\n    os.wait()\n{_HOLD}\nsys.stdin.read()\n"
    with python(code) as parent:
        assert len(eventually(lambda: large(parent.pid))) == 1
