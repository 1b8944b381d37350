"""Commands about things that do not exist: one clear error, and the right exit code."""

from pathlib import Path

import pytest
from support.declared.shop import CommandResult, Shop, snaploom


def assert_refused(result: CommandResult, code: int, *texts: str) -> None:
    assert result.code == code, result.err
    assert result.err.startswith(("error ", "warning "))
    for text in texts:
        assert text in result.err
    assert "internal error" not in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize(
    "command",
    [
        ("plan", "wid", "--offline"),
        ("plan", "wid"),
        ("run", "wid"),
        ("run", "wid", "--dry-run"),
        ("graph", "wid"),
        ("snapshots", "wid"),
    ],
)
def test_an_unknown_output_is_answered_with_the_nearest(tmp_path, command):
    result = snaploom(*command, "-f", Shop(tmp_path).write())
    assert_refused(result, 2, "OutputDataset/wid", "expected: wide", "did you mean `wide`?")


@pytest.mark.parametrize("command", [("validate",), ("plan", "wide", "-f"), ("run", "wide", "-f")])
@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("empty", "no resource of snaploom.io"),
        ("other", "no resource of snaploom.io"),
        ("nowhere", "there is no such file or folder"),
        ("nowhere/model.yaml", "there is no such file or folder"),
    ],
)
def test_places_without_declarations_are_errors(tmp_path, command, place, text):
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("none")
    result = snaploom(*command, tmp_path / place)
    assert_refused(result, 2, str(tmp_path / place), text)
    assert sum(line.startswith("error ") for line in result.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--now", "nonsense"), "this is not a time"),
        (("--now", "2024-06-01T00:00:00"), "write 2024-06-01T00:00:00Z if UTC is meant"),
        (("--now", "2024-06-01"), "write 2024-06-01T00:00:00Z if UTC is meant"),
        (("--limit", "0"), "Must be >= 1"),
        (("--limit", "few"), 'unable to convert "few" into int'),
        (("-o", "xml"), 'Choose from: "text", "json"'),
        (("--dryrun",), "Did you mean --dry-run?"),
        (("--all",), "names and --all"),
    ],
)
def test_options_that_make_no_sense_are_errors(tmp_path, arguments, text):
    assert_refused(snaploom("run", "wide", "-f", Shop(tmp_path).write(), *arguments), 2, text)


@pytest.mark.parametrize(
    ("command", "instead"),
    [
        (("plan", "wide", "--offline"), "plan without --offline"),
        (
            ("backfill", "wide", "--from", "2024-01-01T00:00:00Z", "--to", "2024-02-01T00:00:00Z",
             "--estimate"),
            "snaploom plan --strict",
        ),
    ],
)  # fmt: skip
def test_strict_is_refused_where_the_root_is_not_listed(tmp_path, command, instead):
    result = snaploom(*command, "--strict", "-f", Shop(tmp_path).write())
    assert_refused(result, 2, "--strict has no effect", "expected: one of the two", instead)


def test_run_wants_to_know_which_outputs(tmp_path: Path) -> None:
    result = snaploom("run", "-f", Shop(tmp_path).write())
    assert_refused(result, 2, "name the outputs to run, or give --all", "outputs: wide")


@pytest.mark.parametrize("command", ["plan", "run"])
def test_files_are_asked_for(command: str) -> None:
    assert_refused(snaploom(command, "wide"), 2, "--file")


@pytest.mark.parametrize("command", ["snapshots", "gc"])
@pytest.mark.parametrize("place", ["other", "nowhere"])
def test_foreign_folders_are_refused_and_unchanged(tmp_path, command, place):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    result = snaploom(command, tmp_path / place)
    assert_refused(result, 1, "is not an output folder of Snaploom", "snaploom.json")
    assert (tmp_path / "other" / "notes.txt").read_text() == "mine"
    assert not (tmp_path / "nowhere").exists()


def test_the_name_of_an_output_without_files_is_an_error() -> None:
    assert_refused(snaploom("snapshots", "wide"), 2, "where it is declared: wide -f PATH")


def test_an_output_that_never_ran_has_no_snapshots(tmp_path: Path) -> None:
    model = Shop(tmp_path).write()
    result = snaploom("snapshots", "wide", "-f", model)
    assert (result.code, result.out) == (0, "No snapshot is published.\n")
    document = snaploom("snapshots", "wide", "-f", model, "-o", "json").document
    assert (document["sequence"], document["snapshots"]) == (0, [])


def test_folders_are_named_by_relative_paths_too(tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    assert_refused(snaploom("gc", "other"), 1, f"file://{tmp_path}/other/")


@pytest.mark.parametrize("command", [("init",), ("schema", "--dir"), ("crds", "--dir")])
def test_a_place_that_cannot_be_written_is_an_error(tmp_path, command):
    (tmp_path / "file").write_text("")
    result = snaploom(*command, tmp_path / "file" / "below")
    assert_refused(result, 1, "this folder cannot be written", "Not a directory", "fix:")


def test_init_refuses_a_folder_that_is_not_empty(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    assert_refused(snaploom("init", tmp_path), 2, "this folder is not empty")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
