"""Ctrl-C and SIGTERM while `snaploom index` works: real processes."""

import signal
import sys
from pathlib import Path

import pytest
import support
from support.documentation.commands import end, snaploom_command, start, wait_until
from support.skipping.indexinterfaces import Lake, command

from snaploom.cli.main import run_command
from snaploom.models.skippingindex import IndexState

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PROGRAM = (sys.executable, str(Path(support.__path__[0]) / "skipping" / "indexsignals.py"))
SLOW = r"regexp_extract(concat(repeat('a', 34), name), '(a|aa)+\\1b', 0) VALUE_SET"
"""Seconds a row: Spark notices between rows that it is to stop."""


@pytest.mark.parametrize(
    ("before", "name", "step", "number", "after"),
    [
        ((), "build", "write_rows", signal.SIGINT, IndexState.FAILED),
        (("build", "refresh"), "compact", "compact", signal.SIGINT, IndexState.FAILED),
        (("build", "drop"), "vacuum", "destroy", signal.SIGTERM, IndexState.DELETED),
    ],
)
def test_a_signal_puts_things_back(lake, before, name, step, number, after):
    declared = ("-i", "price MIN_MAX")
    for each in before:
        lake.add("2024-01-09", 9)
        assert command(each, lake, *(declared if each in ("create", "build") else ())) == 0
    former = lake.state()
    place = ("index", name, lake.data, "--location", lake.base)
    more = declared if name == "build" else ()
    process = start([*PROGRAM, step, str(int(number)), *place, *more], lake.folder / "run")
    code, printed, errors = end(process, lake.folder / "run")
    assert (code, printed) == (130, ""), errors
    assert "interrupted" in errors
    assert "Traceback" not in errors
    state = lake.state()
    assert (state.phase, state.operation, state.segments) == (after, "", former.segments)
    again = "refresh" if name == "build" else name
    assert command(again, lake) == 0


def test_an_import_that_is_stopped_makes_no_index(lake: Lake) -> None:
    assert command("build", lake, "-i", "price MIN_MAX") == 0
    metadata = str(lake.folder / "metadata")
    assert command("export", lake, metadata) == 0
    for name in ("drop", "vacuum"):
        assert command(name, lake) == 0
    place = ("index", "import", lake.data, metadata, "--location", lake.base)
    arguments = [*PROGRAM, "read", str(int(signal.SIGTERM)), *place]
    code, _, errors = end(start(arguments, lake.folder / "run"), lake.folder / "run")
    assert code == 130, errors
    assert not lake.state().exists
    assert run_command(list(place)) == 0


def test_work_in_spark_is_cancelled(lake: Lake) -> None:
    arguments = ("index", "build", lake.data, "--location", lake.base, "-i", SLOW)
    process = snaploom_command(*arguments, folder=lake.folder / "run")
    wait_until(lambda: lake.state().phase is IndexState.CREATING, process)
    process.send_signal(signal.SIGINT)
    code, _, errors = end(process, lake.folder / "run")
    assert code == 130, errors
    assert "run the command again" in errors
    assert lake.state().phase is IndexState.FAILED
    assert command("recover", lake) == 0
    assert lake.state().phase is IndexState.EMPTY
