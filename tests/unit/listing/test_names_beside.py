"""Files beside those of a source that are named alike, and that no source reads."""

from pathlib import Path

import pytest

from snaploom.files.listed import NoOtherFiles
from snaploom.sources.files.globs import names_beside


def beside(folder: Path, names: str, glob: str, *others: str) -> list[str]:
    for name in names.split():
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        (folder / name).write_text("x")
    globs = [f"file://{folder}/{each}" for each in (glob, *others)]
    return list(names_beside(globs[:1], globs, NoOtherFiles())[1])


@pytest.mark.parametrize(
    "name",
    [
        "sales_20240505.csv", "sales-2024-05-05.csv", "sales_2024-05-05.CSV",
        "Sales_2024-05-05.csv",
        "sales_2024-05-05.csv.gz", "sales_5.5.2024.csv", "sales_2024-05-05_final.csv", "sales.csv",
        "sales_2024-05-05T10.csv", "sales_05-May-2024.csv", "sales_2024-05-05.json", "sales_2024-05-05.xlsx",
    ],
)  # fmt: skip
def test_a_file_of_another_form_is_found(tmp_path: Path, name: str) -> None:
    names = f"sales_2024-05-01.csv {name}"
    assert beside(tmp_path, names, "sales_????-??-??.csv") == [name]


@pytest.mark.parametrize(
    "name",
    [
        "sales_2024-05-02.csv", "returns_20240505.csv", "sales_returns_2024-05-01.csv",
        "sales_2024-05-01.csv.md5", "_sales_20240505.csv", ".sales_20240505.csv", "readme.csv",
        "sales_20240505.csv/part", "sales_2024-05-01.parquet", "sales_2024-05-01.csv.gz",
    ],
)  # fmt: skip
def test_other_files_are_none_of_the_source(tmp_path: Path, name: str) -> None:
    assert beside(tmp_path, f"sales_2024-05-01.csv {name}", "sales_????-??-??.csv") == []


def test_a_file_that_another_source_reads_is_read(tmp_path: Path) -> None:
    names = "sales_2024-05-01.csv sales_20240505.csv"
    assert beside(tmp_path, names, "sales_????-??-??.csv", "sales_[0-9]*.csv") == []


def test_files_below_folders_of_dates_are_looked_at(tmp_path: Path) -> None:
    names = "2024-05-01/sales.csv 2024-05-02/sales.CSV 2024-05-02/a/sales.csv"
    assert beside(tmp_path, names, "*/sales.csv") == ["sales.CSV"]


def test_nothing_is_said_where_a_glob_has_choices(tmp_path: Path) -> None:
    assert beside(tmp_path, "a_1.csv a-2.csv", "a_?.{csv,tsv}") == []
