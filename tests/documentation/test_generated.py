"""Generated pages are those that the code generates."""

import re
from pathlib import Path

import generate
import pytest
from generation.commandline import CODES_OF, EXIT_CODES
from support.declared.shop import COMMANDS_OF_LAPTOPS
from support.documentation.examples import run_command
from support.documentation.pages import DOCS, REPOSITORY


def test_files_in_the_repository_are_those_of_the_code() -> None:
    assert generate.drift(DOCS) == [], "run `make generate`"


def test_picture_is_what_the_command_draws() -> None:
    drawn = run_command("snaploom graph flights-wide -f examples/flights -o svg", REPOSITORY)
    assert drawn == (DOCS / "images" / "flights.svg").read_text("utf-8")


def test_drift_is_reported_for_each_file(tmp_path: Path) -> None:
    generate.write(tmp_path)
    (tmp_path / "reference/kinds/datasource.md").unlink()
    (tmp_path / "reference/problems.md").write_text("changed")
    (tmp_path / "reference/kinds/other.md").write_text("strange")
    assert generate.drift(tmp_path) == [
        "reference/kinds/datasource.md is missing",
        "reference/problems.md differs from the code",
        "reference/kinds/other.md is not generated",
    ]


def test_row_of_a_field_gives_type_default_bounds_and_meaning() -> None:
    text = (DOCS / "reference/kinds/outputdataset.md").read_text("utf-8")
    assert (
        "| `maxDepth` | integer | `14` | 1 to 32 | Deepest node allowed; the root has depth 0. |"
    ) in text.splitlines()


@pytest.mark.parametrize("command", COMMANDS_OF_LAPTOPS)
def test_every_command_has_usage_and_exit_codes(command: str) -> None:
    text = (DOCS / "reference/cli.md").read_text("utf-8")
    section = text.partition(f"## snaploom {command}\n")[2].partition("\n## ")[0]
    assert re.search(rf"^snaploom {command}( |$)", section, re.MULTILINE)
    assert f"Exit codes: {CODES_OF[command]}." in section
    listed = {part.split()[0] for part in CODES_OF[command].replace(")", "").split(", ")}
    assert {code for code in listed if code.isdigit()} <= {str(code) for code, _ in EXIT_CODES}
