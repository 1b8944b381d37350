"""The command line itself: help, imports, closed pipes, colours."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.declared.shop import COMMANDS_OF_LAPTOPS, Shop, snaploom

BIN = Path(sys.executable).parent / "snaploom"
BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pandas", "pyspark", "py4j"):
            raise ImportError(f"{name} is not to be imported")

sys.meta_path.insert(0, Blocked())
from snaploom.cli.main import run_command
sys.exit(run_command(sys.argv[1:]))
"""


def environment(**changes: str) -> dict[str, str]:
    return {**os.environ, "COLUMNS": "80", **changes}


@pytest.mark.parametrize("command", COMMANDS_OF_LAPTOPS)
def test_help_fits_80_columns_shows_no_empty_default_and_imports_no_spark(command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED, *command.split(), "--help"],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert max(map(len, done.stdout.splitlines())) <= 80
    text = " ".join(done.stdout.replace("│", " ").split())
    assert "Usage: snaploom" in text
    for empty in ("None", "()", "default: ]", "False"):
        assert empty not in text


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--help",), 0),
        (("validate", "{model}"), 0),
        (("plan", "wide", "-f", "{model}", "--offline"), 0),
        (("plan", "wide", "-f", "{model}", "--offline", "-o", "json"), 0),
        (("graph", "wide", "-f", "{model}", "-o", "svg"), 0),
        (("snapshots", "wide", "-f", "{model}"), 0),
        (("gc", "/nowhere"), 1),
        (("schema",), 0),
        (("crds",), 0),
    ],
)
def test_what_needs_no_data_imports_no_spark(tmp_path, arguments, code):
    model = str(Shop(tmp_path).write())
    filled = [argument.format(model=model) for argument in arguments]
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED, *filled], capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    assert "is not to be imported" not in done.stderr


@pytest.mark.parametrize("command", ["schema", "crds"])
def test_a_reader_that_goes_away_is_no_fault(command: str) -> None:
    """As `snaploom crds | head -1` does, with more text than a pipe holds."""
    process = subprocess.Popen([BIN, command], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.readline()
    process.stdout.close()
    errors = process.stderr.read().decode()
    process.stderr.close()
    assert (process.wait(), errors) == (0, "")


def test_no_color_is_honoured_and_pipes_have_none(tmp_path: Path) -> None:
    model = Shop(tmp_path).other(fieldName="data").write()
    forced = environment(FORCE_COLOR="1", TERM="xterm-256color")
    forced.pop("NO_COLOR", None)
    coloured, plain, piped = (
        subprocess.run([BIN, "validate", model], env=env, capture_output=True, text=True).stderr
        for env in (forced, {**forced, "NO_COLOR": "1"}, environment())
    )
    assert "\x1b[1;31m" in coloured
    assert "31m" not in plain
    assert "\x1b" not in piped


def test_drawings_are_in_ascii_where_a_stream_takes_nothing_else(tmp_path: Path) -> None:
    model = Shop(tmp_path).write()
    done = subprocess.run(
        [BIN, "plan", "wide", "-f", model, "--offline"],
        env=environment(PYTHONIOENCODING="ascii"),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "`-- customers  by customer-id" in done.stdout


def test_names_with_markup_are_printed_as_they_are(tmp_path: Path) -> None:
    result = snaploom("validate", tmp_path / "[bold]model[/bold].yaml")
    assert "[bold]model[/bold].yaml" in result.err
