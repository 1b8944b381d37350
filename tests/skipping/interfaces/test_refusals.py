"""Every interface refuses impossible indexes when they are declared, and creates nothing."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from support.skipping.indexinterfaces import Lake, command

from snaploom import skipping
from snaploom.cli.main import run_command
from snaploom.errors import IndexNotFound, IndexNotPossible, SkippingError
from snaploom.plugins.xskipper.names import LOCATION
from snaploom.skipping import skipping_index
from snaploom.skipping.spark.interfaces import enable
from snaploom.skipping.statements.syntax import parse_subject
from snaploom.skipping.stores.catalog import LOCATIONS

Items = tuple[tuple[str, str], ...]
"""Type and column."""
Interface = Callable[[SparkSession, Lake, Items, str], str]
"""Declares indexes in a form, and returns the refusal."""


@pytest.fixture
def errors(capsys: pytest.CaptureFixture[str]) -> Callable[[], str]:
    return lambda: capsys.readouterr().err


def by_sql(spark: SparkSession, lake: Lake, items: Items, form: str) -> str:
    columns = ", ".join(f"{column} {kind}" for kind, column in items)
    with pytest.raises(IndexNotPossible) as refusal:
        enable.sql(
            spark,
            f"CREATE SKIPPING INDEX ON parquet.`{lake.data}` ({columns}) "
            f"WITH (location = '{lake.base}', form = '{form}')",
        )
    return str(refusal.value)


def by_builder(spark: SparkSession, lake: Lake, items: Items, form: str) -> str:
    builder = skipping_index(spark, lake.base).on_path(lake.data).stored(lake.base, form)
    verbs = {"MIN_MAX": "add_min_max", "PARTITION": "add_partitions", "VALUE_SET": "add_value_set"}
    for kind, column in items:
        builder = getattr(builder, verbs[kind])(column)
    with pytest.raises(IndexNotPossible) as refusal:
        builder.create()
    return str(refusal.value)


def by_command(spark: SparkSession, lake: Lake, items: Items, form: str) -> str:
    indexes = [part for kind, column in items for part in ("-i", f"{column} {kind}")]
    assert command("create", lake, "--form", form.lower(), *indexes) == 2
    return ""


def by_resource(spark: SparkSession, lake: Lake, items: Items, form: str) -> str:
    path = lake.declare(
        indexes=[{"type": kind, "column": column} for kind, column in items],
        store={"parquet": {"location": lake.base, "form": form}},
    )
    assert run_command(["index", "apply", "-f", str(path)]) == 2
    return ""


INTERFACES: tuple[Interface, ...] = (by_sql, by_builder, by_command, by_resource)
REFUSED: dict[str, tuple[Items, str, str, str]] = {
    "names in one another (rule S29)": (
        (("MIN_MAX", "a"), ("MIN_MAX", "a_minmax_1")),
        "XSKIPPER",
        "cannot be distinguished by the beginning of their names",
        "SL187",
    ),
    "partition of files (rule S11)": (
        (("PARTITION", "a"),),
        "NATIVE",
        "not a partition column",
        "SL186",
    ),
    "no such column": ((("MIN_MAX", "b"),), "NATIVE", "there is no column b", "SL186"),
    "type": ((("MIN_MAX", "s"),), "NATIVE", "struct", "SL186"),
    "twice": ((("MIN_MAX", "a"), ("MIN_MAX", "A")), "NATIVE", "is declared already", "SL135"),
}


@pytest.fixture
def clashing(lake: Lake) -> Lake:
    """A lake of one file with the columns of the cases."""
    place = lake.folder / "clashing" / "data"
    place.mkdir(parents=True)
    rows = {"a": [1], "a_minmax_1": [2], "s": [{"x": 1}]}
    pq.write_table(pa.table(rows), place / "0.parquet")
    return Lake(lake.folder / "clashing")


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("interface", INTERFACES)
def test_every_interface_refuses_impossible_indexes(spark, clashing, errors, interface, case):
    items, form, message, code = case
    refusal = interface(spark, clashing, items, form) + errors()
    assert (code if interface is by_resource else message) in refusal
    assert not clashing.state().exists


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_an_index_that_exists_is_not_altered_into_what_cannot_be(spark, clashing, errors, case):
    items, form, _, code = case
    store = {"parquet": {"location": clashing.base, "form": form}}
    indexes = [{"type": "VALUE_SET", "column": "a"}]
    path = clashing.declare(indexes=indexes, store=store)
    assert run_command(["index", "apply", "-f", str(path)]) == 0
    before = clashing.state()
    by_resource(spark, clashing, items, form)
    assert code in errors()
    assert clashing.state() == before


def test_a_builder_that_keeps_nothing_is_refused(spark: SparkSession, lake: Lake) -> None:
    with pytest.raises(IndexNotPossible, match="what is to be kept"):
        skipping_index(spark, lake.base).on_path(lake.data).create()


@pytest.fixture
def database(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    spark.sql(f"CREATE DATABASE owned LOCATION '{tmp_path}/warehouse'")
    for number in range(3):
        rows = spark.range(number * 10, number * 10 + 10).coalesce(1)
        rows.write.mode("append").saveAsTable("owned.t")
    yield "owned"
    spark.sql("DROP DATABASE owned CASCADE")


def built(spark: SparkSession, base: Path) -> None:
    index = skipping.skipping_index(spark).on_table("owned.t").add_min_max("id")
    index.stored(str(base), "XSKIPPER").build()


def test_a_property_of_a_table_names_the_store_to_import(spark, lake, database, tmp_path):
    built(spark, tmp_path / "made")
    store = str(tmp_path / "store")
    indexes = skipping.skipping_indexes(spark, str(tmp_path / "made"))
    indexes.export(parse_subject("owned.t"), store)
    spark.sql(f"ALTER TABLE owned.t SET TBLPROPERTIES ('{LOCATION}' = '{store}')")
    assert run_command(["index", "import", "owned.t", "--location", lake.base]) == 0
    skipping.enable(spark, lake.base)
    assert spark.table("owned.t").where("id >= 20").count() == 10
    assert skipping.statistics(spark).dropped_files == 2
    skipping.disable(spark)


def test_a_property_of_a_database_names_the_folder_of_many_stores(spark, lake, database, tmp_path):
    base = tmp_path / "base"
    built(spark, base)
    spark.conf.unset(LOCATIONS)
    files = skipping.skipping_index(spark).on_table("owned.t")
    with pytest.raises(IndexNotFound):
        files.describe()
    spark.sql(f"ALTER DATABASE owned SET DBPROPERTIES ('{LOCATION}' = '{base}')")
    assert files.describe().rows == 3
    for directory in ((), (str(base),)):
        place = ("--location", str(tmp_path / f"into{len(directory)}"))
        assert run_command(["index", "import", "owned.t", *directory, *place]) == 0


def test_files_have_no_properties(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["index", "import", lake.data, "--location", lake.base]) == 1
    assert "the location of the metadata store is not set" in capsys.readouterr().err


INDEX = ("-i", "name VALUE_SET")
MAGIC = 4


def files_of(lake: Lake) -> list[Path]:
    return sorted(Path(lake.data).rglob("*.parquet"))


def spoil(*files: Path) -> None:
    """Overwrite the pages of files; their footers have the schema, so they can still be opened."""
    for file in files:
        content = file.read_bytes()
        footer = int.from_bytes(content[-8:-4], "little") + 8
        file.write_bytes(
            content[:MAGIC] + b"\xff" * (len(content) - footer - MAGIC) + content[-footer:]
        )


def test_a_refresh_that_can_read_no_file_fails_and_changes_nothing(lake, capsys):
    assert command("build", lake, *INDEX) == 0
    before = lake.state()
    spoil(*files_of(lake))
    capsys.readouterr()
    assert command("refresh", lake, "--mode", "full") == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("error SkippingFailed") == 1
    assert "none of the 3 files could be indexed" in printed.err
    assert "0.parquet" in printed.err
    assert lake.state().segments == before.segments


def test_applying_a_resource_over_spoilt_files_fails(lake, capsys):
    path = lake.declare(indexes=[{"type": "VALUE_SET", "column": "name"}])
    assert command("create", lake, *INDEX) == 0
    spoil(*files_of(lake))
    refresh = ["index", "refresh", lake.data, "--location", lake.base]
    assert run_command(refresh) == 1
    assert run_command(["index", "apply", "-f", str(path)]) == 1
    assert "none of the 3 files could be indexed" in capsys.readouterr().err
    assert not lake.state().may_skip


def test_a_statement_over_spoilt_files_fails(spark: SparkSession, lake: Lake) -> None:
    place = f"parquet.`{lake.data}`"
    enable.sql(spark, f"CREATE SKIPPING INDEX ON {place} (name VALUE_SET)")
    spoil(*files_of(lake))
    with pytest.raises(SkippingError, match="none of the 3 files could be indexed"):
        enable.sql(spark, f"REFRESH SKIPPING INDEX ON {place}")


def test_one_spoilt_file_is_a_warning(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("create", lake, *INDEX) == 0
    spoil(files_of(lake)[1])
    assert command("refresh", lake) == 0
    printed = capsys.readouterr()
    assert "1 could not be indexed" in printed.out
    assert "1 of 3 files could not be indexed, so queries always read them" in printed.err
    assert lake.state().may_skip
