"""The end of a process, whatever threads are at work."""

import io
import json
import os
import subprocess
import sys

import pytest

from snaploom.errors import Interrupted, RootEmpty, SnaploomError
from snaploom.models.common import EpochNanos, parse_instant
from snaploom.models.findings import InvalidDeclarations, make_finding
from snaploom.run.declarations import combined_exit_code, report_exit_code, unstarted_report
from snaploom.run.joblog import JobLog, Owner

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


OWNER = Owner("OutputDataset", "wide", "team")


def written(log: JobLog, *lines: str, reason: str = "") -> str:
    stream = io.StringIO()
    clock = lambda: parse_instant("2026-01-01T00:00:01.234567Z")  # noqa: E731
    JobLog(log.is_json, log.run, log.resource, stream, clock).write(*lines, reason=reason)
    return stream.getvalue()


def test_lines_are_for_people_by_default() -> None:
    assert written(JobLog.of({}, "ods-1", OWNER), "one", "two") == "one\ntwo\n"


def test_an_object_names_what_it_is_about() -> None:
    log = JobLog.of({"SNAPLOOM_LOG_FORMAT": "json"}, "ods-1", OWNER)
    (line,) = written(log, "error wide:\n  full", reason="FolderNotWritable").splitlines()
    assert json.loads(line) == {
        "time": "2026-01-01T00:00:01.234Z",
        "level": "error",
        "logger": "snaploom.job",
        "message": "error wide:\n  full",
        "resource": "OutputDataset/team/wide",
        "run": "ods-1",
        "reason": "FolderNotWritable",
    }


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("warning: slow", "warning"),
        ("warning SL306 model.yaml", "warning"),
        ("error SourceNotReadable: gone", "error"),
        ("warnings are few", "info"),
        ("published 7 rows", "info"),
    ],
)
def test_the_level_is_what_the_line_begins_with(line: str, level: str) -> None:
    log = JobLog.of({"SNAPLOOM_LOG_FORMAT": "JSON"}, "ods-1")
    assert json.loads(written(log, line))["level"] == level


def test_closed_stream_is_no_fault() -> None:
    class Closed(io.StringIO):
        def write(self, _: str) -> int:
            raise BrokenPipeError

    JobLog(False, stream=Closed()).write("hello")


@pytest.mark.parametrize("form", ["", "json"])
def test_names_of_others_move_no_cursor(form: str) -> None:
    log = JobLog.of({"SNAPLOOM_LOG_FORMAT": form}, "ods-1")
    shown = written(log, "published \x1b[2K\x9b1A\u202e7 rows")
    assert "\\x1b" in shown or "\\u001b" in shown
    assert not {"\x1b", "\x9b", "\u202e"} & set(shown)


INVALID = InvalidDeclarations([make_finding("SL191", "this is not a time", path="--now")])


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ([], 0),
        ([0, 0], 0),
        ([0, 1], 1),
        ([3, 0, 3], 3),
        ([2, 3], 1),
        ([1, 130], 130),
        ([4], 4),
    ],
)
def test_several_codes_become_one(codes, expected) -> None:
    assert combined_exit_code(codes) == expected


@pytest.mark.parametrize(
    ("error", "code"),
    [(SnaploomError("x"), 1), (Interrupted("x"), 130), (INVALID, 2), (RootEmpty("x"), 5)],
)
def test_report_of_a_run_that_never_began_has_the_code_of_its_error(error, code) -> None:
    report = unstarted_report("wide", EpochNanos(0), error)
    assert report_exit_code(report) == error.exit_code == code
