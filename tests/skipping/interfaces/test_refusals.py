"""Every interface refuses impossible indexes when they are declared, and creates nothing."""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from support.skipping.indexinterfaces import Lake, command

from snaploom.cli.main import run_command
from snaploom.errors import IndexNotPossible
from snaploom.skipping import skipping_index
from snaploom.skipping.spark.interfaces import sqlfrontend

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
        sqlfrontend.sql(
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
def test_every_interface_refuses_impossible_indexes(
    spark: SparkSession,
    clashing: Lake,
    errors: Callable[[], str],
    interface: Interface,
    case: tuple[Items, str, str, str],
) -> None:
    items, form, message, code = case
    refusal = interface(spark, clashing, items, form) + errors()
    assert (code if interface is by_resource else message) in refusal
    assert not clashing.state().exists


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_an_index_that_exists_is_not_altered_into_what_cannot_be(
    spark: SparkSession,
    clashing: Lake,
    errors: Callable[[], str],
    case: tuple[Items, str, str, str],
) -> None:
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
