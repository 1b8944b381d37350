"""`snaploom page`, `Project.page` and `status`: files that need nothing, and one clear error."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.declared.shop import Shop
from support.site.histories import declarations

import snaploom as sl
from snaploom.cli.main import run_command
from snaploom.output import layout

NOW = ("--now", "2024-03-31T12:00:00Z")
WITHOUT = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyspark", "py4j", "pyarrow", "numpy", "pandas"):
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Blocked())
from snaploom.cli.main import run_command
sys.exit(run_command(sys.argv[1:]))
"""


def written(eventful: Path, site: Path, *more: str) -> str:
    assert run_command(["page", "orders-wide", "-f", str(eventful), "--to", str(site), *more]) == 0
    return (site / "index.html").read_text("utf-8")


def test_page_is_one_file_that_loads_nothing(eventful: Path, tmp_path: Path) -> None:
    document = written(eventful, tmp_path / "site", *NOW)
    assert [path.name for path in (tmp_path / "site").rglob("*")] == ["index.html"]
    addresses = re.findall(r'\s(?:src|href|action|xlink:href)="([^"]*)"', document)
    assert addresses
    assert {address[:1] for address in addresses} == {"#"}
    assert not re.search(r"url\(|@import|\bstyle=|\son[a-z]+=", document)
    assert "default-src 'none'" in document


@pytest.mark.slow
def test_neither_spark_nor_arrow_is_needed(eventful: Path, tmp_path: Path) -> None:
    command = ["page", "--all", "-f", str(eventful), "--to", str(tmp_path), *NOW]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, *command], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_same_state_gives_the_same_bytes(eventful: Path, tmp_path: Path) -> None:
    assert written(eventful, tmp_path / "a", *NOW) == written(eventful, tmp_path / "b", *NOW)


def test_several_outputs_have_an_overview_that_leads_to_each(eventful, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    text = declarations(other, other / "out").read_text()
    (other / "model.yaml").write_text(text.replace("orders-wide", "orders-late"))
    output = next(part for part in (other / "model.yaml").read_text().split("---\n")
                  if "kind: OutputDataset" in part)  # fmt: skip
    (other / "model.yaml").write_text(output)
    site = tmp_path / "site"
    files = ["-f", str(eventful), str(other)]
    assert run_command(["page", "--all", *files, "--to", str(site), *NOW]) == 0
    overview = (site / "index.html").read_text()
    assert re.findall(r'href="(outputs/[^"]+)"', overview) == [
        "outputs/orders-late.html",  # nothing is published, which comes first
        "outputs/orders-wide.html",
    ]
    assert 'href="../index.html"' in (site / "outputs/orders-wide.html").read_text()


def test_folder_needs_no_declarations(eventful: Path, tmp_path: Path) -> None:
    assert run_command(["page", str(eventful / "out"), "--to", str(tmp_path)]) == 0
    assert "<h1>orders-wide" in (tmp_path / "index.html").read_text()


def test_pages_of_ours_are_written_again_and_other_files_are_not(eventful, tmp_path, capsys):
    written(eventful, tmp_path)
    written(eventful, tmp_path)
    (tmp_path / "index.html").write_text("<h1>my own page</h1>")
    command = ["page", "orders-wide", "-f", str(eventful), "--to", str(tmp_path)]
    assert run_command(command) == 2
    assert "error ArgumentInvalid --to" in capsys.readouterr().err
    assert (tmp_path / "index.html").read_text() == "<h1>my own page</h1>"


def test_link_in_place_of_a_page_is_replaced_not_followed(eventful: Path, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere.html"
    target.write_text(written(eventful, tmp_path / "a"))
    before = target.read_text()
    (tmp_path / "site").mkdir()
    (tmp_path / "site/index.html").symlink_to(target)
    written(eventful, tmp_path / "site", "--now", "2024-04-01T00:00:00Z")
    assert target.read_text() == before
    assert not (tmp_path / "site/index.html").is_symlink()


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (["orders-wide", "--all", "-f", "FILES"], "OUTPUT_OR_FOLDER"),
        (["-f", "FILES"], "OUTPUT_OR_FOLDER"),
        (["--all"], "--file"),
        (["orders-wide"], "OUTPUT_OR_FOLDER"),
        (["orders-wide", "-f", "FILES", "--now", "soon"], "--now"),
    ],
)
def test_what_is_asked_wrongly_is_one_error(eventful, tmp_path, capsys, arguments, field):
    given = [str(eventful) if one == "FILES" else one for one in arguments]
    assert run_command(["page", *given, "--to", str(tmp_path / "site")]) == 2
    assert f"error SL191 {field}" in capsys.readouterr().err
    assert not (tmp_path / "site").exists()


def test_output_that_is_not_declared_is_one_error(eventful, tmp_path, capsys):
    site = str(tmp_path / "site")
    assert run_command(["page", "orders", "-f", str(eventful), "--to", site]) == 2
    assert "orders-wide" in capsys.readouterr().err


def test_place_that_cannot_be_written_is_one_error(eventful, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    site = str(tmp_path / "file" / "site")
    assert run_command(["page", "orders-wide", "-f", str(eventful), "--to", site]) == 1
    assert "error FolderNotWritable" in capsys.readouterr().err


def test_damaged_folder_has_a_page_and_ends_with_one(tmp_path, capsys):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / layout.MARKER).write_text("no JSON")
    declarations(tmp_path, tmp_path / "out")
    site = str(tmp_path / "site")
    assert run_command(["page", "--all", "-f", str(tmp_path / "model.yaml"), "--to", site]) == 1
    assert "error SL192" in capsys.readouterr().err
    assert "cannot be read" in (tmp_path / "site/index.html").read_text()


def test_failures_of_reports_are_in_the_timeline(eventful: Path, tmp_path: Path) -> None:
    report = {
        "output": "orders-wide", "runId": "run-7", "phase": "FAILED",
        "startedAt": "2024-03-31T02:00:00Z", "message": "a source is not readable",
        "failed": [{"time": "2024-03-31T00:00:00Z", "partition": "p",
                    "reason": "SNAPSHOT_MISSING", "message": "no file of customers"}],
    }  # fmt: skip
    file = tmp_path / "report.json"
    file.write_text(json.dumps([report]))
    document = written(eventful, tmp_path / "site", *NOW, "--report", str(file))
    assert "no file of customers" in document
    assert 'class="lane failed"' in document


def test_file_that_is_no_report_is_one_error(eventful, tmp_path, capsys):
    file = tmp_path / "report.json"
    file.write_text('{"output": "\x1b[31m"')
    command = ["page", "orders-wide", "-f", str(eventful), "--to", str(tmp_path / "site")]
    assert run_command([*command, "--report", str(file)]) == 2
    printed = capsys.readouterr().err
    assert "error ArgumentInvalid --report" in printed
    assert "\x1b" not in printed


def test_pages_are_drawn_in_a_frame_and_written(eventful: Path, tmp_path: Path) -> None:
    pages = sl.load(eventful).page("orders-wide", now="2024-03-31T12:00:00Z")
    assert "<h1>orders-wide" in pages.html
    drawn = pages._repr_html_()
    assert drawn.startswith('<iframe title="orders-wide" sandbox="allow-scripts"')
    assert drawn.count("<") == 2  # the page itself is an attribute
    (file,) = pages.save(tmp_path / "site")
    assert file.read_text() == pages.html


def test_status_draws_tree_and_timeline(eventful: Path) -> None:
    status = sl.load(eventful).status("orders-wide", now="2024-03-31T12:00:00Z")
    first, *lines = str(status).splitlines()
    assert first.startswith("orders-wide: ")
    assert "newest snapshot 2024-03-30 with" in first
    assert any("customer" in line and "% matched" in line for line in lines)
    assert any(line.startswith("published     ") and "█" in line for line in lines)
    drawn = status._repr_html_()
    assert drawn.count("<svg xmlns") == 2
    assert "% matched" in drawn


def test_status_of_what_never_ran_has_a_tree_and_no_timeline(tmp_path: Path) -> None:
    status = sl.load(Shop(tmp_path).write()).status()
    assert str(status).splitlines() == [
        "wide: nothing published",
        "orders",
        "└── customers  by customer-id",
    ]
    assert status.is_ok
    assert status._repr_html_().count("<svg xmlns") == 1
