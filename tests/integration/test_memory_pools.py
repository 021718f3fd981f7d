"""The threads of a worker share a few pools of memory."""

import subprocess
import sys

import pytest

POOLS = """
import ctypes, sys, tempfile, threading
from loopwright.adapters.machine.threads import share_memory

libc = ctypes.CDLL(None)
if not hasattr(libc, "mallopt"):
    sys.exit(77)
if sys.argv[1] == "shared":
    share_memory()
libc.malloc.restype = ctypes.c_void_p
started, ended = threading.Barrier(9), threading.Event()

def allocate():
    libc.malloc(4000)
    started.wait()
    ended.wait()

for _ in range(8):
    threading.Thread(target=allocate, daemon=True).start()
started.wait()
libc.fopen.restype = ctypes.c_void_p
with tempfile.NamedTemporaryFile() as file:
    stream = ctypes.c_void_p(libc.fopen(file.name.encode(), b"w"))
    libc.malloc_info(0, stream)
    libc.fclose(stream)
    print(file.read().count(b"<heap nr"))
ended.set()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc has such pools")
def test_the_threads_of_a_worker_share_two_pools_of_memory() -> None:
    def pools(how: str) -> int:
        done = subprocess.run(
            [sys.executable, "-c", POOLS, how], capture_output=True, text=True, check=False, timeout=60
        )
        if done.returncode == 77:
            pytest.skip("this C library has no such pools")
        assert done.returncode == 0, done.stderr
        return int(done.stdout)

    assert pools("shared") <= 2 < pools("own")
