"""A job's log: lines for people, or objects that name what they are about."""

from __future__ import annotations

import io
import json

import pytest

from snaploom.models.common import parse_instant
from snaploom.run.joblog import JobLog, Owner

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
