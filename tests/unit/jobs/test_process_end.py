"""The end of a process, whatever threads are at work."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from py4j.java_gateway import GatewayClient
from py4j.protocol import ERROR, Py4JNetworkError

import snaploom
from snaploom.errors import Interrupted, RootEmpty, SnaploomError
from snaploom.models.common import EpochNanos, parse_instant
from snaploom.models.findings import InvalidDeclarations, make_finding
from snaploom.run.declarations import combined_exit_code, report_exit_code, unstarted_report
from snaploom.run.job import JobGroup
from snaploom.run.joblog import JobLog, Owner, silence_py4j
from snaploom.run.session.jvm import MemoryLimit

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


# Nothing but a run's own lines reaches the console, whatever py4j logs.


class ResetConnection:
    """A connection whose other end has died while it was answering."""

    def send_command(self, command: str) -> str:
        raise Py4JNetworkError("Error while sending or receiving", ConnectionResetError())

    def close(self, reset: bool) -> None:
        pass


def send_to_a_dead_jvm() -> str:
    client = GatewayClient()
    client.deque.append(ResetConnection())
    return client.send_command("c\n", retry=False)


@pytest.fixture
def untouched_loggers():
    root, py4j = logging.getLogger(), logging.getLogger("py4j")
    filters, level = list(root.filters), py4j.level
    root.filters.clear()
    yield
    root.filters[:] = filters
    py4j.setLevel(level)


def test_py4j_logs_a_lost_jvm_as_a_traceback(untouched_loggers, caplog) -> None:
    assert send_to_a_dead_jvm() == ERROR
    assert [record.exc_info is not None for record in caplog.records] == [True]


def test_a_lost_jvm_logs_nothing_when_py4j_is_silenced(untouched_loggers, caplog) -> None:
    silence_py4j()
    assert send_to_a_dead_jvm() == ERROR
    assert caplog.records == []


def test_other_warnings_on_the_root_logger_still_pass(untouched_loggers, caplog) -> None:
    silence_py4j()
    logging.getLogger().warning("the disk is nearly full")
    assert caplog.messages == ["the disk is nearly full"]


def test_every_module_logs_in_one_of_the_areas() -> None:
    package = Path(snaploom.__file__).parent
    loggers = {
        ".".join(path.relative_to(package.parent).with_suffix("").parts)
        for path in package.rglob("*.py")
        if "getLogger(__name__)" in path.read_text("utf-8")
    }
    assert loggers
    page = (Path(__file__).parents[3] / "docs/how-to/watch-the-operator.md").read_text("utf-8")
    areas = tuple(re.findall(r"^\| `(snaploom\.\w+)` \|", page, re.MULTILINE))
    assert [name for name in loggers if not name.startswith(areas)] == []


# What is reported of a container whose memory was used up.


VERSIONS = {
    "v2": ("memory.events", "memory.max", "max"),
    "v1": ("memory/memory.oom_control", "memory/memory.limit_in_bytes", "9223372036854771712"),
}


class GoneSession:
    """A session whose JVM has ended: each call is refused."""

    def __init__(self) -> None:
        self.is_gone = False

    @property
    def sparkContext(self) -> GoneSession:  # noqa: N802 -- as PySpark spells it
        if self.is_gone:
            raise ConnectionRefusedError
        return self

    def setJobGroup(self, *_arguments: object, **_options: object) -> None:  # noqa: N802
        """Accepted while the JVM is there."""


def container(folder: Path, version: str, *, kills: int, limit: str | None = None) -> MemoryLimit:
    events, maximum, unlimited = VERSIONS[version]
    (folder / events).parent.mkdir(exist_ok=True)
    (folder / events).write_text(f"oom_kill_disable 0\noom 7\noom_kill {kills}\n")
    (folder / maximum).write_text((limit or unlimited) + "\n")
    return MemoryLimit(folder)


@pytest.mark.parametrize("version", VERSIONS)
def test_kills_and_limit_are_read_in_both_versions(tmp_path: Path, version: str) -> None:
    found = container(tmp_path, version, kills=3, limit=str(984 << 20))
    assert (found.kills(), found.mebibytes()) == (3, 984)
    assert container(tmp_path, version, kills=0).mebibytes() is None


def test_machine_without_control_groups_has_no_kills_and_no_limit(tmp_path: Path) -> None:
    assert (MemoryLimit(tmp_path).kills(), MemoryLimit(tmp_path).mebibytes()) == (0, None)


@pytest.mark.parametrize(("kills", "cause"), [(1, "was shut down"), (2, "the kernel killed")])
def test_end_of_spark_names_a_kill_during_the_run_only(tmp_path, kills, cause):
    session = GoneSession()
    group = JobGroup(container(tmp_path, "v2", kills=1, limit=str(1 << 30)))
    group.enter(session, "run", "a run")  # type: ignore[arg-type]
    session.is_gone = True
    container(tmp_path, "v2", kills=kills, limit=str(1 << 30))
    stopped = group.stopped()
    assert cause in stopped.message
    assert (stopped.found == "a limit of 1024 MiB") == (kills == 2)


class EndedProcess:
    """A JVM that has ended by itself, or by a signal."""

    def __init__(self, code: int) -> None:
        self._code = code

    def wait(self, _patience: float) -> int:
        """The exit code."""
        return self._code


@pytest.mark.parametrize(
    ("code", "cause"), [(52, "heap was full"), (-9, "was killed"), (143, "was shut down")]
)
def test_end_of_spark_names_what_was_at_work_when_memory_ran_out(tmp_path, code, cause):
    session, group = GoneSession(), JobGroup(container(tmp_path, "v2", kills=0))
    group.enter(session, "run", "a run")  # type: ignore[arg-type]
    group.describe("OutputDataset/wide: snapshot 1 with `customers`")
    group._process = EndedProcess(code)  # type: ignore[assignment]
    session.is_gone = True
    stopped = group.stopped()
    assert cause in stopped.message
    assert ("`customers`" in str(stopped.found)) == (code != 143)
    assert "run.spark.driver.memory" in stopped.hint
