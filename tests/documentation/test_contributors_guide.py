"""Additions made as CONTRIBUTING.md describes work."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from pyspark.sql import SparkSession
from support.declared.declarations import document, output
from support.documentation.examples import BIN, REPOSITORY
from support.documentation.pages import blocks_of
from support.storage.folders import a_folder, day, published

import snaploom
from snaploom.files.local import LocalObjectStore
from snaploom.models.common import format_instant

PAGE = REPOSITORY / "CONTRIBUTING.md"
SNAPLOOM = str(BIN / "snaploom")
LIBRARY = REPOSITORY / "sparkjobs/src/snaploom"


def section(title: str) -> dict[str, str]:
    """The titled blocks of a section: content by file name."""
    text = PAGE.read_text("utf-8")
    start = text.index(f"## {title}\n")
    end = text.find("\n## ", start)
    return {
        block.title: block.text
        for block in blocks_of(PAGE)
        if block.title and block.text in text[start:end]
    }


def installed(title: str, folder: Path) -> dict[str, str]:
    """Write the files of a recipe as an installed package; the environment that finds it."""
    metadata = folder / "recipe-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: recipe\nVersion: 1.0\n")
    for name, content in section(title).items():
        target = metadata if name == "entry_points.txt" else folder
        (target / name).write_text(content, "utf-8")
    paths = [str(folder), str(REPOSITORY / "tests"), os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


def patched(text: str, diff: str) -> str:
    """A file after a diff without line numbers: each hunk fits one place of it."""
    for hunk in re.split(r"^@@\n", diff, flags=re.MULTILINE):
        lines = hunk.splitlines(keepends=True)
        before, after = ("".join(li[1:] for li in lines if li[0] != sign) for sign in "+-")
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    return text


def with_recipe(title: str, library: Path) -> dict[str, str]:
    """Carry out the recipe of a change to a copy of the library; the environment that finds it."""
    shutil.copytree(LIBRARY, library, ignore=shutil.ignore_patterns("__pycache__"))
    for name, content in section(title).items():
        target = library / name
        if (library / name).exists():
            content = patched(target.read_text("utf-8"), content)
        target.parent.mkdir(exist_ok=True)
        target.write_text(content, "utf-8")
    return os.environ | {"PYTHONPATH": str(library.parent)}


def printed(command: list[str], environment: dict[str, str], cwd: Path) -> str:
    done = subprocess.run(
        command, env=environment, cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
def test_the_index_type_of_the_page_loses_no_row_and_skips_files(tmp_path: Path) -> None:
    environment = installed("Add an index type", tmp_path)
    printed([sys.executable, "-m", "pytest", "-q", "test_remainder.py"], environment, tmp_path)
    data, indexes = tmp_path / "data", str(tmp_path / "indexes")
    data.mkdir()
    for n in range(2):
        ids = pa.array([n + 32 * i for i in range(100)], pa.int64())
        pq.write_table(pa.table({"id": ids}), data / f"{n}.parquet")
    build = ["index", "build", str(data), "--location", indexes, "-i", "id REMAINDER"]
    printed([SNAPLOOM, *build], environment, tmp_path)
    query = f"SELECT * FROM parquet.`{data}` WHERE id = 64"
    explain = [SNAPLOOM, "index", "explain", query, "--location", indexes]
    assert "1 of 2 files" in printed(explain, environment, tmp_path)


@pytest.mark.long
def test_the_file_format_of_the_page_is_found_and_run(spark: SparkSession, tmp_path: Path) -> None:
    environment = installed("Add a file format", tmp_path)
    printed([sys.executable, "-m", "pytest", "-q", "test_npy.py"], environment, tmp_path)
    (tmp_path / "data").mkdir()
    rows = np.array([(n, "ab"[n % 2]) for n in range(20_000)], [("id", "i8"), ("name", "U1")])
    np.save(tmp_path / "data/orders.npy", rows)
    model = str(tmp_path / "model")
    printed([SNAPLOOM, "init", model, "--from", f"{tmp_path}/data"], environment, tmp_path)
    printed([SNAPLOOM, "run", "orders-wide", "-f", model], environment, tmp_path)
    read = snaploom.read(spark, f"{model}/wide/").select("data.id", "data.name")
    assert sorted(map(tuple, read.collect())) == rows.tolist()


def test_an_output_is_published_in_the_store_of_the_page(tmp_path: Path) -> None:
    environment = installed("Add an object store", tmp_path) | {"SHM": str(tmp_path / "memory")}
    printed([sys.executable, "-m", "pytest", "-q", "test_shm.py"], environment, tmp_path)
    printed([SNAPLOOM, "init", "model"], environment, tmp_path)
    model = tmp_path / "model" / "model.yaml"
    declared = list(yaml.safe_load_all(model.read_text("utf-8")))
    (output_,) = (one for one in declared if one["kind"] == "OutputDataset")
    output_["spec"]["outputFolder"]["folderUri"] = "shm://trial/wide/"
    model.write_text(yaml.safe_dump_all(declared), "utf-8")
    printed([SNAPLOOM, "run", "--all", "-f", str(model)], environment, tmp_path)
    listed = printed([SNAPLOOM, "snapshots", "shm://trial/wide/"], environment, tmp_path)
    assert "2024-05-01" in listed


@pytest.mark.long
def test_the_source_kind_of_the_page_is_run(spark: SparkSession, tmp_path: Path) -> None:
    library = tmp_path / "snaploom"
    environment = with_recipe("Add a source kind", library)
    folder, model = f"{tmp_path}/counted/", tmp_path / "model.yaml"
    counted = output("counted", **{"outputFolder.folderUri": folder})
    root = counted["spec"]["dataModel"]["rootDataSource"] | {"dataSource": "numbers"}
    counted["spec"]["dataModel"] = {"rootDataSource": root}
    numbers = document("DataSource", "numbers", {"numbers": {"upTo": 3}})
    model.write_text(yaml.safe_dump_all([numbers, counted]), "utf-8")
    printed([SNAPLOOM, "run", "counted", "-f", str(model)], environment, tmp_path)
    rows = snaploom.read(spark, folder).select("data.number").collect()
    assert sorted(row.number for row in rows) == [1, 2, 3]


def test_a_source_kind_changes_its_model_and_the_registries_only() -> None:
    changed = {name for name in section("Add a source kind") if (LIBRARY / name).exists()}
    registries = {"sources/registry.py", "sources/readers.py"}
    assert changed == {"models/datasource.py", *registries}


def test_the_command_of_the_page_is_listed_and_runs(tmp_path: Path) -> None:
    environment = installed("Add a command", tmp_path)
    assert "newest" in printed([SNAPLOOM, "--help"], environment, tmp_path)
    folder = a_folder(LocalObjectStore(tmp_path / "output", create=True))
    published(folder, number=1)
    time = format_instant(day(1))
    assert time in printed([SNAPLOOM, "newest", folder.store.uri], environment, tmp_path)
