"""The end of a process, whatever threads are at work."""

import os
import subprocess
import sys

import pytest

_END = "from snaploom.localfiles import end_process\n"
_READER = """
import io, threading
import pyarrow as pa, pyarrow.csv

class Endless(io.RawIOBase):
    started = threading.Event()
    def readable(self):
        return True
    def read(self, size=-1):
        self.started.set()
        threading.Event().wait(0.01)
        return b"a,b\\n" * 10

def read():
    source = pa.PythonFile(Endless(), "r")
    options = pyarrow.csv.ReadOptions(block_size=64)
    for batch in pyarrow.csv.open_csv(source, read_options=options):
        pass

threading.Thread(target=read, daemon=True).start()
assert Endless.started.wait(60)
"""


def ended(program: str) -> subprocess.CompletedProcess[str]:
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.run(
        [sys.executable, "-c", program],
        env=buffered,
        text=True,
        capture_output=True,
        check=False,
        timeout=120,
    )


@pytest.mark.slow
def test_a_reader_of_arrow_at_work_does_not_abort_the_process() -> None:
    done = ended(f"{_END}{_READER}end_process(3)")
    assert (done.returncode, done.stderr) == (3, "")


def test_what_is_registered_for_the_end_is_done() -> None:
    program = "import atexit\natexit.register(print, 'last')\nend_process(0)"
    assert ended(_END + program).stdout == "last\n"


def test_a_thread_that_is_no_daemon_is_waited_for() -> None:
    program = """
import threading

class Late(threading.Thread):
    waited_for = threading.Event()
    def run(self):
        self.waited_for.wait()
        print("done")
    def join(self, timeout=None):
        self.waited_for.set()
        super().join(timeout)

Late().start()
end_process(0)
"""
    assert ended(_END + program).stdout == "done\n"


def test_a_closed_pipe_does_not_change_the_exit_code() -> None:
    program = "import os, sys\nos.close(1)\nsys.stdout.write('x')\nend_process(4)"
    done = ended(_END + program)
    assert (done.returncode, done.stderr) == (4, "")
